"""What is said of sessions that people know: a flipped bit, another revision, a lost rank, a missing shard."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from ckpt_tui.agreement import Testimony as Said
from ckpt_tui.agreement import failed, groups_of, judge
from ckpt_tui.facts.agreement import CauseCode, DifferenceKind, Stage, Standing, Verdict
from ckpt_tui.facts.files import Finding, Segmentation, Severity, State
from ckpt_tui.facts.outcome import Exit, agreement_code
from ckpt_tui.facts.scan import NotCompared

from .made_up import S1, S2, Model, Shard, agreement_of, fingerprints_of, judge_all, recorded, tiny, witness

if TYPE_CHECKING:
    from ckpt_tui.facts.agreement import Agreement

TINY = tiny()
FLIPPED = TINY.with_shard(S2, tensors=(("layers.1.w", "flipped"), ("lm_head", "h")))


def standings(agreement: Agreement) -> list[tuple[tuple[int, ...], Standing]]:
    return [(group.ranks, group.standing) for group in agreement.groups]


def test_equal_copies_agree_and_say_how_many_there_are() -> None:
    agreement = agreement_of([TINY] * 4, copies=["x", "x", "y", "x"])
    assert agreement.verdict is Verdict.AGREE
    assert agreement.weights_equal is True
    assert [(group.ranks, group.copies) for group in agreement.groups] == [((0, 1, 2, 3), 2)]
    assert agreement_code(agreement) is Exit.SAME
    assert agreement.summary == "all 4 hold the same checkpoint"


def test_a_flipped_bit_is_one_tensor_of_one_shard_on_the_odd_rank() -> None:
    agreement = agreement_of([TINY, FLIPPED, TINY])
    assert agreement.verdict is Verdict.DIFFER
    assert agreement.weights_equal is False
    assert standings(agreement) == [((0, 2), Standing.MAJORITY), ((1,), Standing.MINORITY)]
    (difference,) = agreement.differences
    assert difference.file == S2
    assert difference.kind is DifferenceKind.CONTENT
    assert [segment.name for segment in difference.segments] == ["layers.1.w"]
    assert difference.segments[0].offset == 64
    assert set(difference.groups) == {"A", "B"}
    assert "rank 1 differs from ranks [0,2]" in agreement.summary
    assert "layers.1.w" in agreement.summary


def test_of_two_copies_nobody_is_accused() -> None:
    assert {s for _, s in standings(agreement_of([TINY, FLIPPED]))} == {Standing.UNDECIDED}


def test_eight_ranks_on_one_copy_are_one_vote() -> None:
    agreement = agreement_of([TINY] * 8 + [FLIPPED], copies=["shared"] * 8 + ["own"])
    assert {s for _, s in standings(agreement)} == {Standing.UNDECIDED}


def test_a_copy_seen_in_two_groups_votes_for_neither() -> None:
    agreement = agreement_of([TINY, TINY, FLIPPED], copies=["x", "y", "x"])
    assert {s for _, s in standings(agreement)} == {Standing.UNDECIDED}


def test_half_of_the_copies_is_no_majority() -> None:
    other = TINY.with_shard(S1, metadata="pt")
    assert {s for _, s in standings(agreement_of([TINY, TINY, FLIPPED, other]))} == {Standing.UNDECIDED}


def test_the_hubs_hash_decides_against_any_number_of_copies() -> None:
    broken = recorded(FLIPPED, breaks=[S2])
    agreement = agreement_of([recorded(TINY), broken, broken, broken])
    assert standings(agreement) == [((0,), Standing.RIGHT), ((1, 2, 3), Standing.WRONG)]
    assert agreement.differences[0].cause.mend.startswith("hf download org/tiny model-00002")


def test_a_hash_that_was_recorded_for_another_file_says_nothing_of_the_one_that_differs() -> None:
    only_first = recorded(TINY).with_shard(S2, claims=()).but(sidecar_claims={})
    agreement = agreement_of([only_first, FLIPPED])
    assert {s for _, s in standings(agreement)} == {Standing.UNDECIDED}


def test_a_copy_that_names_the_revision_which_another_keeps_is_wrong() -> None:
    named_only = FLIPPED.but(repo_id="org/tiny", revision="a" * 40)
    assert standings(agreement_of([recorded(TINY), named_only])) == [((0,), Standing.RIGHT), ((1,), Standing.WRONG)]


def test_sums_made_locally_vindicate_nobody() -> None:
    local = recorded(TINY)
    shards = {name: msgspec.structs.replace(shard.claims[0], kind="sha256sums") for name, shard in local.shards.items()}
    for name, claim in shards.items():
        local = local.with_shard(name, claims=(claim,))
    assert {s for _, s in standings(agreement_of([local, FLIPPED]))} == {Standing.UNDECIDED}


def test_two_revisions_are_two_revisions_and_neither_is_wrong() -> None:
    agreement = agreement_of([recorded(TINY), recorded(FLIPPED, "b" * 40), recorded(TINY)])
    assert agreement.verdict is Verdict.DIFFER
    assert {s for _, s in standings(agreement)} == {Standing.UNDECIDED}
    (difference,) = agreement.differences
    assert difference.cause.code is CauseCode.OTHER_REVISION
    assert not difference.cause.candidate
    assert "revision aaaaaaaaaaaa (ranks [0,2]) / bbbbbbbbbbbb (rank 1)" in difference.cause.facts
    assert [segment.name for segment in difference.segments] == ["layers.1.w"]


def test_bytes_that_another_revision_records_are_not_wrong_for_breaking_the_hash_of_one() -> None:
    agreement = agreement_of([recorded(FLIPPED, "b" * 40), recorded(FLIPPED, breaks=[S2]), recorded(TINY)])
    assert standings(agreement) == [((0, 1), Standing.UNDECIDED), ((2,), Standing.RIGHT)]


def test_damage_is_damage_whatever_revision_was_meant() -> None:
    broken = recorded(FLIPPED, "b" * 40, breaks=[S2])
    agreement = agreement_of([recorded(TINY), broken])
    assert agreement.differences[0].cause.code is not CauseCode.OTHER_REVISION
    assert standings(agreement) == [((0,), Standing.RIGHT), ((1,), Standing.WRONG)]


def test_other_revisions_of_equal_bytes_agree_with_a_warning() -> None:
    agreement = agreement_of([recorded(TINY), recorded(TINY, "b" * 40), TINY])
    assert agreement.verdict is Verdict.AGREE
    assert agreement.warnings == (
        "revision aaaaaaaaaaaa (rank 0) / bbbbbbbbbbbb (rank 1): other revisions, and all that is compared is equal",
    )
    assert agreement_code(agreement, strict=True) is Exit.DIFFERENT


@pytest.mark.parametrize(
    "other", [TINY, recorded(TINY, "b" * 40, "org/other")], ids=["plain folder", "another repository"]
)
def test_revisions_are_compared_within_one_repository_alone(other: Model) -> None:
    agreement = agreement_of([recorded(TINY), other])
    assert (agreement.verdict, agreement.warnings) == (Verdict.AGREE, ())


def test_another_tokenizer_is_a_difference_with_equal_weights() -> None:
    agreement = agreement_of([TINY, TINY.but(sidecars={"config.json": "c", "tokenizer.json": "other"})])
    assert agreement.verdict is Verdict.DIFFER
    assert agreement.weights_equal is True
    assert [difference.file for difference in agreement.differences] == ["tokenizer.json"]
    assert "weights equal" in agreement.summary


def test_other_shards_of_the_same_tensors_differ_by_file_and_not_by_tensor() -> None:
    tensors = [tensor for shard in TINY.shards.values() for tensor in shard.tensors]
    three = {f"model-{n + 1:05}-of-00003.safetensors": Shard(tuple(tensors[n::3])) for n in range(3)}
    index = "model.safetensors.index.json"
    one = TINY.but(sidecars={**TINY.sidecars, index: "2"})
    agreement = agreement_of([one, TINY.but(shards=three, sidecars={**TINY.sidecars, index: "3"})])
    assert agreement.verdict is Verdict.DIFFER
    assert agreement.weights_equal is True
    assert {difference.cause.code for difference in agreement.differences} == {CauseCode.RESHARDED}
    assert "5 tensors equal" in agreement.summary
    assert not any(difference.segments for difference in agreement.differences)


def test_a_tensor_that_moved_to_another_shard_is_told_from_one_that_changed() -> None:
    moved = TINY.but(
        shards={
            S1: Shard((("embed", "e"), ("layers.0.w", "0"))),
            S2: Shard((("layers.0.b", "0b"), ("layers.1.w", "flipped"), ("lm_head", "h"))),
        }
    )
    agreement = agreement_of([TINY, moved])
    named = {s.name for difference in agreement.differences for s in difference.segments if s.kind == "tensor"}
    assert named == {"layers.1.w"}


def test_another_header_over_equal_tensors_is_header_only() -> None:
    agreement = agreement_of([TINY, TINY.with_shard(S2, metadata="pt")])
    (difference,) = agreement.differences
    assert (difference.kind, difference.cause.code) == (DifferenceKind.HEADER, CauseCode.HEADER_ONLY)
    assert agreement.weights_equal is True


def test_where_no_tensor_is_equal_everything_differs() -> None:
    other = TINY.but(
        shards={n: Shard(tuple((t, f"{word} of another") for t, word in s.tensors)) for n, s in TINY.shards.items()}
    )
    agreement = agreement_of([TINY, other])
    assert {difference.cause.code for difference in agreement.differences} == {CauseCode.EVERYTHING_DIFFERS}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.MISSING, CauseCode.MISSING),
        (State.TRUNCATED, CauseCode.TRUNCATED),
        (State.OVERLONG, CauseCode.OVERLONG),
        (State.NOT_WEIGHTS, CauseCode.LFS_POINTER),
    ],
)
def test_a_broken_file_is_named_with_its_rank_its_cause_and_code_1(state: State, code: CauseCode) -> None:
    agreement = agreement_of([TINY, TINY.with_shard(S2, state=state), TINY])
    assert agreement.verdict is Verdict.DIFFER
    assert standings(agreement)[1] == ((1,), Standing.WRONG)
    assert [(d.file, d.cause.code) for d in agreement.differences] == [(S2, code)]
    assert [(error.rank, error.message) for error in agreement.errors] == [(1, f"{S2}: {state.value}")]
    assert agreement.ranks[1].error == f"{S2}: {state.value}"


def test_all_alike_and_broken_is_damaged() -> None:
    agreement = agreement_of([TINY.with_shard(S2, state=State.TRUNCATED)] * 2)
    assert agreement.verdict is Verdict.DAMAGED
    assert agreement.groups[0].content is None
    assert len(agreement.errors) == 2


def test_all_alike_and_breaking_the_hubs_hash_is_damaged_with_a_content() -> None:
    agreement = agreement_of([recorded(FLIPPED, breaks=[S2])] * 2)
    assert agreement.verdict is Verdict.DAMAGED
    assert agreement.groups[0].standing is Standing.WRONG
    assert agreement.errors == ()


def test_what_makes_a_scan_fail_keeps_an_agreement_from_being_said() -> None:
    finding = Finding(code="ambiguous", severity=Severity.ERROR, message="one tensor twice")
    assert agreement_of([TINY.but(findings=(finding,))] * 2).verdict is Verdict.DAMAGED


def test_alike_but_suspect_is_not_said_to_agree() -> None:
    agreement = agreement_of([TINY.with_shard(S2, state=State.SUSPECT)] * 2)
    assert (agreement.verdict, agreement.weights_equal) == (Verdict.UNDECIDED, True)


@pytest.mark.parametrize("state", [State.UNREADABLE, State.CHANGED])
def test_a_file_that_could_not_be_read_leaves_it_undecided(state: State) -> None:
    agreement = agreement_of([TINY, TINY.with_shard(S2, state=state)])
    assert agreement.verdict is Verdict.UNDECIDED
    assert agreement.weights_equal is None
    assert agreement.ranks[1].group is None
    assert agreement.errors[0].rank == 1
    (difference,) = agreement.differences
    assert difference.severity is Severity.WARNING
    assert set(difference.groups) == {"A", "rank 1"}


def test_a_difference_beside_a_file_that_could_not_be_read_is_still_proven() -> None:
    half = TINY.with_shard(S1, state=State.UNREADABLE).with_shard(S2, tensors=FLIPPED.shards[S2].tensors)
    agreement = agreement_of([TINY, half])
    assert agreement.verdict is Verdict.DIFFER
    assert [d.file for d in agreement.differences if d.severity is Severity.ERROR] == [S2]
    assert agreement.errors[0].rank == 1


def test_other_weights_beside_an_unreadable_config_are_still_proven() -> None:
    blind = FLIPPED.but(sidecar_states={"config.json": State.UNREADABLE})
    agreement = agreement_of([TINY, blind], tables=False)
    assert (agreement.verdict, agreement.weights_equal) == (Verdict.DIFFER, False)
    alike = agreement_of([TINY, TINY.but(sidecar_states={"config.json": State.UNREADABLE})])
    assert (alike.verdict, alike.weights_equal) == (Verdict.UNDECIDED, True)


def test_an_unreadable_index_hides_names_and_proves_nothing() -> None:
    index = "model.safetensors.index.json"
    whole = TINY.but(sidecars={**TINY.sidecars, index: "i"})
    blind = whole.but(shards={}, sidecar_states={index: State.UNREADABLE})
    agreement = agreement_of([whole, blind])
    assert agreement.verdict is Verdict.UNDECIDED
    assert [difference.file for difference in agreement.differences] == [index]


def test_a_rank_that_could_not_read_anything_hides_nobody() -> None:
    heard = [witness(TINY, 0), Said(failed(1, "b", "/models", "EACCES: Permission denied")), witness(TINY, 2)]
    agreement = judge_all(heard)
    assert agreement.verdict is Verdict.UNDECIDED
    assert [(error.rank, error.message) for error in agreement.errors] == [(1, "EACCES: Permission denied")]
    assert agreement.groups[0].ranks == (0, 2)
    assert "rank 1 (b): EACCES" in agreement.summary


def test_a_rank_that_was_interrupted_proves_nothing_by_what_it_does_not_show() -> None:
    heard = [witness(TINY, 0), witness(TINY, 1), witness(FLIPPED, 2)]
    cut_short = msgspec.structs.replace(heard[2].fingerprint, content=None, sidecars=None, error="interrupted")
    agreement = judge_all([*heard[:2], Said(cut_short, table=())])
    assert agreement.verdict is Verdict.UNDECIDED
    assert agreement.differences == ()


def test_an_interrupted_ranks_identity_still_proves_a_difference() -> None:
    other = witness(TINY.with_shard(S2, metadata="pt"), 1).fingerprint
    cut_short = msgspec.structs.replace(other, content=None, sidecars=None, error="interrupted")
    assert judge_all([witness(TINY, 0), Said(cut_short)]).verdict is Verdict.DIFFER


def test_absent_ranks_are_named_and_come_after_a_difference() -> None:
    gone = {2: "silent for 61 s, was reading " + S1}
    assert agreement_of([TINY, TINY], absent=gone).verdict is Verdict.INCOMPLETE
    agreement = agreement_of([TINY, FLIPPED], absent=gone)
    assert (agreement.verdict, agreement.absent) == (Verdict.DIFFER, (2,))
    assert agreement.absent_detail == (f"rank 2: {gone[2]}",)


def test_absent_comes_before_undecided() -> None:
    agreement = agreement_of([TINY, TINY.with_shard(S2, state=State.UNREADABLE)], absent={2: "never came"})
    assert agreement.verdict is Verdict.INCOMPLETE
    assert len(agreement.errors) == 1


def test_a_rank_of_which_nothing_is_known_is_absent() -> None:
    agreement = judge([witness(TINY, 0)], world_size=2, stage=Stage.CONTENT, created=0.0, tool="")
    assert (agreement.verdict, agreement.absent) == (Verdict.INCOMPLETE, (1,))


def test_nobody_testifies_twice_or_from_outside() -> None:
    for heard in ([witness(TINY, 0), witness(TINY, 0)], [witness(TINY, 5)]):
        with pytest.raises(ValueError, match="once"):
            judge(heard, world_size=2, stage=Stage.CONTENT, created=0.0, tool="")


def test_equal_identities_alone_never_agree() -> None:
    agreement = agreement_of([TINY, FLIPPED], stage=Stage.IDENTITY, tables=False)
    assert agreement.verdict is Verdict.UNDECIDED
    assert agreement.weights_equal is None
    assert "no tensor byte was read" in agreement.summary


def test_other_identities_differ_without_a_byte_and_name_candidates() -> None:
    renamed = TINY.with_shard(S2, tensors=(("layers.1.v", "1"), ("lm_head", "h")))
    agreement = agreement_of([TINY, renamed, TINY], stage=Stage.IDENTITY)
    assert (agreement.verdict, agreement.stage) == (Verdict.DIFFER, Stage.IDENTITY)
    assert [(d.file, d.cause.candidate) for d in agreement.differences] == [(S2, True)]


def test_other_digest_layouts_are_told_so_and_not_called_different() -> None:
    heard = [witness(TINY, 0), witness(TINY, 1), witness(FLIPPED, 2, digest_layout=2)]
    agreement = judge_all(heard)
    assert agreement.verdict is Verdict.UNDECIDED
    assert "digest layout 2" in agreement.errors[0].message


def test_fast_and_whole_scans_of_one_content_are_one_group() -> None:
    heard = [witness(TINY, 0), witness(TINY, 1, fast=True), witness(FLIPPED, 2, fast=True)]
    agreement = judge_all(heard)
    assert [group.ranks for group in agreement.groups] == [(0, 1), (2,)]
    assert agreement.verdict is Verdict.DIFFER


def test_files_cut_in_other_ways_compare_by_sha256_or_not_at_all() -> None:
    cut = TINY.with_shard(S1, cut=Segmentation.EXTENTS)
    assert judge_all([witness(TINY, 0), witness(cut, 1)]).verdict is Verdict.AGREE
    agreement = judge_all([witness(TINY, 0), witness(cut, 1, fast=True)])
    assert agreement.verdict is Verdict.UNDECIDED
    assert agreement.weights_equal is None
    assert "cannot be compared" in agreement.warnings[0]


def test_what_no_index_names_is_counted_once() -> None:
    left_out = TINY.but(not_compared=(NotCompared(name="extra.safetensors", size=7),))
    assert agreement_of([left_out, left_out]).not_compared == left_out.not_compared


def test_equal_warnings_are_said_once_with_their_ranks() -> None:
    warned = TINY.but(warnings=("the cache is full",))
    assert agreement_of([warned, TINY, warned]).warnings == ("ranks [0,2]: the cache is full",)


def test_a_tokenizer_alone_does_not_stop_a_session_at_the_identity() -> None:
    other = TINY.but(sidecars={"config.json": "c", "tokenizer.json": "other"})
    assert groups_of(fingerprints_of([TINY, other, TINY]), Stage.IDENTITY) == ((0, 1, 2),)
    assert groups_of(fingerprints_of([TINY, other, TINY]), Stage.CONTENT) == ((0, 2), (1,))


def test_4096_ranks_are_judged_within_a_second() -> None:
    one = witness(TINY, 0).fingerprint
    for content in (lambda _rank: one.content, lambda rank: f"{rank // 2}", lambda rank: f"{rank}"):
        heard = [
            Said(msgspec.structs.replace(one, rank=n, copy_id=f"{n}", content=content(n), content_sha256=None))
            for n in range(4096)
        ]
        begun = time.process_time()
        agreement = judge_all(heard)
        assert time.process_time() - begun < 1.0
        assert sum(len(group.ranks) for group in agreement.groups) == 4096
