"""The comparison itself, over an exchange in memory: what goes around, and what a peer may get away with."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from ckpt_tui.digest import Scanner
from ckpt_tui.facts.agreement import Agreement, Stage, Verdict
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.drill import Reread
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.ranks.exchange import Exchange
from ckpt_tui.ranks.messages import PROTOCOL, Answer, Hello, Step, decode, encode
from ckpt_tui.ranks.witness import Witness
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint

Tamper = Callable[[Step, bytes], bytes]


class Memory:
    """What all ranks of one exchange gave, step by step."""

    def __init__(self, ranks: int) -> None:
        self.given: dict[tuple[Step, int], bytes] = {}
        self.barrier = threading.Barrier(ranks, timeout=20)

    def through(self, rank: int, tamper: Tamper | None) -> MemoryGather:
        """One rank's way into it."""
        return MemoryGather(self, rank, tamper)


class MemoryGather:
    """A gather whose ranks are threads. `tamper` changes what this rank sends, as a faulty one might."""

    def __init__(self, memory: Memory, rank: int, tamper: Tamper | None) -> None:
        self._memory, self._rank, self._tamper = memory, rank, tamper

    @property
    def absent(self) -> Mapping[int, str]:
        """Nobody falls out."""
        return {}

    def gather(self, step: Step, payload: bytes) -> dict[int, bytes]:
        """All ranks' payloads."""
        memory = self._memory
        memory.given[step, self._rank] = self._tamper(step, payload) if self._tamper else payload
        memory.barrier.wait()
        ranks = range(memory.barrier.parties)
        return {rank: memory.given[step, rank] for rank in ranks}


def witness(
    folder: Path,
    rank: int,
    *,
    read: bool = True,
    unfinished: str | None = None,
    again: Callable[[str, int, int], Reread] | None = None,
) -> Witness:
    """What a rank knows of a folder."""
    scanner = Scanner(str(folder), ScanSettings(use_cache=False))
    return Witness(
        rank=rank,
        host=f"node-{rank}",
        path=str(folder),
        tool="ckpt-tui test",
        segments=scanner.segments,
        leaves=scanner.leaves,
        again=again or scanner.read_again,
        survey=scanner.survey(),
        result=scanner.run() if read else None,
        unfinished=unfinished,
    )


def compare(
    witnesses: list[Witness], *, tampers: Mapping[int, Tamper] | None = None, stage: Stage = Stage.CONTENT
) -> tuple[Agreement, Memory]:
    """The one agreement that all ranks come to, and what was sent for it."""
    memory = Memory(len(witnesses))

    def work(one: Witness) -> Agreement:
        members = {
            other.rank: Hello(
                protocol=PROTOCOL,
                layout=1,
                tool=other.tool,
                rank=other.rank,
                world_size=len(witnesses),
                host=other.host,
                pid=1,
                token="x",
            )
            for other in witnesses
        }
        exchange = Exchange(
            memory.through(one.rank, (tampers or {}).get(one.rank)),
            members=members,
            world_size=len(witnesses),
            absent={},
            clock=SystemClock(),
        )
        assert exchange.same_identity(one) in {True, False}
        return exchange.content(one) if stage is Stage.CONTENT else exchange.identity(one)

    with ThreadPoolExecutor(len(witnesses)) as pool:
        agreements = [future.result(30) for future in [pool.submit(work, one) for one in witnesses]]
    assert len({msgspec.json.encode(agreement) for agreement in agreements}) == 1
    return agreements[0], memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint."""
    return write_checkpoint(tmp_path / "model")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A copy with one flipped bit."""
    shard = write_checkpoint(tmp_path / "damaged") / "model-00001-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard))
    return shard.parent


def test_when_all_agree_no_table_travels(folder: Path) -> None:
    agreement, memory = compare([witness(folder, rank) for rank in range(3)])
    assert agreement.verdict is Verdict.AGREE
    assert {step for step, _ in memory.given} == {Step.VOTE, Step.CONTENT}
    assert {len(sent) for (step, _), sent in memory.given.items() if step is Step.VOTE} == {32}
    assert all(rank.bytes_sent < 1000 for rank in agreement.ranks)


def test_only_one_member_of_each_group_sends_tables(folder: Path, damaged: Path) -> None:
    folders = [folder, damaged, folder, folder]
    agreement, memory = compare([witness(one, rank) for rank, one in enumerate(folders)])
    assert agreement.verdict is Verdict.DIFFER
    for step in (Step.FILES, Step.SEGMENTS):
        assert [bool(memory.given[step, rank]) for rank in range(4)] == [True, True, False, False]
    sent = {rank: sum(len(raw) for (_, one), raw in memory.given.items() if one == rank) for rank in range(4)}
    assert {report.rank: report.bytes_sent for report in agreement.ranks} == sent


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 40, b"\x80", b"\x93\x01\x02"])
def test_a_message_that_cannot_be_read_is_that_ranks_error_on_all(folder: Path, garbage: bytes) -> None:
    agreement, _ = compare(
        [witness(folder, rank) for rank in range(3)],
        tampers={1: lambda step, payload: garbage if step is Step.CONTENT else payload},
    )
    assert agreement.verdict is Verdict.UNDECIDED
    (error,) = agreement.errors
    assert error.rank == 1
    assert "its message cannot be read" in error.message


