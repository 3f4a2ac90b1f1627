"""Attempts to make the cache lie. After each of them the next scan is right, on clocks of any coarseness."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from ckpt_tui.digest import cache as cache_module
from ckpt_tui.digest import scan, validity
from ckpt_tui.digest.cache import DigestCache, encode, parse
from ckpt_tui.digest.control import Control
from ckpt_tui.facts.files import MissReason, Source, State
from ckpt_tui.facts.outcome import Exit, scan_code
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from tests.digest.conftest import SetClock, named
from tests.support.checkpoints import flip_bit, noise, payload_offset, write_checkpoint
from tests.support.unprivileged import run_unprivileged
from tests.support.waiting import wait_until

Scan = Callable[..., ScanResult]
Act = Callable[[Path, bytes], None]


def truth(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """One shard of a few blocks, and nothing else."""
    folder = write_checkpoint(tmp_path / "model", shards=1, tensors=1, shape=(512, 1024), index=False)
    for sidecar in folder.glob("*.json"):
        sidecar.unlink()
    return next(folder.iterdir())


class CoarseDisk:
    """A file system with coarse times: stats give mtimes cut to ticks, and ctimes by a set clock, cut to ticks too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: SetClock, tick: float) -> None:
        self.clock = clock
        self._monkeypatch = monkeypatch
        self._tick = round(tick * 1e9)
        self._first = self._now()
        self._moments: dict[int, int] = {}
        monkeypatch.setattr(validity.Stamp, "of", self._stamp)

    def touched(self, path: Path) -> None:
        """Something was done to a file just now."""
        self._moments[path.stat().st_ino] = self._now()

    def other_bytes(self, act: Act, path: Path) -> None:
        """Put other bytes of equal size there now, and the old mtime back."""
        other_bytes(act, path)
        self.touched(path)

    def meddle(self, act: Act, path: Path, times: int) -> None:
        """Do so in the middle of each of the next readings."""
        real = Control.spend
        read = 0

        def spend(control: Control, size: int) -> None:
            nonlocal times, read
            read += size
            if times and read > 0:
                times -= 1
                read = -path.stat().st_size
                self.other_bytes(act, path)
            real(control, size)

        self._monkeypatch.setattr(Control, "spend", spend)

    def _now(self) -> int:
        return self._cut(int(self.clock.time() * 1e9))

    def _cut(self, moment: int) -> int:
        return moment // self._tick * self._tick

    def _stamp(self, stat: os.stat_result) -> validity.Stamp:
        ctime = self._moments.get(stat.st_ino, self._first)
        return validity.Stamp(stat.st_size, self._cut(stat.st_mtime_ns), ctime, stat.st_ino)


