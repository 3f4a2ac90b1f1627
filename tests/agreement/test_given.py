"""Facts given with `--with`: equal everywhere, or named with the ranks."""

from __future__ import annotations

import msgspec

from ckpt_tui.agreement import Testimony, judge
from ckpt_tui.agreement.given import in_words, unequal_facts
from ckpt_tui.facts.agreement import Agreement, Fingerprint, Stage, Verdict
from tests.agreement.made_up import fingerprints_of, tiny


def given(*facts: dict[str, str]) -> list[Fingerprint]:
    """Ranks with equal copies, each with its facts."""
    ranks = fingerprints_of([tiny()] * len(facts))
    return [msgspec.structs.replace(rank, given=own) for rank, own in zip(ranks, facts, strict=True)]


def verdict(ranks: list[Fingerprint]) -> Agreement:
    """What is said of them."""
    heard = [Testimony(rank) for rank in ranks]
    return judge(heard, world_size=len(ranks), stage=Stage.CONTENT, created=0.0, tool="t")


def test_equal_facts_change_nothing() -> None:
    agreement = verdict(given({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))
    assert (agreement.verdict, agreement.unequal) == (Verdict.AGREE, ())


def test_another_value_and_one_that_is_not_given_are_named_with_their_ranks() -> None:
    agreement = verdict(given({"engine": "0.8", "tp": "2"}, {"engine": "0.9"}, {"engine": "0.8", "tp": "2"}))
    assert agreement.verdict is Verdict.DIFFER
    assert agreement.weights_equal is True
    assert (
        agreement.summary == "engine is 0.8 on ranks [0,2], 0.9 on rank 1; tp is 2 on ranks [0,2], not given on rank 1"
    )
    assert len(agreement.groups) == 1
    assert [one.key for one in agreement.unequal] == ["engine", "tp"]


def test_a_rank_whose_answer_is_an_error_is_told_by_that_alone() -> None:
    ranks = given({"a": "1"}, {})
    ranks[1] = msgspec.structs.replace(ranks[1], error="EIO")
    assert unequal_facts(ranks) == ()
    assert in_words(()) == ""
