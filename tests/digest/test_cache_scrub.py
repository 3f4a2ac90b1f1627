"""Reading remembered files again: what is intact, what rotted, what merely changed, and what cannot be proven."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ckpt_tui.digest import pagecache, scan
from ckpt_tui.digest.buffers import new_buffer
from ckpt_tui.digest.cache import encode, parse
from ckpt_tui.digest.control import Control
from ckpt_tui.digest.filesystem import FileSystem, FileSystems
from ckpt_tui.digest.pagecache import PastCache, resident
from ckpt_tui.digest.passes import Moved
from ckpt_tui.digest.progress import ScanProgress
from ckpt_tui.digest.upkeep import Upkeep
from ckpt_tui.facts.cached import Fate, Scrubbed
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.files import State
from ckpt_tui.facts.outcome import Exit, Interrupted, scan_code
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from tests.digest.conftest import named
from tests.support.checkpoints import flip_bit, noise, payload_offset

Scan = Callable[..., ScanResult]
SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def scrub(cache: Path) -> Callable[..., list[Scrubbed]]:
    """Scrub what is remembered, with a cache of the test's own."""

    def run(*paths: Path, limit: int | None = None, max_bytes: int | None = None) -> list[Scrubbed]:
        upkeep = Upkeep(ScanSettings(cache_dir=str(cache)), SystemClock())
        entries = upkeep.to_scrub([str(path) for path in paths], older_than=None, limit=limit, max_bytes=max_bytes)
        return list(upkeep.scrub(entries, Control(SystemClock()), ScanProgress()).scrubbed)

    return run


Scrub = Callable[..., list[Scrubbed]]


def fates(found: list[Scrubbed]) -> dict[str, Fate]:
    return {Path(one.path).name: one.fate for one in found}


def of(found: list[Scrubbed], name: str = SHARD) -> Scrubbed:
    return next(one for one in found if one.path.endswith(name))


def rewrite_record(cache: Path, path: Path, **fields: object) -> None:
    """Change what is remembered of a file."""
    for place in cache.rglob("*.digest"):
        found = parse(place.read_bytes())
        assert isinstance(found, tuple)
        if found[0].path == os.fsencode(path):
            place.write_bytes(encode(found[0], found[1]._replace(**fields)))  # type: ignore[arg-type]


def proven_here(path: Path) -> bool:
    """Whether the tests' own disk is one that can be read past the page cache."""
    return FileSystems().of(str(path / "_"), path.stat().st_dev).type in {"ext4", "xfs"}


@pytest.mark.parametrize("sha256", [True, False])
def test_what_is_as_it_was_is_intact_and_counts_as_read_now(
    sha256: bool, folder: Path, cache: Path, scanned: Scan, scrub: Scrub
) -> None:
    (folder / "odd.gguf").write_bytes(b"GGUF" + noise("odd", 3_000_001))
    (folder / "empty.txt").touch()
    before = scanned(folder, sha256=sha256, include=("*.gguf",))
    found = scrub()
    assert set(fates(found).values()) == {Fate.INTACT}
    assert len(found) == before.totals.files
    if proven_here(folder):
        assert all(one.proven for one in found)
    after = scanned(folder, sha256=sha256, include=("*.gguf",))
    assert after.totals.bytes_read == 0
    for old, new in zip(before.files, after.files, strict=True):
        assert (new.digest, new.sha256) == (old.digest, old.sha256)
        assert (new.hashed_at or 0) > (old.hashed_at or 0)


def test_other_bytes_under_the_same_stat_are_corruption_that_scans_speak_of_too(
    folder: Path, cache: Path, scanned: Scan, scrub: Scrub
) -> None:
    right = named(scanned(folder), SHARD)
    record = segments_with_one_changed(cache, folder / SHARD)
    rewrite_record(cache, folder / SHARD, digest=b"o" * 16, sha256=b"s" * 32, segments=record)
    found = of(scrub())
    assert found.fate is Fate.CORRUPT
    assert "1 of 4 segments, first model.layers.1.mlp.1.weight" in (found.detail or "")
    result = scanned(folder)
    assert (named(result, SHARD).state, named(result, SHARD).sha256) == (State.DIGEST_MISMATCH, right.sha256)
    assert "corruption" in [finding.code for finding in result.findings]
    assert scan_code(result) is Exit.DIFFERENT
    assert of(scrub()).fate is Fate.INTACT, "as it was when it was last read"
    assert scan_code(scanned(folder)) is Exit.DIFFERENT, "and nobody wrote it"


