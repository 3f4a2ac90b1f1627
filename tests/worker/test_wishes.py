"""What a screen may wish of a worker, while it reads and after: to rest, to start over, to tell the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ckpt_tui.facts.cached import Standing
from ckpt_tui.facts.files import MissReason
from ckpt_tui.facts.status import Cell, Phase
from ckpt_tui.stream.messages import Again, Inventory, Pause
from tests.support.checkpoints import write_checkpoint
from tests.support.ranks import free_port
from tests.worker.child import scan_argv, watching, worker_argv

if TYPE_CHECKING:
    from pathlib import Path

    from ckpt_tui.stream.state import StreamState


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", shards=3, tensors=2, shape=(256, 512))


def staying(target: Path, cache: Path, **settings: object) -> list[str]:
    argv = scan_argv(target, cache, **settings)
    at = argv.index("_worker") + 1
    return [*argv[:at], "--stay", *argv[at:]]


def reading(state: StreamState) -> bool:
    return 0 in state.ranks and any(file.cell is Cell.READING for file in state.files.get(0, {}).values())


def test_a_paused_scan_reads_nothing_until_it_goes_on(checkpoint: Path, tmp_path: Path) -> None:
    with watching(staying(checkpoint, tmp_path / "cache", max_rate=1_500_000.0)) as child:
        child.until(reading)
        child.source.send(Pause(on=True))
        state = child.until(lambda state: state.ranks[0].status.paused)
        assert state.ranks[0].status.doing.startswith("paused by its screen at ")
        # What was in flight is counted; from then on nothing moves while three beats go by.
        seen: list[int] = []

        def rests(state: StreamState) -> bool:
            seen.append(state.ranks[0].status.bytes_done)
            return state.ranks[0].heard - since >= 1.0

        since = state.ranks[0].heard + 0.5
        child.until(lambda state: state.ranks[0].heard >= since)
        state = child.until(rests)
        assert len({*seen}) == 1
        assert state.ranks[0].status.rate == 0.0
        assert state.verdict is None
        child.source.send(Pause(on=False))
        state = child.decided()
        assert not state.ranks[0].status.paused
        assert state.verdict is not None
        assert state.verdict.code == 0


def test_a_paused_scan_leaves_at_once(checkpoint: Path, tmp_path: Path) -> None:
    with watching(staying(checkpoint, tmp_path / "cache", max_rate=100_000.0)) as child:
        child.until(reading)
        child.source.send(Pause(on=True))
        child.until(lambda state: state.ranks[0].status.paused)
        state = child.left(5)
    assert state.ended is not None
    assert state.ended.code == 130


def test_a_scan_starts_over_after_its_verdict_and_reads_every_byte(checkpoint: Path, tmp_path: Path) -> None:
    with watching(staying(checkpoint, tmp_path / "cache")) as child:
        child.decided()
    with watching(staying(checkpoint, tmp_path / "cache")) as child:
        first = child.decided().verdict
        assert first is not None
        assert "3/3 cached" in first.text
        child.source.send(Again())
        state = child.until(lambda state: state.verdict != first and state.verdict and state.verdict.code is not None)
        assert state.verdict is not None
        assert "0/3 cached" in state.verdict.text
        reasons = {file.result.miss_reason for file in state.files[0].values() if file.result}
        assert reasons == {MissReason.FORCED}
        assert child.left(5).ended is not None


def test_a_scan_starts_over_while_it_reads(checkpoint: Path, tmp_path: Path) -> None:
    with watching(staying(checkpoint, tmp_path / "cache", max_rate=1_000_000.0)) as child:
        child.until(reading)
        child.source.send(Again())
        child.until(lambda state: any("again" in line.text for line in state.logs.values()))
        state = child.decided()
    assert {file.cell for file in state.files[0].values()} == {Cell.READ}


def test_what_the_cache_holds_is_told_during_a_scan_and_after_it(checkpoint: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with watching(staying(checkpoint, cache, max_rate=1_500_000.0)) as child:
        child.until(reading)
        child.source.send(Inventory())
        before = child.until(lambda state: state.cached).cached
        assert before is not None
        assert before.totals.records < 6
        child.decided()
        child.source.send(Inventory())
        after = child.until(lambda state: state.cached is not before and state.cached).cached
    assert after is not None
    assert after.totals.records == len(after.files) == 6
    assert [file.hashed_at for file in after.files] == sorted(file.hashed_at for file in after.files)
    assert {file.standing for file in after.files} == {Standing.CURRENT}
    assert [folder.path for folder in after.folders] == [str(checkpoint)]


def test_a_cache_that_cannot_be_read_is_an_empty_one_and_no_crash(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    with watching(staying(checkpoint, tmp_path / "cache")) as child:
        child.decided()
        child.source.send(Inventory())
        state = child.until(lambda state: state.cached)
    assert state.cached is not None
    assert state.cached.files == ()


def test_a_rank_that_is_paused_beyond_the_rank_timeout_is_slow_and_not_lost(checkpoint: Path, tmp_path: Path) -> None:
    """Case R04 d."""
    common = [f"--master=127.0.0.1:{free_port()}", "--world-size=2", "--no-cache", "--max-rate=2M", "--rank-timeout=2"]
    with (
        watching(worker_argv("ranks", str(checkpoint), "--rank=0", *common)) as zero,
        watching(worker_argv("ranks", str(checkpoint), "--rank=1", *common)) as one,
    ):
        one.until(lambda state: 1 in state.ranks and state.ranks[1].status.bytes_done > 0, 60)
        one.source.send(Pause(on=True))
        state = zero.until(lambda state: state.ranks[1].status.paused, 60)
        assert state.ranks[1].status.doing.startswith("paused by its screen")
        since = state.ranks[1].heard
        state = zero.until(lambda state: state.ranks[1].heard >= since + 4.0)
        assert state.verdict is None
        assert state.ranks[1].status.phase is Phase.CONTENT
        one.source.send(Pause(on=False))
        assert zero.decided(60).verdict == one.decided(60).verdict
        assert zero.state.verdict is not None
        assert zero.state.verdict.code == 0
