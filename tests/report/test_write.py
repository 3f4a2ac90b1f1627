"""A result is in its file whole, or the file is as it was."""

from __future__ import annotations

import errno
import os
import stat
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


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"")
    except PermissionError:
        pytest.skip("devices cannot be made here")
    write(device, b"{}", force=True)
    assert stat.S_ISCHR(device.lstat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_a_pipe_that_nobody_reads_is_an_error_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CkptError, match="could not be written"):
        write(tmp_path / "pipe", b"{}", force=True)
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)


def test_a_pipe_that_is_read_gets_all_of_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe, b"x" * 5000, force=True)
        assert os.read(reader, 10_000) == b"x" * 5000
    finally:
        os.close(reader)


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "r.json"
    link.symlink_to("there/r.json")
    write(link, b"{}", force=True)
    assert link.is_symlink()
    assert (tmp_path / "there" / "r.json").read_bytes() == b"{}"


@pytest.mark.parametrize("reason", [errno.EBUSY, errno.EROFS, errno.EACCES])
def test_a_file_in_whose_place_no_other_can_be_put_is_written_as_it_is(
    reason: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "termination-log"
    target.write_bytes(b"something longer")
    inode = target.stat().st_ino

    def refuse(_part: Path, _target: Path) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(Path, "replace", refuse)
    write(target, b"{}\n", force=True)
    assert (target.read_bytes(), target.stat().st_ino) == (b"{}\n", inode)
    assert [path.name for path in tmp_path.iterdir()] == ["termination-log"]
    with pytest.raises(CkptError, match=errno.errorcode[reason]):
        write(tmp_path / "not there", b"{}\n", force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["termination-log"]
