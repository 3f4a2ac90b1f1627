"""The digest cache: a record is whole and this file's, or it is a miss with its reason; never an error."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt_tui.digest import ledger as ledger_
from ckpt_tui.digest import validity
from ckpt_tui.digest.cache import DigestCache, Key, Record, decode, encode
from ckpt_tui.digest.filesystem import FileSystem, FileSystems
from ckpt_tui.digest.validity import Miss, Stamp
from ckpt_tui.facts.files import MissReason, Segmentation
from ckpt_tui.facts.scan import ScanResult
from tests.digest.conftest import named
from tests.support.checkpoints import noise

Scan = Callable[..., ScanResult]
SHARD = "model-00002-of-00002.safetensors"
KEY = Key("host", "ext4:uuid", b"/models/\xff.safetensors")
RECORD = Record(
    stamp=Stamp(size=123, mtime_ns=5, ctime_ns=6, inode=7),
    hashed_at=1.5,
    segmentation=Segmentation.SAFETENSORS,
    digest=noise("d", 16),
    sha256=noise("s", 32),
    git_sha1=None,
    segments=noise("segments", 48),
    leaves=noise("leaves", 64),
)


def test_a_record_comes_back_as_it_went_in() -> None:
    assert decode(encode(KEY, RECORD), KEY) == RECORD
    bare = RECORD._replace(sha256=None, git_sha1=noise("g", 20), segments=b"", leaves=b"")
    assert decode(encode(KEY, bare), KEY) == bare


def test_a_record_cut_at_any_byte_is_a_miss() -> None:
    raw = encode(KEY, RECORD)
    assert {decode(raw[:length], KEY) for length in range(len(raw))} == {Miss(MissReason.CORRUPT_RECORD)}
    assert decode(raw + b"\0", KEY) == Miss(MissReason.CORRUPT_RECORD)


def test_a_record_with_any_bit_flipped_is_a_miss() -> None:
    raw = encode(KEY, RECORD)
    for place in range(len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << place % 8
        assert decode(bytes(damaged), KEY) == Miss(MissReason.CORRUPT_RECORD)


@pytest.mark.parametrize(
    "other", [KEY._replace(host="other"), KEY._replace(file_system="nfs:server:/x"), KEY._replace(path=b"/models/b")]
)
def test_a_record_of_another_file_is_a_miss_wherever_it_was_copied_to(other: Key) -> None:
    assert decode(encode(other, RECORD), KEY) == Miss(MissReason.CORRUPT_RECORD, "written for another file")


def test_a_record_of_another_layout_is_a_miss_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckpt_tui.digest.cache.DIGEST_LAYOUT", 2)
    raw = encode(KEY, RECORD)
    monkeypatch.undo()
    assert decode(raw, KEY) == Miss(MissReason.OTHER_LAYOUT)


def test_hosts_that_share_a_folder_do_not_see_each_others_records(tmp_path: Path) -> None:
    ours, theirs = DigestCache(tmp_path, "ours"), DigestCache(tmp_path, "theirs")
    ours.save(ours.key("ext4:uuid", b"/w"), RECORD)
    assert ours.load(ours.key("ext4:uuid", b"/w")) == RECORD
    assert theirs.load(theirs.key("ext4:uuid", b"/w")) == Miss(MissReason.NEW)


def test_a_logical_content_is_remembered_for_its_content_alone(tmp_path: Path) -> None:
    cache = DigestCache(tmp_path, "host")
    cache.save_logical(b"c" * 32, b"l" * 32)
    assert cache.load_logical(b"c" * 32) == b"l" * 32
    assert cache.load_logical(b"d" * 32) is None
    place = next(tmp_path.rglob("*.logical"))
    raw = place.read_bytes()
    for length in range(len(raw)):
        place.write_bytes(raw[:length])
        assert cache.load_logical(b"c" * 32) is None
    place.write_bytes(raw)
    place.rename(place.with_name(f"{(b'd' * 32).hex()}.logical"))
    assert cache.load_logical(b"d" * 32) is None


def records(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.digest"))


@pytest.mark.parametrize("damage", [b"", b"[]\n", b"\x13" * 700, None])
def test_damaged_records_are_read_again_and_replaced(
    damage: bytes | None, folder: Path, cache: Path, scanned: Scan
) -> None:
    first = scanned(folder)
    for record in records(cache):
        raw = record.read_bytes()
        record.write_bytes(raw[: len(raw) // 2] if damage is None else damage)
    second = scanned(folder)
    assert {file.miss_reason for file in second.files} == {MissReason.CORRUPT_RECORD}
    assert second.content == first.content
    assert second.warnings == ()
    assert scanned(folder).totals.bytes_read == 0


def test_a_folder_in_a_records_place_costs_a_warning_and_nothing_else(folder: Path, cache: Path, scanned: Scan) -> None:
    first = scanned(folder)
    for record in records(cache):
        record.unlink()
        record.mkdir()
    second = scanned(folder)
    assert {file.miss_reason for file in second.files} == {MissReason.CORRUPT_RECORD}
    assert second.content == first.content
    assert len(second.warnings) == 1


def test_a_fifo_in_the_place_of_a_record_or_the_ledger_holds_nobody_up(
    folder: Path, cache: Path, scanned: Scan
) -> None:
    first = scanned(folder)
    ledger = next(cache.rglob("ledger"))
    for place in (*records(cache), ledger, next(cache.rglob("*.outline"))):
        place.unlink()
        os.mkfifo(place)
    assert scanned(folder).content == first.content
    assert scanned(folder).totals.bytes_read == 0, "the records were put in their places"
    assert [*ledger_.read(ledger)] == []


def test_a_cache_that_cannot_be_written_is_one_warning(folder: Path, cache: Path, scanned: Scan) -> None:
    """A read-only mount refuses root too; a plain file in the folder's place stands for it here."""
    cache.write_text("not a folder")
    result = scanned(folder)
    assert result.content
    assert len(result.warnings) == 1


