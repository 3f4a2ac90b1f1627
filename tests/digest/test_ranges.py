"""Parts of a file read once more: from the disk, whatever memory still holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckpt_tui.digest import Scanner, ranges
from ckpt_tui.facts.outcome import CkptError
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import noise


def scanned(path: Path) -> Scanner:
    """A scanner that knows the file's digests."""
    scanner = Scanner(str(path), ScanSettings(use_cache=False))
    scanner.run()
    return scanner


def test_what_is_read_again_comes_from_the_disk_and_not_from_memory(block_device: tuple[Path, Path]) -> None:
    place, image = block_device
    path = place / "model.gguf"
    raw = b"GGUF" + noise("rot", 1 << 20)
    path.write_bytes(raw)
    os.sync()
    scanner = scanned(path)
    with image.open("r+b") as disk:
        at = image.read_bytes().index(raw[500_000:500_100])
        disk.seek(at)
        disk.write(bytes([raw[500_000] ^ 1]))
        disk.flush()
        os.fsync(disk.fileno())
    assert path.read_bytes() == raw, "memory still has the old ones"
    data, doubt = scanner.read_again("model.gguf", 499_999, 3)
    assert data == bytes([raw[499_999], raw[500_000] ^ 1, raw[500_001]])
    assert doubt is None


def test_any_stretch_is_read_and_the_end_of_the_file_ends_it(tmp_path: Path) -> None:
    raw = b"GGUF" + noise("file", 100_001)
    (tmp_path / "model.gguf").write_bytes(raw)
    scanner = scanned(tmp_path / "model.gguf")
    for offset, length in ((0, 8), (4095, 2), (4096, 8192), (1, 100_000), (100_000, 1), (100_000, 99), (len(raw), 5)):
        assert scanner.read_again("model.gguf", offset, length).data == raw[offset : offset + length]


def test_where_the_file_system_may_answer_from_memory_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + noise("file", 5000))
    scanner = scanned(tmp_path / "model.gguf")
    monkeypatch.setattr(ranges.PastCache, "doubt", lambda _: "zfs may answer from memory of its own")
    assert scanner.read_again("model.gguf", 0, 10).doubt == "zfs may answer from memory of its own"


def test_a_file_that_is_another_now_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + noise("file", 5000))
    scanner = scanned(path)
    path.write_bytes(b"GGUF")
    with pytest.raises(CkptError, match=r"changed since it was hashed: .*size"):
        scanner.read_again("model.gguf", 0, 10)
