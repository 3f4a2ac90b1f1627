"""A scan of real files: what is said of them, and what a second scan spares."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from ckpt_tui.digest import Scanner, ScanProgress, scan
from ckpt_tui.digest.control import Control
from ckpt_tui.facts.files import MissReason, Role, Segmentation, SegmentKind, Source, State
from ckpt_tui.facts.outcome import CkptError, Exit, Interrupted, scan_code
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.facts.status import Cell
from tests.digest.conftest import named
from tests.digest.plain import plain_file, plain_segment
from tests.support.checkpoints import flip_bit, noise, payload_offset, safetensors_bytes, tensor, write_checkpoint
from tests.support.minilm import SHA256, SIZE

Scan = Callable[..., ScanResult]
SHARD = "model-00002-of-00002.safetensors"


def test_every_digest_of_a_file_is_what_a_plain_reading_of_the_layout_gives(folder: Path, scanned: Scan) -> None:
    result = scanned(folder, segments=True)
    assert [file.name for file in result.files] == sorted(file.name for file in result.files)
    for file in result.files:
        raw = (folder / file.name).read_bytes()
        how = Segmentation.SAFETENSORS if file.role is Role.WEIGHTS else Segmentation.EXTENTS
        assert file.segmentation is how
        assert file.state is State.GOOD
        assert file.size == len(raw)
        assert file.sha256 == hashlib.sha256(raw).hexdigest()
        assert file.digest == plain_file(raw, how).hex()
        assert file.segment_table is not None
        assert file.segments == len(file.segment_table)
        for segment in file.segment_table:
            piece = raw[segment.offset : segment.offset + segment.length]
            assert segment.digest == plain_segment(piece).hex()
    table = named(result, SHARD).segment_table
    assert table is not None
    assert [segment.kind for segment in table] == [SegmentKind.HEADER] + 3 * [SegmentKind.TENSOR]
    assert table[1].name == "model.layers.2.mlp.0.weight"
    assert (table[1].dtype, table[1].shape) == ("F32", (16, 16))
    assert None not in {result.identity, result.content, result.content_sha256, result.logical_content}
    assert result.sidecars
    assert scan_code(result) is Exit.SAME


def test_a_second_scan_reads_nothing_and_says_the_same(folder: Path, scanned: Scan) -> None:
    first, second = scanned(folder), scanned(folder)
    assert first.totals.bytes_read == first.totals.bytes > 0
    assert {file.miss_reason for file in first.files} == {MissReason.NEW}
    assert second.totals.bytes_read == 0
    assert second.totals.files_cached == second.totals.files == 5
    for field in ("identity", "content", "content_sha256", "logical_content", "sidecars", "copy_id"):
        assert getattr(first, field) == getattr(second, field)
    for before, after in zip(first.files, second.files, strict=True):
        assert (after.source, after.miss_reason) == (Source.CACHE, None)
        assert (after.digest, after.sha256, after.hashed_at) == (before.digest, before.sha256, before.hashed_at)


def test_a_flipped_bit_is_seen_though_the_old_mtime_was_put_back(folder: Path, scanned: Scan) -> None:
    before = scanned(folder, segments=True)
    flip_bit(folder / SHARD, payload_offset(folder / SHARD) + 1500, keep_mtime=True)
    after = scanned(folder, segments=True)
    changed = named(after, SHARD)
    assert (changed.source, changed.miss_reason, changed.miss_detail) == (Source.READ, MissReason.CHANGED, "ctime")
    assert after.totals.bytes_read == changed.size
    assert after.identity == before.identity
    for field in ("content", "content_sha256", "logical_content"):
        assert getattr(after, field) != getattr(before, field)
    differing = [
        new.name
        for old, new in zip(named(before, SHARD).segment_table or (), changed.segment_table or (), strict=True)
        if old.digest != new.digest
    ]
    assert differing == ["model.layers.2.mlp.1.weight"]


def test_the_real_model_has_the_digest_that_the_hub_publishes(
    minilm_folder: Path, tmp_path: Path, scanned: Scan
) -> None:
    folder = shutil.copytree(minilm_folder, tmp_path / "minilm")
    first, second = scanned(folder), scanned(folder)
    weights = named(first, "model.safetensors")
    assert (weights.sha256, weights.size) == (SHA256, SIZE)
    assert second.totals.bytes_read == 0
    flip_bit(folder / "model.safetensors", SIZE - 1, keep_mtime=True)
    third = scanned(folder)
    assert named(third, "model.safetensors").miss_reason is MissReason.CHANGED
    assert third.content != second.content == first.content
    assert third.identity == first.identity


def test_copies_under_other_names_are_equal_and_lie_elsewhere(folder: Path, tmp_path: Path, scanned: Scan) -> None:
    copy = shutil.copytree(folder, tmp_path / "other" / "name")
    linked = tmp_path / "linked"
    linked.mkdir()
    for file in folder.iterdir():
        (linked / file.name).hardlink_to(file)
    one, other, same = scanned(folder), scanned(copy), scanned(linked)
    assert one.content == other.content == same.content
    assert one.identity == other.identity
    assert one.copy_id != other.copy_id
    assert one.copy_id == same.copy_id
    assert one.file_system


def test_the_same_weights_in_other_shards_have_the_same_logical_content(tmp_path: Path, scanned: Scan) -> None:
    content = {f"w{place}": tensor(f"w{place}") for place in range(4)}
    contents = []
    for number, cuts in enumerate([(0, 2, 4), (0, 1, 3, 4)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        names = list(content)
        for place, (start, stop) in enumerate(pairwise(cuts), 1):
            part = {name: content[name] for name in names[start:stop]}
            path = folder / f"model-{place:05}-of-{len(cuts) - 1:05}.safetensors"
            path.write_bytes(safetensors_bytes(part))
        contents.append(scanned(folder))
    assert contents[0].logical_content == contents[1].logical_content
    assert contents[0].content != contents[1].content


def test_fast_leaves_sha256_out_and_a_full_scan_after_it_says_why_it_reads(folder: Path, scanned: Scan) -> None:
    fast = scanned(folder, sha256=False)
    assert fast.content_sha256 is None
    assert {file.sha256 for file in fast.files} == {None}
    full = scanned(folder)
    assert {file.miss_reason for file in full.files} == {MissReason.LACKS_SHA256}
    assert full.content == fast.content
    assert scanned(folder, sha256=False).totals.bytes_read == 0


def test_rehash_no_cache_and_max_age_read_again(folder: Path, scanned: Scan) -> None:
    scanned(folder)
    assert {file.miss_reason for file in scanned(folder, rehash=True).files} == {MissReason.FORCED}
    assert {file.miss_reason for file in scanned(folder, use_cache=False).files} == {None}
    assert {file.miss_reason for file in scanned(folder, max_age=0.0).files} == {MissReason.EXPIRED}
    assert scanned(folder, max_age=3600.0).totals.bytes_read == 0


def test_identity_alone_reads_no_tensor_byte(folder: Path, scanned: Scan) -> None:
    whole, identity = scanned(folder, use_cache=False), scanned(folder, identity_only=True)
    assert identity.identity == whole.identity
    assert (identity.content, identity.sidecars) == (None, None)
    assert identity.totals.bytes_read == 0
    assert {file.digest for file in identity.files} == {None}
    assert identity.copy_id == whole.copy_id
    flip_bit(folder / "config.json", 3)
    assert scanned(folder, identity_only=True).identity != whole.identity


def test_names_that_are_not_utf8_are_hashed_by_their_bytes(tmp_path: Path, scanned: Scan) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=1, index=False)
    strange = os.fsdecode(b"\xff\xfe\n.safetensors")
    (folder / "model-00001-of-00001.safetensors").rename(folder / strange)
    for result in (scanned(folder), scanned(folder)):
        file = next(file for file in result.files if file.role is Role.WEIGHTS)
        assert file.name == "\\udcff\\udcfe\\n.safetensors"
        assert file.name_bytes == b"\xff\xfe\n.safetensors".hex()
        assert result.content
    assert file.source is Source.CACHE


def test_empty_tensors_have_segments_like_any_other(tmp_path: Path, scanned: Scan) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    content = {"none": tensor("none", (0, 4)), "w": tensor("w", (2, 2)), "also": tensor("also", (4, 0))}
    (folder / "model.safetensors").write_bytes(safetensors_bytes(content))
    result = scanned(folder, segments=True)
    table = result.files[0].segment_table
    assert table is not None
    assert sorted((s.name, s.length) for s in table[1:]) == [("also", 0), ("none", 0), ("w", 16)]
    assert result.files[0].digest == plain_file((folder / "model.safetensors").read_bytes(), "safetensors").hex()


def test_opaque_weights_have_a_content_and_no_logical_content(tmp_path: Path, scanned: Scan) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.gguf").write_bytes(b"GGUF" + noise("gguf", 5000))
    result = scanned(folder)
    assert result.files[0].segmentation is Segmentation.EXTENTS
    assert result.content
    assert result.logical_content is None


def test_no_digest_passes_for_the_checkpoints_where_a_shard_is_cut(folder: Path, scanned: Scan) -> None:
    with (folder / SHARD).open("r+b") as file:
        file.truncate((folder / SHARD).stat().st_size - 5)
    result = scanned(folder)
    assert named(result, SHARD).state is State.TRUNCATED
    assert named(result, SHARD).digest, "the pieces that are there can be compared"
    assert (result.content, result.content_sha256, result.logical_content) == (None, None, None)
    assert result.identity is None, "its header is whole, its tensors are not"
    assert scan_code(result) is Exit.DIFFERENT


def test_no_digest_passes_for_the_checkpoints_where_a_shard_is_missing(folder: Path, scanned: Scan) -> None:
    (folder / SHARD).unlink()
    result = scanned(folder)
    assert named(result, SHARD).state is State.MISSING
    assert (result.identity, result.content, result.logical_content) == (None, None, None)
    assert scan_code(result) is Exit.DIFFERENT


INDEX, LIST_OF_PARTS = "vae/model.safetensors.index.json", "model_index.json"
BREAKAGES: dict[str, Callable[[Path], object]] = {
    "a-part-is-gone": lambda root: shutil.rmtree(root / "vae"),
    "an-index-is-no-json": lambda root: (root / INDEX).write_text("{"),
    "an-index-leads-nowhere": lambda root: relink(root / INDEX),
    "the-list-of-parts-is-no-json": lambda root: (root / LIST_OF_PARTS).write_text("{"),
    "the-list-of-parts-leads-nowhere": lambda root: relink(root / LIST_OF_PARTS),
}


def relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("nothing")


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_no_digest_passes_for_the_checkpoints_where_nobody_knows_which_weights_there_are(
    breakage: str, tmp_path: Path, scanned: Scan
) -> None:
    root, parts = tmp_path / "model", {"unet": ["diffusers", "U"], "vae": ["diffusers", "V"]}
    for name in parts:
        write_checkpoint(root / name)
    (root / LIST_OF_PARTS).write_text(json.dumps(parts))
    assert scanned(root).content is not None
    BREAKAGES[breakage](root)
    result = scanned(root)
    assert (result.identity, result.content, result.content_sha256, result.logical_content) == (None,) * 4
    assert named(result, f"unet/{SHARD}").digest, "what is there can be compared"
    assert scan_code(result) is Exit.DIFFERENT


def test_a_file_that_cannot_be_read_is_unreadable_and_the_others_are_known(
    folder: Path, scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_inode = (folder / SHARD).stat().st_ino
    real = os.preadv

    def preadv(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if os.fstat(descriptor).st_ino == broken_inode:
            raise OSError(5, os.strerror(5))
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    result = scanned(folder)
    file = named(result, SHARD)
    assert (file.state, file.digest) == (State.UNREADABLE, None)
    assert "EIO: Input/output error, reading from byte 0 on" in (file.error or "")
    assert all(other.digest for other in result.files if other.name != SHARD)
    assert result.content is None
    assert scan_code(result) is Exit.UNDECIDED


def test_cancelling_keeps_the_files_that_were_finished(
    tmp_path: Path, scanner: Callable[..., Scanner], scanned: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for place, length in enumerate((3 << 20, 2 << 20, 1 << 20), 1):
        (folder / f"part-{place}.gguf").write_bytes(b"GGUF" + noise(str(place), length))
    stopping = scanner(folder, threads=1)
    real = Control.spend

    def spend(control: Control, size: int) -> None:
        if stopping.progress.files_done == 1:
            stopping.cancel()
        real(control, size)

    monkeypatch.setattr(Control, "spend", spend)
    with pytest.raises(Interrupted):
        stopping.run()
    assert [file.cell for file in stopping.progress.files] == [Cell.READ, Cell.READING, Cell.WAITING]
    monkeypatch.undo()
    result = scanned(folder)
    assert [file.source for file in result.files] == [Source.CACHE, Source.READ, Source.READ]


def test_a_scan_that_was_cancelled_before_it_began_reads_nothing(folder: Path, scanner: Callable[..., Scanner]) -> None:
    stopping = scanner(folder)
    stopping.cancel()
    with pytest.raises(Interrupted):
        stopping.run()
    assert stopping.progress.bytes_read == 0


def test_progress_ends_where_the_files_end(folder: Path, scanner: Callable[..., Scanner]) -> None:
    first = scanner(folder)
    progress = first.progress
    assert (progress.files, progress.bytes_total, progress.files_total) == ((), 0, 0)
    survey = first.survey()
    assert [file.name for file in progress.files] == [file.name for file in survey.checkpoint.files]
    assert progress.bytes_total == sum(file.size for file in survey.checkpoint.files)
    assert {file.cell for file in progress.files} == {Cell.WAITING}
    first.run()
    assert_done(progress, cell=Cell.READ, cached=0)
    second = scanner(folder)
    second.run()
    assert_done(second.progress, cell=Cell.CACHED, cached=progress.bytes_total)


def assert_done(progress: ScanProgress, *, cell: Cell, cached: int) -> None:
    assert progress.bytes_done == progress.bytes_total
    assert progress.files_done == progress.files_total
    assert progress.bytes_cached == cached
    assert {file.cell for file in progress.files} == {cell}
    assert all(file.result and file.finished is not None for file in progress.files)


def test_segments_of_a_file_are_told_on_request(folder: Path, scanner: Callable[..., Scanner]) -> None:
    reading = scanner(folder)
    reading.run()
    remembering = scanner(folder)
    remembering.run()
    assert reading.segments(SHARD) == remembering.segments(SHARD)
    assert len(reading.segments(SHARD)) == 4
    with pytest.raises(CkptError):
        reading.segments("nothing")


def test_two_processes_at_once_say_the_same_and_leave_whole_records(folder: Path, cache: Path, scanned: Scan) -> None:
    program = (
        "import sys, msgspec; from ckpt_tui.digest import scan; from ckpt_tui.facts.settings import ScanSettings\n"
        "print(scan(sys.argv[1], ScanSettings(cache_dir=sys.argv[2])).content)"
    )
    command = [sys.executable, "-c", program, str(folder), str(cache)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    contents = {process.communicate(timeout=60)[0].strip() for process in both}
    result = scanned(folder)
    assert contents == {result.content}
    assert result.totals.bytes_read == 0
    assert not [path for path in cache.rglob("*") if path.name.startswith(".")]


def test_without_a_home_the_scan_goes_on_and_says_so_once(folder: Path) -> None:
    result = scan(folder, ScanSettings(cache_dir="/proc/nowhere"))
    assert result.content
    assert len(result.warnings) == 1
    assert "the digest cache is not written" in result.warnings[0]
