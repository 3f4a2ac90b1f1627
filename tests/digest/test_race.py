"""No write may hide: files that move while, just before or just after they are read."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt_tui.checkpoint.model import Checkpoint
from ckpt_tui.digest import Scanner, validity
from ckpt_tui.digest import scanner as scanner_module
from ckpt_tui.digest.control import Control
from ckpt_tui.digest.hashing import Hasher, Outcome
from ckpt_tui.facts.files import MissReason, Source, State
from ckpt_tui.facts.outcome import Exit, scan_code
from ckpt_tui.facts.scan import ScanResult
from tests.digest.conftest import SetClock, named
from tests.support.checkpoints import flip_bit, noise, payload_offset, safetensors_bytes, tensor, write_checkpoint

Scan = Callable[..., ScanResult]


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """One shard and nothing else; a few blocks long, so that there is time to meddle."""
    folder = write_checkpoint(tmp_path / "model", shards=1, tensors=1, shape=(1024, 1024), index=False)
    for sidecar in folder.glob("*.json"):
        sidecar.unlink()
    return next(folder.iterdir())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class CoarseDisk:
    """Stats whose times are those of a set clock, cut to whole ticks: what old kernels and FAT do, only coarser."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: SetClock, tick: float) -> None:
        self._clock = clock
        self._tick = tick
        self._written = 0.0
        self.touch()
        monkeypatch.setattr(validity.Stamp, "of", self._stamp)

    def touch(self) -> None:
        """The file is written now."""
        self._written = self._clock.time() // self._tick * self._tick

    def _stamp(self, stat: os.stat_result) -> validity.Stamp:
        moment = int(self._written * 1e9) + 1  # no whole second, so that the step is the local one
        return validity.Stamp(stat.st_size, moment, moment, stat.st_ino)


TICK = 0.05