@pytest.fixture(params=[(tick, phase) for tick in (0.004, 1.0, 2.0) for phase in (0.0, 0.4, 0.99)])
def disk(request: pytest.FixtureRequest, clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> CoarseDisk:
    """Coarse times, at the beginning, in the middle and at the end of a tick."""
    tick, phase = request.param
    clock.now += phase * tick
    return CoarseDisk(monkeypatch, clock, tick)


def in_place(path: Path, raw: bytes) -> None:
    with path.open("r+b") as file:
        file.write(raw)


def through_a_mapping(path: Path, raw: bytes) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[:] = raw


def like_cp_p(path: Path, raw: bytes) -> None:
    other = path.with_name(".source")
    other.write_bytes(raw)
    stat = path.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with other.open("rb") as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    shutil.copystat(other, path)
    other.unlink()


def like_rsync_a(path: Path, raw: bytes) -> None:
    part = path.with_name(f".{path.name}.Xa8f2c")
    part.write_bytes(raw)
    shutil.copystat(path, part)
    part.replace(path)


def through_a_hard_link(path: Path, raw: bytes) -> None:
    link = path.with_name("link")
    link.hardlink_to(path)
    in_place(link, raw)
    link.unlink()


def truncated_and_extended(path: Path, raw: bytes) -> None:
    os.truncate(path, 10)
    with path.open("r+b") as file:
        file.write(raw)


def removed_and_made_again(path: Path, raw: bytes) -> None:
    path.unlink()
    path.write_bytes(raw)


ACTS = [
    in_place,
    through_a_mapping,
    like_cp_p,
    like_rsync_a,
    through_a_hard_link,
    truncated_and_extended,
    removed_and_made_again,
]


def other_bytes(act: Act, path: Path) -> None:
    """Put other bytes of equal size there, and the old mtime back."""
    stat = path.stat()
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    act(path, bytes(raw))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("act", ACTS)
def test_bytes_that_change_within_the_tick_of_the_scan(act: Act, disk: CoarseDisk, shard: Path, scanned: Scan) -> None:
    before = scanned(shard, clock=disk.clock)
    disk.other_bytes(act, shard)
    after = scanned(shard, clock=disk.clock)
    assert after.files[0].sha256 == truth(shard) != before.files[0].sha256
    assert scanned(shard, clock=disk.clock).files[0].sha256 == truth(shard)


@pytest.mark.parametrize("act", ACTS)
def test_bytes_that_change_between_the_stat_and_the_read(
    act: Act, disk: CoarseDisk, shard: Path, scanned: Scan
) -> None:
    disk.clock.on_sleep = lambda: disk.other_bytes(act, shard)
    during = scanned(shard, clock=disk.clock)
    assert during.files[0].sha256 == truth(shard)
    assert scanned(shard, clock=disk.clock).files[0].sha256 == truth(shard)
    disk.other_bytes(act, shard)
    assert scanned(shard, clock=disk.clock).files[0].sha256 == truth(shard)


@pytest.mark.parametrize("act", ACTS)
def test_bytes_that_change_while_they_are_hashed(act: Act, disk: CoarseDisk, shard: Path, scanned: Scan) -> None:
    disk.meddle(act, shard, times=1)
    during = scanned(shard, clock=disk.clock, threads=1)
    assert during.totals.bytes_read > during.totals.bytes, "once more"
    assert during.files[0].sha256 == truth(shard)
    assert scanned(shard, clock=disk.clock).files[0].sha256 == truth(shard)


@pytest.mark.parametrize("act", ACTS)
def test_bytes_that_keep_changing_while_they_are_hashed(act: Act, disk: CoarseDisk, shard: Path, scanned: Scan) -> None:
    disk.meddle(act, shard, times=2)
    during = scanned(shard, clock=disk.clock, threads=1)
    assert (during.files[0].state, during.content) == (State.CHANGED, None)
    after = scanned(shard, clock=disk.clock)
    assert (after.files[0].source, after.files[0].sha256) == (Source.READ, truth(shard))


@pytest.mark.parametrize("act", ACTS)
def test_bytes_that_change_while_the_clock_is_set_back_to_the_very_tick(
    act: Act, disk: CoarseDisk, shard: Path, scanned: Scan
) -> None:
    start = disk.clock.now
    disk.touched(shard)
    stamp = validity.Stamp.of(shard.stat())
    first = scanned(shard, clock=disk.clock)
    disk.clock.now = start
    disk.other_bytes(act, shard)
    if act not in {like_rsync_a, removed_and_made_again}:
        assert validity.Stamp.of(shard.stat()) == stamp, "nothing in the stat tells"
    second = scanned(shard, clock=disk.clock)
    assert second.files[0].sha256 == truth(shard) != first.files[0].sha256
    disk.clock.now += 3600
    assert scanned(shard, clock=disk.clock).files[0].sha256 == truth(shard)


def test_a_ctime_in_the_future_is_not_believed_until_its_time_has_come(
    disk: CoarseDisk, shard: Path, scanned: Scan
) -> None:
    disk.clock.now += 100
    disk.touched(shard)
    disk.clock.now -= 50
    assert "lies in the future" in scanned(shard, clock=disk.clock).warnings[0]
    other_bytes(in_place, shard)
    assert scanned(shard, clock=disk.clock).files[0].sha256 == truth(shard)
    disk.clock.now += 60
    assert scanned(shard, clock=disk.clock).warnings == ()
    assert scanned(shard, clock=disk.clock).files[0].source is Source.CACHE


@pytest.mark.parametrize("act", ACTS)
def test_bytes_that_change_right_after_a_scan_on_the_real_clock(act: Act, shard: Path, scanned: Scan) -> None:
    scanned(shard)
    other_bytes(act, shard)
    assert scanned(shard).files[0].sha256 == truth(shard)
    assert scanned(shard).files[0].source is Source.CACHE


def record_of(cache: Path) -> Path:
    """The one record there is."""
    (found,) = cache.rglob("*.digest")
    return found


def test_a_record_that_is_cut_at_any_byte_is_read_again(shard: Path, cache: Path, scanned: Scan) -> None:
    raw = shard.read_bytes()
    scanned(shard)
    whole = record_of(cache).read_bytes()
    in_place(shard, raw[:-1] + b"!")
    right = truth(shard)
    for length in range(len(whole)):
        record_of(cache).write_bytes(whole[:length])
        result = scanned(shard)
        assert (result.files[0].sha256, result.files[0].miss_reason) == (right, MissReason.CORRUPT_RECORD), length
        assert result.warnings == ()


def test_a_record_of_another_version_is_read_again_and_replaced(
    shard: Path, cache: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "_FORMAT", 99)
    scanned(shard)
    monkeypatch.undo()
    assert scanned(shard).files[0].miss_reason is MissReason.OTHER_LAYOUT
    assert scanned(shard).files[0].source is Source.CACHE


def test_a_record_of_another_host_is_no_record_wherever_it_lies(shard: Path, cache: Path, scanned: Scan) -> None:
    scanned(shard, host_id="theirs")
    record = record_of(cache)
    assert scanned(shard, host_id="ours").files[0].miss_reason is MissReason.NEW
    found = parse(record.read_bytes())
    assert isinstance(found, tuple)
    key = found[0]._replace(host="ours")
    ours = DigestCache(cache, "ours").place(key)
    shutil.copy(record, ours)
    again = scanned(shard, host_id="ours")
    assert (again.files[0].miss_reason, again.files[0].miss_detail) == (
        MissReason.CORRUPT_RECORD,
        "written for another file",
    )


def test_foreign_files_in_the_folder_are_neither_read_nor_touched(shard: Path, cache: Path, scanned: Scan) -> None:
    scanned(shard)
    folder = record_of(cache).parent
    foreign = {
        "notes.txt": b"mine",
        f"{'0' * 32}.digest": b"not a record",
        f"{'0' * 64}.logical": b"not a digest",
        ".hidden.digest": b"",
        "ledger.old": b"[]",
    }
    for name, raw in foreign.items():
        (folder / name).write_bytes(raw)
    os.mkfifo(folder / f"{'1' * 32}.digest")
    assert scanned(shard).totals.bytes_read == 0
    assert {name: (folder / name).read_bytes() for name in foreign} == foreign


def test_a_folder_that_may_only_be_read_answers_and_is_one_warning_where_it_does_not(tmp_path: Path) -> None:
    # Not below tmp_path, which another user may not enter.
    base = Path(f"/tmp/ckpt-tui-test-{os.getpid()}")
    base.mkdir(mode=0o755)
    try:
        shard, other = base / "one.gguf", base / "two.gguf"
        for path in (shard, other):
            path.write_bytes(b"GGUF" + noise(path.name, 5000))
        settings = ScanSettings(cache_dir=str(base / "cache"), host_id="host", runtime_dir=str(base))
        scan(shard, settings)
        folder = record_of(base / "cache").parent
        for place, mode in ((record_of(base / "cache"), 0o444), (folder, 0o555), (base / "cache", 0o555)):
            place.chmod(mode)

        def run() -> bytes:
            warm, cold = scan(shard, settings), scan(other, settings)
            return json.dumps(
                [warm.totals.bytes_read, list(warm.warnings), cold.files[0].sha256, list(cold.warnings)]
            ).encode()

        read, warnings, sha256, more = json.loads(run_unprivileged(run))
        assert (read, warnings) == (0, [])
        assert sha256 == truth(other)
        assert more == ["the digest cache is not written: EACCES: Permission denied"]
    finally:
        for place in base.rglob("*"):
            if place.is_dir():
                place.chmod(0o755)
        shutil.rmtree(base)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 16 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False, timeout=30).returncode:
        pytest.skip("a file system can be mounted by root alone, and not in every container")
    yield place
    subprocess.run(["umount", str(place)], check=True, timeout=30)