def segments_with_one_changed(cache: Path, path: Path) -> bytes:
    for place in cache.rglob("*.digest"):
        found = parse(place.read_bytes())
        assert isinstance(found, tuple)
        if found[0].path == os.fsencode(path):
            segments = found[1].segments
            return segments[:32] + bytes(16) + segments[48:]
    raise AssertionError(path)


def test_a_header_that_rotted_away_is_corruption(folder: Path, cache: Path, scanned: Scan, scrub: Scrub) -> None:
    """A record is put in the place of bytes that are no header any more: what rot would leave behind."""
    opaque = folder / SHARD
    scanned(folder)
    stat = opaque.stat()
    raw = bytearray(opaque.read_bytes())
    raw[8] ^= 0x20
    opaque.write_bytes(raw)
    now = opaque.stat()
    stamp = (now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino)
    assert stat.st_size == now.st_size
    for sha256 in (b"s" * 32, None):
        rewrite_record(cache, opaque, stamp=stamp, sha256=sha256)
        found = of(scrub())
        assert (found.fate, found.detail) == (Fate.CORRUPT, "its header can no longer be followed")


def test_a_reading_that_does_not_come_again_accuses_what_reads(
    folder: Path, scanned: Scan, scrub: Scrub, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned(folder)
    real = PastCache.fetch
    flips = [1]
    inode = (folder / SHARD).stat().st_ino

    def fetch(self: PastCache, offset: int, length: int, buffer: memoryview) -> memoryview:
        data = real(self, offset, length, buffer)
        if os.fstat(self._descriptor).st_ino == inode and offset + length == os.fstat(self._descriptor).st_size:
            data[-1] ^= flips.pop() if flips else 0
        return data

    monkeypatch.setattr(PastCache, "fetch", fetch)
    found = of(scrub())
    assert found.fate is Fate.CORRUPT
    assert "what reads it is not to be trusted" in (found.detail or "")
    assert [finding.code for finding in scanned(folder).findings] == ["corruption"]


def test_a_file_whose_stat_moved_is_a_change_and_not_read(folder: Path, scanned: Scan, scrub: Scrub) -> None:
    scanned(folder)
    flip_bit(folder / SHARD, payload_offset(folder / SHARD), keep_mtime=True)
    (folder / "config.json").unlink()
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")
    found = scrub()
    assert (of(found).fate, of(found).detail) == (Fate.CHANGED, "ctime")
    assert fates(found)["config.json"] is Fate.GONE
    assert fates(found)["tokenizer.json"] is Fate.UNREADABLE


def test_a_file_that_changes_under_the_scrub_is_a_change(
    folder: Path, scanned: Scan, scrub: Scrub, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned(folder)
    original = PastCache.fetch

    def fetch(self: PastCache, offset: int, length: int, buffer: memoryview) -> memoryview:
        data = original(self, offset, length, buffer)
        flip_bit(folder / SHARD, payload_offset(folder / SHARD))
        return data

    monkeypatch.setattr(PastCache, "fetch", fetch)
    assert of(scrub(folder / SHARD)).fate is Fate.CHANGED


def test_a_file_that_somebody_holds_open_for_writing_is_no_corruption(
    folder: Path, cache: Path, scanned: Scan, scrub: Scrub
) -> None:
    scanned(folder)
    rewrite_record(cache, folder / SHARD, digest=b"o" * 16)
    with (folder / SHARD).open("r+b"):
        found = of(scrub())
    assert (found.fate, found.detail) == (Fate.CHANGED, "somebody holds it open for writing")


def test_the_oldest_are_read_first_and_no_more_than_asked_for(
    folder: Path, cache: Path, scanned: Scan, scrub: Scrub
) -> None:
    scanned(folder)
    rewrite_record(cache, folder / "config.json", hashed_at=1.0)
    rewrite_record(cache, folder / SHARD, hashed_at=2.0)
    assert list(fates(scrub(limit=2))) == ["config.json", SHARD]
    rewrite_record(cache, folder / SHARD, hashed_at=1.0)
    assert list(fates(scrub(max_bytes=10))) == [SHARD], "one at least"
    assert list(fates(scrub(folder / "tokenizer.json"))) == ["tokenizer.json"]


def test_a_scrub_that_is_stopped_keeps_what_it_has_read(folder: Path, cache: Path, scanned: Scan) -> None:
    scanned(folder)
    upkeep = Upkeep(ScanSettings(cache_dir=str(cache)), SystemClock())
    entries = upkeep.to_scrub([], older_than=None, limit=None, max_bytes=None)
    control, progress = Control(SystemClock()), ScanProgress()
    real = control.spend

    def spend(size: int) -> None:
        real(size)
        if progress.files_done == 2:
            control.cancel()

    control.spend = spend  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        upkeep.scrub(entries, control, progress)
    renewed = [file.hashed_at for file in scanned(folder).files]
    old = max(entry.record.hashed_at for entry in entries)
    assert sum((moment or 0) > old for moment in renewed) >= 2


@pytest.fixture
def open_file(tmp_path: Path) -> Iterator[tuple[int, bytes]]:
    path = tmp_path / "file"
    raw = noise("file", 100_001)
    path.write_bytes(raw)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor, raw
    os.close(descriptor)


def kind(type_: str) -> FileSystem:
    return FileSystem(type_, "source", type_)


@pytest.mark.parametrize("direct", [True, False])
def test_any_piece_is_read_wherever_it_begins(
    direct: bool, open_file: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor, raw = open_file
    if not direct:
        monkeypatch.setattr(PastCache, "_go_direct", lambda _: False)
    past, buffer = PastCache(descriptor, len(raw), kind("ext4")), new_buffer()
    for offset, length in ((0, 8), (8, 4096), (4095, 2), (4096, 8192), (1, 100_000), (100_000, 1), (100_001, 0)):
        assert past.fetch(offset, length, buffer) == raw[offset : offset + length]
    with pytest.raises(Moved):
        past.fetch(90_000, 20_000, buffer)


def test_pages_that_stay_make_it_not_proven(open_file: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor, raw = open_file
    monkeypatch.setattr(PastCache, "_go_direct", lambda _: False)
    assert PastCache(descriptor, len(raw), kind("ext4")).doubt() is None or not proven_here(Path("/tmp"))
    with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapping:
        assert mapping[0] == raw[0]
        past = PastCache(descriptor, len(raw), kind("ext4"))
        assert resident(descriptor, len(raw))
        assert past.doubt() == "pages stayed in the page cache"


def test_direct_reading_that_leaves_pages_behind_was_none(
    open_file: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor, raw = open_file
    counts = iter([0, 25])
    monkeypatch.setattr(pagecache, "resident", lambda *_: next(counts))
    monkeypatch.setattr(PastCache, "_go_direct", lambda _: True)
    assert PastCache(descriptor, len(raw), kind("btrfs")).doubt() == "direct I/O went through the page cache"


@pytest.mark.parametrize("type_", ["tmpfs", "zfs", "fuse.sshfs", "unknown"])
def test_what_keeps_bytes_of_its_own_proves_nothing(type_: str, open_file: tuple[int, bytes]) -> None:
    descriptor, raw = open_file
    assert "memory of its own" in (PastCache(descriptor, len(raw), kind(type_)).doubt() or "")


def test_rot_on_the_disk_is_found_though_the_page_cache_still_holds_the_old_bytes(
    block_device: tuple[Path, Path], cache: Path, scrub: Scrub
) -> None:
    place, image = block_device
    path = place / "model.gguf"
    raw = b"GGUF" + noise("rot", 1 << 20)
    path.write_bytes(raw)
    os.sync()
    settings = ScanSettings(cache_dir=str(cache))
    before = scan(path, settings)
    on_disk = image.read_bytes().index(raw[500_000:500_100])
    with image.open("r+b") as disk:
        disk.seek(on_disk)
        disk.write(bytes([raw[500_000] ^ 1]))
        disk.flush()
        os.fsync(disk.fileno())
    assert path.read_bytes() == raw, "memory still has the old ones"
    assert scan(path, ScanSettings(cache_dir=str(cache), rehash=True)).content == before.content
    (found,) = scrub()
    assert (found.fate, found.proven) == (Fate.CORRUPT, True)
    result = scan(path, settings)
    assert "corruption" in [finding.code for finding in result.findings]
    assert scan_code(result) is Exit.DIFFERENT