def test_a_read_only_cache_still_answers(
    folder: Path, cache: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = scanned(folder)
    records(cache)[0].unlink()
    real = os.open

    def refuse(path: str, flags: int, *rest: int, **more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, os.strerror(30))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    second = scanned(folder)
    assert second.totals.files_cached == 4
    assert second.content == first.content
    assert second.warnings == ("the digest cache is not written: EROFS: Read-only file system",)


def test_a_record_goes_by_the_real_path_and_not_by_the_link(folder: Path, tmp_path: Path, scanned: Scan) -> None:
    first = scanned(folder)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert scanned(link).totals.bytes_read == 0
    assert scanned(link).content == first.content


def in_place(path: Path, raw: bytes) -> None:
    with path.open("r+b") as file:
        file.write(raw)


def by_rename(path: Path, raw: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(raw)
    other.replace(path)


def by_mapping(path: Path, raw: bytes) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[:] = raw


def in_the_freed_inode(path: Path, raw: bytes) -> None:
    path.unlink()
    path.write_bytes(raw)


@pytest.mark.parametrize("older", [0, 10**9])
@pytest.mark.parametrize("write", [in_place, by_rename, by_mapping, in_the_freed_inode])
def test_other_bytes_of_equal_size_are_read_however_they_came_and_whatever_mtime_says(
    write: Callable[[Path, bytes], None], older: int, folder: Path, scanned: Scan
) -> None:
    first = scanned(folder)
    path = folder / SHARD
    stat = path.stat()
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    write(path, bytes(raw))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - older))
    second = scanned(folder)
    assert named(second, SHARD).miss_reason is MissReason.CHANGED
    assert named(second, SHARD).sha256 == hashlib.sha256(raw).hexdigest()
    assert second.content != first.content


def test_a_file_system_whose_times_prove_nothing_is_remembered_only_when_vouched_for(
    folder: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = FileSystem("fuse.s3fs", "s3fs", "fuse.s3fs:s3fs:0:60")
    monkeypatch.setattr(FileSystems, "of", lambda *_: weak)
    monkeypatch.setattr(validity, "OTHER_STEP", 0.0)
    for _ in range(2):
        result = scanned(folder)
        assert {file.miss_reason for file in result.files} == {MissReason.WEAK_FS}
        assert "--trust-fs fuse.s3fs" in (result.files[0].miss_detail or "")
    scanned(folder, trust_fs=("fuse.s3fs",))
    assert scanned(folder, trust_fs=("fuse.s3fs",)).totals.bytes_read == 0


def test_a_copy_has_no_record_though_its_times_are_kept(folder: Path, tmp_path: Path, scanned: Scan) -> None:
    scanned(folder)
    shutil.copytree(folder, tmp_path / "copy")
    assert named(scanned(tmp_path / "copy"), SHARD).miss_reason is MissReason.NEW


def test_records_are_for_their_owner_alone(folder: Path, cache: Path, scanned: Scan) -> None:
    scanned(folder)
    assert {record.stat().st_mode & 0o777 for record in records(cache)} == {0o600}
    assert {record.parent.stat().st_mode & 0o777 for record in records(cache)} == {0o700}