def test_a_full_disk_is_one_warning_and_leaves_nothing_half_written(tmp_path: Path, small_disk: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=8, tensors=600, shape=(1, 1))
    settings = ScanSettings(cache_dir=str(small_disk))
    right = scan(folder, ScanSettings(use_cache=False))
    for _ in range(3):
        result = scan(folder, settings)
        assert (result.content, result.content_sha256) == (right.content, right.content_sha256)
        assert result.warnings == ("the digest cache is not written: ENOSPC: No space left on device",)
    assert result.totals.files_cached > 0, "what went in is used"
    assert not list(small_disk.rglob(".*"))
    flip_bit(folder / "model-00003-of-00008.safetensors", payload_offset(folder / "model-00003-of-00008.safetensors"))
    assert scan(folder, settings).content == scan(folder, ScanSettings(use_cache=False)).content != right.content


PROGRAM = (
    "import sys; from ckpt_tui.digest import scan; from ckpt_tui.facts.settings import ScanSettings\n"
    "settings = ScanSettings(cache_dir=sys.argv[2], runtime_dir=sys.argv[3], max_rate=float(sys.argv[4]))\n"
    "print(scan(sys.argv[1], settings).content)"
)


def process(folder: Path, cache: Path, runtime: Path, rate: float = 0.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), str(cache), str(runtime), str(rate)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("many", [2, 8])
def test_processes_at_once_over_files_that_change_leave_nothing_stale(
    many: int, tmp_path: Path, cache: Path, scanned: Scan
) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=3, tensors=2, shape=(512, 256))
    shard = folder / "model-00001-of-00003.safetensors"
    (tmp_path / "run").mkdir(mode=0o700)
    started = [process(folder, cache, tmp_path / "run") for _ in range(many)]
    while any(one.poll() is None for one in started):
        other_bytes(in_place, shard)
        os.sched_yield()
    for one in started:
        one.communicate(timeout=60)
        assert one.returncode == 0
    result = scanned(folder)
    assert named(result, shard.name).sha256 == truth(shard)
    assert result.content == scanned(folder, use_cache=False).content
    assert not list(cache.rglob(".*"))


