"""A result is in its file whole, or the file is as it was."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ckpt_tui.facts.outcome import CkptError, Exit, UsageError
from ckpt_tui.report.write import write


def test_a_new_file_holds_all_of_it_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "r.json", b"{}\n")
    assert (tmp_path / "r.json").read_bytes() == b"{}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write(tmp_path / "r.json", b"{}\n")
    assert (tmp_path / "r.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_is_there_is_replaced_only_with_force(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    target.write_bytes(b"old")
    with pytest.raises(UsageError, match="is there already") as refused:
        write(target, b"new")
    assert refused.value.code is Exit.USAGE
    assert target.read_bytes() == b"old"
    write(target, b"new", force=True)
    assert target.read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_dangling_link_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "r.json").symlink_to("nowhere")
    with pytest.raises(UsageError):
        write(tmp_path / "r.json", b"new")


def test_without_hard_links_it_works_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    write(tmp_path / "r.json", b"new")
    assert (tmp_path / "r.json").read_bytes() == b"new"
    with pytest.raises(UsageError):
        write(tmp_path / "r.json", b"newer")


def test_a_full_disk_leaves_the_old_file_and_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "r.json"
    target.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CkptError, match="could not be written: ENOSPC"):
        write(target, b"new", force=True)
    assert target.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_no_such_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(CkptError, match="ENOENT"):
        write(tmp_path / "no" / "r.json", b"{}")