@pytest.mark.parametrize("step", [TICK, 0.0])
def test_a_write_in_the_tick_of_the_stat_is_seen_because_a_step_is_waited(
    step: float, shard: Path, scanned: Scan, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no step the cache would say the old digest: that is what the rule is for, and that this test can fail."""
    monkeypatch.setattr(validity, "LOCAL_STEP", step)
    clock.now += TICK * 0.4  # somewhere within a tick
    disk = CoarseDisk(monkeypatch, clock, TICK)
    first = scanned(shard, clock=clock)
    flip_bit(shard, payload_offset(shard))
    disk.touch()
    second = scanned(shard, clock=clock)
    seen = second.files[0].sha256 == sha256(shard)
    assert seen is (step >= TICK)
    assert (second.files[0].miss_reason is MissReason.CHANGED) is seen
    assert (first.content != second.content) is seen


def test_a_write_between_the_stat_and_the_read_is_in_the_digest(
    shard: Path, scanned: Scan, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = CoarseDisk(monkeypatch, clock, TICK)
    clock.on_sleep = lambda: (flip_bit(shard, payload_offset(shard)), disk.touch())
    first = scanned(shard, clock=clock)
    assert first.files[0].sha256 == sha256(shard)
    assert scanned(shard, clock=clock).files[0].sha256 == sha256(shard)


def test_files_whose_times_are_whole_seconds_are_read_two_seconds_after_their_stat(
    shard: Path, scanned: Scan, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = validity.Stamp.of
    monkeypatch.setattr(validity.Stamp, "of", lambda stat: of(stat)._replace(ctime_ns=int(clock.time()) * 10**9))
    before = clock.now
    scanned(shard, clock=clock)
    assert clock.now - before >= 2.0


def meddle(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int) -> None:
    """Do something after the first block of each of the next `times` readings."""
    real = Control.spend
    blocks = 0
    left = times

    def spend(control: Control, size: int) -> None:
        nonlocal blocks, left
        blocks += 1
        if left and blocks % 2 == 1:
            left -= 1
            blocks = 0
            act()
        real(control, size)

    monkeypatch.setattr(Control, "spend", spend)


def rewrite(path: Path) -> None:
    flip_bit(path, path.stat().st_size - 1, keep_mtime=True)


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes()[:-1] + b"!")
    stat = path.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def shrink(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("act", [rewrite, replace])
def test_a_file_that_moved_once_is_read_once_more(
    act: Callable[[Path], None], shard: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddle(monkeypatch, lambda: act(shard), times=1)
    result = scanned(shard)
    assert result.files[0].state is State.GOOD
    assert result.files[0].sha256 == sha256(shard)
    assert result.totals.bytes_read > result.totals.bytes
    monkeypatch.undo()
    assert scanned(shard).files[0].source is Source.CACHE


@pytest.mark.parametrize(
    ("act", "field"), [(rewrite, "ctime"), (replace, "inode"), (grow, "size"), (shrink, "size"), (Path.unlink, "gone")]
)
def test_a_file_that_keeps_moving_is_changed_and_nothing_is_remembered(
    act: Callable[[Path], None], field: str, shard: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddle(monkeypatch, lambda: act(shard), times=9)
    result = scanned(shard)
    file = result.files[0]
    assert (file.state, file.digest, file.sha256) == (State.CHANGED, None, None)
    assert field in (file.error or "")
    assert (result.identity, result.content) == (None, None)
    assert scan_code(result) is Exit.UNDECIDED
    monkeypatch.undo()
    if shard.exists():
        assert scanned(shard).files[0].source is Source.READ


def test_a_header_that_is_not_the_surveys_any_more_makes_a_file_changed(
    shard: Path, scanner: Callable[..., Scanner]
) -> None:
    late = scanner(shard)
    late.survey()
    raw = shard.read_bytes()
    shard.write_bytes(raw.replace(b"mlp.0.weight", b"mlp.9.weight", 1))
    result = late.run()
    assert result.files[0].state is State.CHANGED
    assert "header" in (result.files[0].error or "")
    # Also where the cache knows the file as it is now.
    assert scanner(shard).run().files[0].state is State.GOOD
    shard.write_bytes(raw)
    late = scanner(shard)
    late.survey()
    shard.write_bytes(raw.replace(b"mlp.0.weight", b"mlp.9.weight", 1))
    scanner(shard).run()
    assert late.run().files[0].state is State.CHANGED


def test_a_config_that_is_not_the_surveys_any_more_is_changed(folder: Path, scanner: Callable[..., Scanner]) -> None:
    late = scanner(folder)
    late.survey()
    flip_bit(folder / "config.json", 3)
    config = late.run().files[0]
    assert (config.name, config.state) == ("config.json", State.CHANGED)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_that_somebody_holds_open_for_writing_is_not_remembered(
    mapped: bool, shard: Path, scanned: Scan
) -> None:
    writer = shard.open("r+b")
    held = mmap.mmap(writer.fileno(), 0) if mapped else writer
    if mapped:
        writer.close()
    result = scanned(shard)
    assert result.files[0].digest
    assert "open for writing" in result.warnings[0]
    assert scanned(shard).files[0].source is Source.READ
    held.close()
    assert scanned(shard).warnings == ()
    assert scanned(shard).files[0].source is Source.CACHE


def test_a_store_through_an_old_mapping_is_seen_though_no_timestamp_moves(shard: Path, scanned: Scan) -> None:
    with shard.open("r+b") as writer, mmap.mmap(writer.fileno(), 0) as mapping:
        mapping[-1] ^= 1  # the page is dirty from here on: a further store into it leaves no trace in the stat
        first = scanned(shard)
        stat = shard.stat()
        mapping[-1] ^= 1
        assert shard.stat().st_ctime_ns == stat.st_ctime_ns
        second = scanned(shard)
    assert first.content != second.content


def test_a_file_from_the_future_is_not_remembered(shard: Path, scanned: Scan, clock: SetClock) -> None:
    result = scanned(shard, clock=clock)  # this clock stands in the past of the file
    assert "lies in the future" in result.warnings[0]
    assert scanned(shard, clock=clock).files[0].source is Source.READ


def test_a_link_that_leads_to_another_file_of_equal_size_and_times_is_read(tmp_path: Path, scanned: Scan) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    blobs = []
    for number in range(2):
        blob = tmp_path / f"blob{number}"
        blob.write_bytes(b"GGUF" + noise(str(number), 100))
        os.utime(blob, ns=(10**18, 10**18))
        blobs.append(blob)
    link = folder / "model.gguf"
    contents = []
    for blob in blobs:
        link.unlink(missing_ok=True)
        link.symlink_to(blob)
        contents.append(scanned(link).files[0].sha256)
    assert contents == [sha256(blob) for blob in blobs]


@pytest.fixture
def while_the_last_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], object]], Path]:
    """Does something to the first file, which is named, each time that the last has been read."""
    first, last = sorted(folder.glob("*.safetensors"))
    first.write_bytes(safetensors_bytes({"big": tensor("big", (256, 256))}))  # the largest is read first
    real = Control.spend

    def install(act: Callable[[Path], object]) -> Path:
        def spend(control: Control, size: int) -> None:
            if size == last.stat().st_size:
                act(first)
            real(control, size)

        monkeypatch.setattr(Control, "spend", spend)
        return first

    return install


Meanwhile = Callable[[Callable[[Path], object]], Path]


@pytest.mark.parametrize("act", [rewrite, replace, lambda path: path.chmod(0o640)], ids=["rewrite", "replace", "chmod"])
@pytest.mark.parametrize("known", [False, True], ids=["read", "cached"])
def test_a_file_that_moves_while_another_is_read_is_read_once_more(  # noqa: PLR0917 - fixtures
    known: bool,
    act: Callable[[Path], None],
    folder: Path,
    scanned: Scan,
    while_the_last_is_read: Meanwhile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = while_the_last_is_read(act)
    if known:
        scanned(first)
    result = scanned(folder, threads=1)
    monkeypatch.undo()
    assert (named(result, first.name).state, named(result, first.name).sha256) == (State.GOOD, sha256(first))
    assert result.content
    assert result.content == scanned(folder, use_cache=False).content
    assert result.totals.bytes_read > sum(file.size for file in result.files if file.name != first.name)


@pytest.mark.parametrize("act", [grow, Path.unlink])
@pytest.mark.parametrize("known", [False, True], ids=["read", "cached"])
def test_a_file_that_is_another_than_was_surveyed_in_the_end_is_changed(
    known: bool, act: Callable[[Path], None], folder: Path, scanned: Scan, while_the_last_is_read: Meanwhile
) -> None:
    first = while_the_last_is_read(act)
    if known:
        scanned(first)
    result = scanned(folder, threads=1)
    assert named(result, first.name).state is State.CHANGED
    assert (result.identity, result.content, result.content_sha256) == (None, None, None)
    assert scan_code(result) is not Exit.SAME


def test_a_file_that_never_rests_is_changed(
    folder: Path, scanned: Scan, while_the_last_is_read: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done with is not what it was when the last word is said, so no digest speaks for the whole."""
    first = while_the_last_is_read(rewrite)
    real = Hasher.confirm

    def confirm(hasher: Hasher, outcome: Outcome) -> Outcome:
        if outcome.file.name == first.name:
            rewrite(first)
        return real(hasher, outcome)

    monkeypatch.setattr(Hasher, "confirm", confirm)
    result = scanned(folder, threads=1)
    assert named(result, first.name).state is State.CHANGED
    assert (result.identity, result.content, result.content_sha256) == (None, None, None)
    assert scan_code(result) is not Exit.SAME


def test_an_index_that_is_another_than_the_one_by_which_the_files_were_found_is_changed(
    folder: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = scanner_module.locate

    def locate(*target: str, **settings: object) -> Checkpoint:
        found = real(*target, **settings)  # type: ignore[arg-type]
        rewrite(folder / "model.safetensors.index.json")
        return found

    monkeypatch.setattr(scanner_module, "locate", locate)
    result = scanned(folder)
    assert named(result, "model.safetensors.index.json").state is State.CHANGED
    assert (result.identity, result.content) == (None, None), "it may name other shards"
