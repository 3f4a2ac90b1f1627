"""What those who are compared are called, and in what order their groups are listed."""

from __future__ import annotations

from ckpt_tui.present.sides import minority_first
from tests.agreement.made_up import S2, agreement_of, recorded, tiny

ODD = tiny().with_shard(S2, tensors=(("layers.1.w", "1"), ("lm_head", "odd")))
THIRD = tiny().with_shard(S2, tensors=(("layers.1.w", "1"), ("lm_head", "third")))


def test_the_minority_comes_before_the_majority_and_the_wrong_before_the_right() -> None:
    assert [one.name for one in minority_first(agreement_of([tiny(), tiny(), ODD]).groups)] == ["B", "A"]
    kept, broken = recorded(tiny()), recorded(ODD, breaks=(S2,))
    assert [one.name for one in minority_first(agreement_of([kept, kept, broken, kept]).groups)] == ["B", "A"]


def test_groups_that_stand_alike_are_listed_by_their_number_of_ranks() -> None:
    groups = agreement_of([tiny(), tiny(), ODD, ODD, THIRD]).groups
    assert [one.ranks for one in minority_first(groups)] == [(4,), (0, 1), (2, 3)]