def more_records_than(cache: Path, least: int) -> bool:
    return len(list(cache.rglob("*.digest"))) > least


def test_kill_9_in_the_middle_leaves_nothing_that_the_next_scan_stumbles_over(
    tmp_path: Path, cache: Path, scanned: Scan
) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=6, tensors=2, shape=(512, 256))
    (tmp_path / "run").mkdir(mode=0o700)
    for round_ in range(1, 4):
        child = process(folder, cache, tmp_path / "run", rate=2.0**20)
        wait_until(partial(more_records_than, cache, round_), what="some are finished")
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
    result = scanned(folder, runtime_dir=str(tmp_path / "run"))
    assert result.totals.files_cached >= 4
    assert result.content == scanned(folder, use_cache=False).content
    assert scanned(folder).totals.bytes_read == 0


def test_ctrl_c_loses_nothing_that_was_finished(tmp_path: Path, cache: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=5, tensors=2, shape=(512, 256))
    words = [sys.executable, "-m", "ckpt_tui", "scan", "--json", str(folder), "--cache-dir", str(cache)]
    child = subprocess.Popen([*words, "--max-rate", "1M"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(list(cache.rglob("*.digest"))) >= 2, what="some are finished")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    finished = len(list(cache.rglob("*.digest")))
    assert (child.returncode, out) == (130, b"")
    assert b"remembered" in err
    done = subprocess.run(words, capture_output=True, timeout=60, check=True)
    totals = json.loads(done.stdout)["totals"]
    assert totals["files_cached"] == finished < totals["files"]


def contradict(cache: Path, **fields: object) -> None:
    """Make a record say that its file held other bytes under the stat that it still has."""
    for place in cache.rglob("*.digest"):
        found = parse(place.read_bytes())
        assert isinstance(found, tuple)
        key, record = found
        place.write_bytes(encode(key, record._replace(**{"digest": b"o" * 16, **fields})))  # type: ignore[arg-type]


def test_other_bytes_under_the_same_stat_are_corruption_and_stay_so_until_the_file_is_written(
    shard: Path, cache: Path, scanned: Scan
) -> None:
    right = scanned(shard).files[0].sha256
    contradict(cache, sha256=b"s" * 32)
    for settings in ({"rehash": True}, {}, {"rehash": True}, {"max_age": 0.0}, {}):
        result = scanned(shard, **settings)
        assert (result.files[0].state, result.files[0].sha256) == (State.DIGEST_MISMATCH, right)
        (finding,) = result.findings
        assert (finding.code, finding.file) == ("corruption", shard.name)
        assert (b"o" * 6).hex() in finding.message
        assert scan_code(result) is Exit.DIFFERENT
    shard.write_bytes(shard.read_bytes())
    mended = scanned(shard)
    assert (mended.files[0].state, mended.findings) == (State.GOOD, ())
    assert scan_code(scanned(shard)) is Exit.SAME


def test_bytes_that_rot_under_a_record_without_a_trace_are_found_by_rehash(
    shard: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store through an old mapping, with the one check taken away that would have seen it coming."""
    with shard.open("r+b") as writer, mmap.mmap(writer.fileno(), 0) as mapping:
        mapping[-1] ^= 1
        monkeypatch.setattr("ckpt_tui.digest.reader.open_for_writing", lambda _: False)
        scanned(shard)
        mapping[-1] ^= 1
        assert scanned(shard).files[0].source is Source.CACHE
        found = scanned(shard, rehash=True)
        assert [finding.code for finding in found.findings] == ["corruption"]
        assert found.files[0].sha256 == truth(shard)
        assert scan_code(scanned(shard)) is Exit.DIFFERENT


def test_corruption_in_a_header_is_seen_without_being_asked_for(shard: Path, cache: Path, scanned: Scan) -> None:
    scanned(shard)
    found = parse(record_of(cache).read_bytes())
    assert isinstance(found, tuple)
    contradict(cache, segments=b"h" * 16 + found[1].segments[16:])
    result = scanned(shard)
    assert result.files[0].miss_reason is MissReason.CHANGED
    assert [finding.code for finding in result.findings] == ["corruption"]
    assert scan_code(result) is Exit.DIFFERENT
