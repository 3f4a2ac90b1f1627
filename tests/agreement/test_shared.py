"""One shared copy that several hosts read: other bytes accuse a host, and never the file."""

from __future__ import annotations

from ckpt_tui.agreement import Testimony as Said
from ckpt_tui.facts.agreement import Agreement, CauseCode, Standing, Verdict
from tests.agreement.made_up import S2, Model, agreement_of, judge_all, recorded, tiny, witness

ODD = tiny().with_shard(S2, tensors=(("layers.1.w", "1"), ("lm_head", "flipped")))


def on(host: str, model: Model, rank: int, copy: str = "nfs4 server:/models") -> Said:
    """A rank on a host that reads the shared copy, or one of its own."""
    return witness(model, rank, host=host, copy=copy)


def cause(agreement: Agreement) -> CauseCode:
    (difference,) = agreement.differences
    return difference.cause.code


def test_one_file_that_two_hosts_read_differently_accuses_a_host() -> None:
    agreement = judge_all([on("node-a", tiny(), 0), on("node-b", ODD, 1)])
    assert agreement.verdict is Verdict.DIFFER
    (difference,) = agreement.differences
    found = difference.cause
    assert found.code is CauseCode.SAME_FILE_READ_DIFFERENTLY
    assert "a host, not the file" in found.summary
    assert "A: rank 0 (node-a) / B: rank 1 (node-b)" in found.facts
    assert found.mend == ""
    assert found.candidate  # nobody has read it again: it may have been written meanwhile
    assert {group.standing for group in agreement.groups} == {Standing.UNDECIDED}
    assert [group.evidence[-1] for group in agreement.groups] == [
        "rank 0 (node-a) read the very files that rank 1 (node-b) did, and got other bytes",
        "rank 1 (node-b) read the very files that rank 0 (node-a) did, and got other bytes",
    ]


def test_where_other_copies_vote_the_host_that_is_alone_is_the_minority_and_the_file_still_is_not_blamed() -> None:
    heard = [on("a", tiny(), 0, "a"), on("b", tiny(), 1, "b"), on("c", tiny(), 2), on("d", ODD, 3)]
    agreement = judge_all(heard)
    assert [group.standing for group in agreement.groups] == [Standing.MAJORITY, Standing.MINORITY]
    assert cause(agreement) is CauseCode.SAME_FILE_READ_DIFFERENTLY
    assert agreement.differences[0].cause.mend == ""


def test_where_the_copies_are_apart_the_file_differs_as_ever() -> None:
    agreement = agreement_of([tiny(), ODD], copies=["a", "b"])
    assert cause(agreement) is not CauseCode.SAME_FILE_READ_DIFFERENTLY
    assert not any("very files" in text for group in agreement.groups for text in group.evidence)


def test_a_recorded_hash_still_says_which_reading_is_right() -> None:
    good, bad = recorded(tiny()), recorded(ODD, breaks=(S2,))
    agreement = judge_all([on("node-a", good, 0), on("node-b", bad, 1)])
    assert [group.standing for group in agreement.groups] == [Standing.RIGHT, Standing.WRONG]
    assert cause(agreement) is CauseCode.SAME_FILE_READ_DIFFERENTLY


def test_another_tokenizer_beside_one_set_of_weights_accuses_nobody_of_reading_wrongly() -> None:
    other = tiny(sidecars={"config.json": "c", "tokenizer.json": "other"})
    agreement = judge_all([on("node-a", tiny(), 0), on("node-b", other, 1)])
    assert cause(agreement) is CauseCode.UNKNOWN
    assert not any("very files" in text for group in agreement.groups for text in group.evidence)


def test_a_third_group_with_a_copy_of_its_own_is_not_drawn_in() -> None:
    third = tiny().with_shard(S2, tensors=(("layers.1.w", "1"), ("lm_head", "third")))
    agreement = judge_all([on("a", tiny(), 0), on("b", ODD, 1), on("c", third, 2, "own")])
    assert "read differently by A and B" in agreement.differences[0].cause.summary
    assert "very files" not in agreement.groups[2].evidence[-1]
