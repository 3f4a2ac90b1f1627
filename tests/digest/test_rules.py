"""The pure rules of the digest room: stats, file systems, claims; and the two things that threads obey."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ckpt_tui.checkpoint.model import CheckpointFile
from ckpt_tui.digest.cache import Record
from ckpt_tui.digest.control import Control
from ckpt_tui.digest.filesystem import FileSystem, FileSystems
from ckpt_tui.digest.hashing import Outcome
from ckpt_tui.digest.host import host_id
from ckpt_tui.digest.result import file_result
from ckpt_tui.digest.scheduler import Job, run_longest_first
from ckpt_tui.digest.validity import Miss, Stamp, Wants, moved, refusal, rest, step, unfit
from ckpt_tui.facts.files import Claim, MissReason, Role, Segmentation, Source, State
from ckpt_tui.facts.outcome import Interrupted
from tests.digest.conftest import SetClock

STAMP = Stamp(size=10, mtime_ns=1_000, ctime_ns=2_000, inode=3)
RECORD = Record(STAMP, 100.0, Segmentation.EXTENTS, b"d" * 16, b"s" * 32, None, b"d" * 16, b"")


@pytest.mark.parametrize(
    ("change", "field"),
    [({"size": 11}, "size"), ({"mtime_ns": 1_001}, "mtime"), ({"ctime_ns": 1_999}, "ctime"), ({"inode": 4}, "inode")],
)
def test_any_field_that_moved_is_a_miss_that_names_it(change: dict[str, int], field: str) -> None:
    stamp = STAMP._replace(**change)
    assert moved(STAMP, stamp) == field
    assert refusal(RECORD, stamp, Wants(), max_age=None, now=200.0) == Miss(MissReason.CHANGED, field)


def test_a_record_answers_while_nothing_moved_and_lacks_nothing() -> None:
    assert refusal(RECORD, STAMP, Wants(), max_age=None, now=200.0) is None
    assert refusal(RECORD, STAMP, Wants(sha256=False), max_age=100.0, now=200.0) is None
    without = RECORD._replace(sha256=None)
    assert refusal(without, STAMP, Wants(), max_age=None, now=200.0) == Miss(MissReason.LACKS_SHA256)
    assert refusal(without, STAMP, Wants(sha256=False), max_age=None, now=200.0) is None
    claimed = refusal(RECORD, STAMP, Wants(git_sha1=True), max_age=None, now=200.0)
    assert claimed is not None
    assert claimed.reason is MissReason.LACKS_SHA256


@pytest.mark.parametrize("now", [200.1, 99.9])
def test_an_age_that_is_too_high_or_not_known_expires(now: float) -> None:
    found = refusal(RECORD, STAMP, Wants(), max_age=100.0, now=now)
    assert found is not None
    assert found.reason is MissReason.EXPIRED


def test_what_is_written_or_from_the_future_is_not_remembered() -> None:
    stamp = STAMP._replace(ctime_ns=5 * 10**9)
    assert unfit(stamp, now=5.0, written=False) is None
    assert unfit(stamp, now=4.9, written=False)
    assert unfit(stamp, now=9.0, written=True)


def test_what_changed_a_moment_ago_on_a_shared_file_system_is_not_remembered() -> None:
    stamp = STAMP._replace(ctime_ns=5 * 10**9)
    assert unfit(stamp, now=64.9, written=False, shared=True)
    assert unfit(stamp, now=65.1, written=False, shared=True) is None
    assert unfit(stamp, now=6.0, written=False) is None


def file_system(type_: str) -> FileSystem:
    return FileSystem(type_, "source", type_)


def test_the_step_is_short_on_local_file_systems_with_fine_times_alone() -> None:
    fine, whole = STAMP, STAMP._replace(ctime_ns=7 * 10**9)
    for type_ in ("ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs"):
        assert step(file_system(type_), fine) == 0.05
        assert step(file_system(type_), whole) == 2.0
    for type_ in ("nfs4", "lustre", "fuse.sshfs", "vfat", "unknown"):
        assert step(file_system(type_), fine) == 2.0


def test_only_a_file_of_this_machine_that_was_long_left_alone_is_read_at_once() -> None:
    ctime = 5.000000001
    stamp = STAMP._replace(ctime_ns=5 * 10**9 + 1)
    local, remote = file_system("ext4"), file_system("nfs4")
    assert rest(local, stamp, now=ctime + 0.051) == 0
    assert rest(local, stamp, now=ctime + 0.049) == 0.05
    assert rest(local, stamp, now=ctime - 9) == 0.05
    assert rest(remote, stamp, now=ctime + 3600) == 2.0
    whole = STAMP._replace(ctime_ns=5 * 10**9)
    assert rest(local, whole, now=6.9) == 2.0
    assert rest(local, whole, now=7.1) == 0


MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:22 / /data rw - tmpfs tmpfs rw
23 21 0:40 / /home/a\\040b rw - nfs4 server:/export/a\\040b rw,vers=4.2
24 21 0:50 /sub /data/btrfs rw - btrfs /dev/sdb rw
25 21 0:60 / /mnt/s3 rw - fuse.mount-s3 mount-s3 rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> FileSystems:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    return FileSystems(str(table))


def test_a_file_lies_on_the_mount_of_its_device(mounts: FileSystems) -> None:
    assert str(mounts.of("/models/w", os.makedev(8, 1))) == "ext4 /dev/sda1"
    nfs = mounts.of("/home/a b/w", os.makedev(0, 40))
    assert (nfs.type, nfs.source, nfs.shared_source) == ("nfs4", "server:/export/a b", "server:/export/a b")
    assert nfs.dependable
    assert not nfs.local


def test_where_no_mount_has_the_device_the_deepest_mount_above_decides(mounts: FileSystems) -> None:
    assert mounts.of("/data/btrfs/w", os.makedev(0, 99)).type == "btrfs"
    assert mounts.of("/data/btrfsen/w", os.makedev(0, 99)).type == "tmpfs"


def test_a_source_that_names_nothing_is_told_apart_by_its_device(mounts: FileSystems, tmp_path: Path) -> None:
    assert mounts.of("/data/w", os.makedev(0, 22)).key == "tmpfs:tmpfs:0:22"
    fuse = mounts.of("/mnt/s3/w", os.makedev(0, 60))
    assert not fuse.dependable
    assert fuse.shared_source is None
    unknown = FileSystems(str(tmp_path / "none")).of("/w", os.makedev(9, 9))
    assert (unknown.type, unknown.dependable) == ("unknown", False)


def test_this_machines_own_file_system_is_found(tmp_path: Path) -> None:
    assert FileSystems().of(str(tmp_path / "w"), tmp_path.stat().st_dev).type != "unknown"


def test_the_host_that_was_given_wins_and_is_one_line() -> None:
    assert host_id("node\n1") == "node\\n1"
    assert host_id() == host_id() != ""


def claim(algorithm: str, expected: str) -> Claim:
    return Claim(kind="hub-blob", algorithm=algorithm, expected=expected, holds=None, origin="blobs/x")


def outcome(*claims: Claim, state: State = State.GOOD, record: Record | None = RECORD) -> Outcome:
    file = CheckpointFile(
        name="w", raw_name=b"w", path=Path("w"), role=Role.WEIGHTS, size=10, state=state,
        segmentation=Segmentation.EXTENTS, claims=claims,
    )  # fmt: skip
    return Outcome(file, state, record=record, source=Source.CACHE)


SHA256 = (b"s" * 32).hex()


def test_a_claim_is_settled_by_the_digest_it_is_about_and_else_left_open() -> None:
    kept = file_result(outcome(claim("sha256", SHA256.upper())))
    assert (kept.state, kept.claims[0].holds) == (State.GOOD, True)
    broken = file_result(outcome(claim("sha256", "0" * 64)))
    assert (broken.state, broken.claims[0].holds) == (State.DIGEST_MISMATCH, False)
    assert SHA256[:12] in (broken.error or "")
    for record in (None, RECORD._replace(sha256=None)):
        still = file_result(outcome(claim("sha256", "0" * 64), record=record))
        assert (still.state, still.claims[0].holds) == (State.GOOD, None)
    other = file_result(outcome(claim("git-sha1", "0" * 40), claim("blake3", "0" * 64)))
    assert [settled.holds for settled in other.claims] == [None, None]


def test_a_kept_claim_clears_a_suspect_file_and_no_claim_excuses_a_cut_one() -> None:
    kept = claim("sha256", SHA256)
    assert file_result(outcome(kept, state=State.SUSPECT)).state is State.GOOD
    assert file_result(outcome(state=State.SUSPECT)).state is State.SUSPECT
    assert file_result(outcome(kept, state=State.OVERLONG)).state is State.OVERLONG
    assert file_result(outcome(claim("sha256", "0" * 64), state=State.TRUNCATED)).state is State.TRUNCATED


def test_the_rate_limit_gives_every_byte_its_time_whoever_reads_it(clock: SetClock) -> None:
    control = Control(clock, max_rate=100.0)
    start = clock.now
    for _ in range(5):
        control.spend(100)
    assert clock.now - start == pytest.approx(4.9)


def test_who_waits_for_his_turn_when_a_pause_begins_reads_nothing_during_it(clock: SetClock) -> None:
    control = Control(clock, max_rate=100.0)

    def pause() -> None:
        control.paused = True
        clock.on_sleep = look

    def look() -> None:
        if clock.now < 1100:
            clock.on_sleep = look
        else:
            control.paused = False

    clock.on_sleep = pause
    control.spend(300)
    assert clock.now >= 1100


def test_the_wish_to_stop_ends_a_wait(clock: SetClock) -> None:
    control = Control(clock)
    clock.on_sleep = control.cancel
    with pytest.raises(Interrupted):
        control.wait_until(clock.now + 3600)
    assert clock.now < 1001


def test_the_longest_job_is_first_and_a_failure_ends_the_rest(clock: SetClock) -> None:
    order: list[int] = []

    def job(size: int) -> Job:
        return Job(size, lambda _buffer: order.append(size))

    run_longest_first([job(1), job(3), job(2)], 1, Control(clock))
    assert order == [3, 2, 1]

    def fail(_buffer: memoryview) -> None:
        raise ValueError("a fault of ours")

    with pytest.raises(ValueError, match="a fault of ours"):
        run_longest_first([Job(9, fail), job(1)], 2, Control(clock))


def test_a_thread_that_hangs_in_a_read_does_not_hold_up_the_stop(clock: SetClock) -> None:
    control, release = Control(clock), threading.Event()

    def hang(_buffer: memoryview) -> None:
        control.cancel()
        release.wait(60)

    with pytest.raises(Interrupted):
        run_longest_first([Job(1, hang)], 1, control)
    release.set()