def test_a_rank_cannot_speak_for_another(folder: Path) -> None:
    def impersonate(step: Step, payload: bytes) -> bytes:
        if step is not Step.CONTENT:
            return payload
        answer = decode(payload, Answer)
        return encode(msgspec.structs.replace(answer, fingerprint=msgspec.structs.replace(answer.fingerprint, rank=0)))

    agreement, _ = compare([witness(folder, rank) for rank in range(2)], tampers={1: impersonate})
    assert agreement.verdict is Verdict.UNDECIDED
    assert "speaks for rank 0" in agreement.errors[0].message


def test_text_that_may_not_be_shown_never_reaches_the_agreement(folder: Path) -> None:
    def inject(step: Step, payload: bytes) -> bytes:
        return payload.replace(b"/model", b"/\x1b[31m") if step is Step.CONTENT else payload

    agreement, _ = compare([witness(folder, rank) for rank in range(2)], tampers={0: inject})
    assert agreement.verdict is Verdict.UNDECIDED
    assert b"\\u001b" not in msgspec.json.encode(agreement)


def test_tables_that_cannot_be_read_leave_the_difference_proven(folder: Path, damaged: Path) -> None:
    agreement, _ = compare(
        [witness(folder, 0), witness(damaged, 1)],
        tampers={1: lambda step, payload: b"\xc1" if step in {Step.FILES, Step.SEGMENTS} else payload},
    )
    assert agreement.verdict is Verdict.DIFFER


def test_a_rank_that_had_to_stop_is_no_agreement(folder: Path) -> None:
    agreement, _ = compare([witness(folder, 0), witness(folder, 1, read=False, unfinished="not read to the end")])
    assert agreement.verdict is Verdict.UNDECIDED
    assert agreement.stage is Stage.CONTENT
    assert [(error.rank, error.message) for error in agreement.errors] == [(1, "not read to the end")]


def test_where_nobody_read_to_the_end_metadata_is_compared_and_never_agrees(folder: Path, tmp_path: Path) -> None:
    stopped = {"read": False, "unfinished": "not read to the end"}
    agreement, _ = compare([witness(folder, rank, **stopped) for rank in range(2)])  # type: ignore[arg-type]
    assert (agreement.stage, agreement.verdict) == (Stage.IDENTITY, Verdict.UNDECIDED)
    other = write_checkpoint(tmp_path / "other", prefix="other")
    agreement, _ = compare([witness(folder, 0, **stopped), witness(other, 1, **stopped)])  # type: ignore[arg-type]
    assert (agreement.stage, agreement.verdict) == (Stage.IDENTITY, Verdict.DIFFER)
    assert agreement.differences


def test_the_identity_stage_names_the_files_whose_headers_differ(folder: Path, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path / "other")
    (other / "config.json").write_text('{"model_type": "another"}\n')
    agreement, memory = compare([witness(folder, 0, read=False), witness(other, 1, read=False)], stage=Stage.IDENTITY)
    assert [difference.file for difference in agreement.differences] == ["config.json"]
    assert (Step.CONTENT, 0) not in memory.given


def test_before_a_tensor_is_read_the_headers_name_the_tensors_that_differ(folder: Path, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path / "other", prefix="other.layers")
    agreement, memory = compare(
        [witness(folder, 0, read=False), witness(other, 1, read=False), witness(folder, 2, read=False)],
        stage=Stage.IDENTITY,
    )
    assert agreement.verdict is Verdict.DIFFER
    named = {segment.name.split(".")[0] for one in agreement.differences for segment in one.segments}
    assert {"model", "other"} <= named
    assert not memory.given[Step.ENTRIES, 2]


def test_a_reshaped_tensor_is_named_alone(folder: Path, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path / "other")
    shard = other / "model-00001-of-00002.safetensors"
    raw = shard.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    name = next(key for key in header if key != "__metadata__")
    header[name]["shape"] = [math.prod(header[name]["shape"])]
    text = json.dumps(header, separators=(",", ":")).encode().ljust(length)
    assert len(text) == length
    shard.write_bytes(raw[:8] + text + raw[8 + length :])
    agreement, _ = compare([witness(folder, 0, read=False), witness(other, 1, read=False)], stage=Stage.IDENTITY)
    (difference,) = agreement.differences
    assert [segment.name for segment in difference.segments] == [name]
