"""The verdict line's words, from facts."""

from __future__ import annotations

import msgspec
import pytest

from ckpt_tui.facts.agreement import Verdict
from ckpt_tui.facts.files import Claim, Finding, Severity, State
from ckpt_tui.facts.status import Phase
from ckpt_tui.report import verdicts
from ckpt_tui.stream.messages import Word
from tests.support.clocks import NOW
from tests.tui import streams


def test_all_from_the_cache_reads_in_the_fields_words() -> None:
    files = tuple(streams.result(f"m{number}", cached=True, index=number) for number in range(33))
    said = verdicts.scan_verdict(streams.scan_result(files), NOW)
    assert said.word is Word.VERIFIED
    matching = "33 of 33 weight files match the recorded hash (hub)"
    assert said.text == f"33/33 cached, 0.0 GiB read, 0.1 s, oldest digest 3 d; {matching}"
    assert said.code == 0


def test_without_recorded_hashes_it_is_done_and_says_that_nothing_was_there_to_check() -> None:
    said = verdicts.scan_verdict(streams.scan_result((streams.result("m", claim=False),)), NOW)
    assert (said.word, said.code) == (Word.DONE, 0)
    assert said.text.endswith("nothing recorded to check against")


def test_one_shard_without_a_recorded_hash_is_not_verified() -> None:
    files = (streams.result("a"), streams.result("b", claim=False))
    said = verdicts.scan_verdict(streams.scan_result(files), NOW)
    assert said.word is Word.DONE
    assert said.text.endswith("1 of 2 weight files match the recorded hash (hub)")


def test_two_things_make_a_digest_mismatch_and_are_told_apart() -> None:
    broken = Claim(kind="sums", algorithm="sha256", expected="00" * 32, holds=False, origin="SHA256SUMS")
    files = (
        streams.result("a", state=State.DIGEST_MISMATCH, claims=(broken,), error="sha256 1 is not the recorded 0"),
        streams.result("b", state=State.DIGEST_MISMATCH, claim=False, error="corruption: its bytes have moved"),
    )
    said = verdicts.scan_verdict(streams.scan_result(files), NOW)
    assert said.text.startswith("1 shard not as recorded, 1 shard corrupt; ")
    assert said.lines == (
        "a: not as recorded: sha256 1 is not the recorded 0",
        "b: corruption: its bytes have moved",
    )


def test_an_error_that_no_file_shows_is_the_headline() -> None:
    finding = Finding(code="corruption", severity=Severity.ERROR, message="a: other bytes than before")
    said = verdicts.scan_verdict(streams.scan_result((streams.result("a"),), findings=(finding,)), NOW)
    assert (said.word, said.code) == (Word.DAMAGED, 1)
    assert said.text.startswith("a: other bytes than before; ")


def test_damage_is_counted_by_state_and_listed_by_name() -> None:
    bad = streams.result("b", state=State.TRUNCATED, error="12,345 bytes short")
    said = verdicts.scan_verdict(streams.scan_result((streams.result("a"), bad)), NOW)
    assert (said.word, said.code) == (Word.DAMAGED, 1)
    assert said.text.startswith("1 shard truncated")
    assert said.lines == ("b: truncated: 12,345 bytes short",)


def test_what_could_not_be_read_is_undecided() -> None:
    bad = streams.result("b", state=State.UNREADABLE, error="EACCES: Permission denied")
    said = verdicts.scan_verdict(streams.scan_result((bad,), content=None), NOW)
    assert (said.word, said.code) == (Word.UNDECIDED, 3)


def test_a_suspect_file_is_named_beside_a_good_verdict() -> None:
    odd = streams.result("b", state=State.SUSPECT, error="12 MiB of zeros")
    said = verdicts.scan_verdict(streams.scan_result((odd,)), NOW)
    assert said.code == 0
    assert said.also == "1 shard suspect"


def test_a_long_list_is_cut_and_counted() -> None:
    bad = tuple(streams.result(f"m{number}", state=State.MISSING) for number in range(30))
    lines = verdicts.scan_verdict(streams.scan_result(bad), NOW).lines
    assert len(lines) == 8
    assert lines[-1] == "and 23 more"


def test_an_error_of_the_audit_without_a_file_is_the_outcome_so_far() -> None:
    said = verdicts.scan_trouble([], [Finding(code="x", severity=Severity.ERROR, message="the index names nothing")])
    assert said is not None
    assert said.text == "the index names nothing"
    assert verdicts.scan_trouble([], [Finding(code="x", severity=Severity.NOTE, message="well")]) is None


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (streams.status(3, Phase.LOST), "rank 3 lost"),
        (streams.status(1, cells="++!"), "bad files on rank 1"),
        (streams.status(1, Phase.FAILED), "rank 1 failed"),
    ],
)
def test_trouble_on_a_rank_is_named(status: object, said: str) -> None:
    row = verdicts.ranks_trouble([streams.status(0), status])  # type: ignore[list-item]
    assert row is not None
    assert row.text == said


def test_ranks_without_trouble_say_nothing() -> None:
    assert verdicts.ranks_trouble([streams.status(0), streams.status(1, Phase.ABSENT)]) is None


def test_a_lost_rank_is_named_even_where_ranks_differ() -> None:
    found = msgspec.structs.replace(streams.agreement(), absent=(4,), absent_detail=("rank 4: silent for 61 s",))
    said = verdicts.agreement_verdict(found, NOW)
    assert (said.word, said.code, said.also) == (Word.DIFFER, 1, "rank 4 lost")
    assert "rank 4: silent for 61 s" in said.lines
    assert "model.layers.3.mlp.down_proj.weight" in said.lines[0]


def test_an_agreement_says_how_old_it_is() -> None:
    found = msgspec.structs.replace(streams.agreement(), verdict=Verdict.AGREE, differences=(), summary="all agree")
    assert (
        verdicts.agreement_verdict(found, NOW).text
        == "all agree; 4 ranks on 4 hosts, 132/132 cached, oldest digest 50 m"
    )
