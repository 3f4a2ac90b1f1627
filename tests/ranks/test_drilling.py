"""Before anybody is blamed, what differs is read once more and held side by side: over an exchange in memory."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ckpt_tui.digest import Scanner
from ckpt_tui.facts.agreement import CauseCode, Standing, Verdict
from ckpt_tui.facts.drill import Reread
from ckpt_tui.facts.outcome import CkptError
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.present.drills import lines
from ckpt_tui.ranks.drilling import BYTES
from ckpt_tui.ranks.messages import Digests, Looks, Seen, Step, decode, encode
from tests.ranks.test_exchange import Tamper, compare, witness
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Three copies, the second with one flipped bit."""
    made = [write_checkpoint(tmp_path / name) for name in "abc"]
    shard = made[1] / "model-00001-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard))
    return made


def flaky(_name: str, _offset: int, length: int) -> Reread:
    """A machine that gives other bytes now."""
    return Reread(b"\x5a" * length)


def test_the_flipped_bit_itself_is_named_and_was_read_twice(folders: list[Path]) -> None:
    agreement, memory = compare([witness(folder, rank) for rank, folder in enumerate(folders)])
    (difference,) = agreement.differences
    assert difference.cause.code is CauseCode.BIT_FLIP
    (segment,) = difference.segments
    assert segment.drill is not None
    assert segment.drill.read_again == {"A": True, "B": True}
    assert [side.bits for side in segment.drill.sides] == [1]
    assert [group.standing for group in agreement.groups] == [Standing.MAJORITY, Standing.MINORITY]
    # Only the two that speak for a group have sent bytes, and what differs of them alone.
    sent = {rank: len(memory.given[Step.BYTES, rank]) for rank in range(3)}
    assert sent[2] == 0
    assert 0 < sent[0] < BYTES
    assert agreement.ranks[0].bytes_sent > sent[0] > agreement.ranks[2].bytes_sent


def test_equal_copies_ask_for_nothing_of_this(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    _, memory = compare([witness(folder, 0), witness(folder, 1)])
    assert not {step for step, _ in memory.given} & {Step.LEAVES, Step.BYTES}


def test_what_reads_otherwise_again_is_unstable_and_accuses_no_file(folders: list[Path]) -> None:
    agreement, _ = compare(
        [witness(folder, rank, again=flaky if rank == 1 else None) for rank, folder in enumerate(folders)]
    )
    (difference,) = agreement.differences
    assert difference.cause.code is CauseCode.UNSTABLE_READ
    assert agreement.verdict is Verdict.DIFFER
    assert [group.standing for group in agreement.groups] == [Standing.MAJORITY, Standing.UNDECIDED]
    assert "read again, it gave other bytes" in agreement.groups[1].evidence


def test_where_the_majority_reads_otherwise_again_nobody_is_accused(folders: list[Path]) -> None:
    agreement, _ = compare(
        [witness(folder, rank, again=flaky if rank == 0 else None) for rank, folder in enumerate(folders)]
    )
    assert agreement.differences[0].cause.code is CauseCode.UNSTABLE_READ
    assert {group.standing for group in agreement.groups} == {Standing.UNDECIDED}


def test_what_cannot_be_read_again_is_said(folders: list[Path]) -> None:
    def gone(name: str, _offset: int, _length: int) -> Reread:
        raise CkptError(f"{name}: EIO")

    agreement, _ = compare(
        [witness(folder, rank, again=gone if rank == 1 else None) for rank, folder in enumerate(folders)]
    )
    drill = agreement.differences[0].segments[0].drill
    assert drill is not None
    assert "EIO" in drill.errors["B"]


def test_a_second_reading_that_may_come_from_memory_is_said_to(folders: list[Path]) -> None:
    def doubtful(name: str, offset: int, length: int) -> Reread:
        data = Scanner(str(folders[1]), ScanSettings(use_cache=False))
        data.run()
        return data.read_again(name, offset, length)._replace(doubt="tmpfs may answer from memory of its own")

    agreement, _ = compare(
        [witness(folder, rank, again=doubtful if rank == 1 else None) for rank, folder in enumerate(folders)]
    )
    (segment,) = agreement.differences[0].segments
    assert segment.drill is not None
    assert segment.drill.not_proven["B"] == "tmpfs may answer from memory of its own"
    assert segment.drill.read_again == {"A": True, "B": True}
    (again,) = [line.text for line in lines(segment) if line.label == "again"]
    assert "read twice, the same; not proven to come from the disk: " in again
    assert "B (tmpfs may answer from memory of its own)" in again


def _short(step: Step, payload: bytes) -> bytes:
    if step is Step.BYTES and payload:
        looks = decode(payload, Looks).looks
        return encode(Looks(looks=tuple(msgspec.structs.replace(one, data=one.data[:-1]) for one in looks)))
    return payload


def _many(step: Step, payload: bytes) -> bytes:
    if step is Step.BYTES and payload:
        return encode(Looks(looks=(*decode(payload, Looks).looks, Seen(data=b"x"))))
    return encode(Digests(leaves=(b"x" * 7,))) if step is Step.LEAVES else payload


def _random(step: Step, payload: bytes) -> bytes:
    return b"\xc1\xff" * 9 if step in {Step.LEAVES, Step.BYTES} else payload


@pytest.mark.parametrize("tamper", [_short, _many, _random])
def test_what_a_peer_tells_in_another_measure_is_left_out(folders: list[Path], tamper: Tamper) -> None:
    agreement, _ = compare([witness(folder, rank) for rank, folder in enumerate(folders)], tampers={1: tamper})
    assert agreement.verdict is Verdict.DIFFER
    assert [group.standing for group in agreement.groups] == [Standing.MAJORITY, Standing.MINORITY]
    assert agreement.differences[0].cause.code is not CauseCode.BIT_FLIP
