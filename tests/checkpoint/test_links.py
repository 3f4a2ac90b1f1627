"""Links out of a checkpoint: farms are followed and said, one odd link is never opened, nothing special is."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from ckpt_tui.checkpoint import locate, open_regular
from ckpt_tui.facts.files import Severity, State
from tests.support.checkpoints import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from ckpt_tui.checkpoint import Checkpoint

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def states(found: Checkpoint) -> dict[str, State]:
    return {file.name: file.state for file in found.files}


def moved(folder: Path, elsewhere: Path, names: dict[str, str]) -> None:
    """Move files elsewhere under other names, and leave links to them."""
    elsewhere.mkdir()
    for name, other in names.items():
        (folder / name).rename(elsewhere / other)
        (folder / name).symlink_to(elsewhere / other)


def test_a_farm_of_links_is_followed_with_a_warning_whatever_its_targets_are_called(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    moved(folder, tmp_path / "disk", {FIRST: "aa", SECOND: "bb"})
    found = locate(str(folder))
    assert set(states(found).values()) == {State.GOOD}
    assert [(one.code, one.severity) for one in found.findings] == [("links-out", Severity.WARNING)]


def test_one_shard_on_another_disk_under_its_own_name_is_followed(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    moved(folder, tmp_path / "disk", {FIRST: FIRST})
    found = locate(str(folder))
    assert set(states(found).values()) == {State.GOOD}
    assert [one.code for one in found.findings] == ["links-out"]


def test_one_odd_link_among_files_is_outside(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    moved(folder, tmp_path / "disk", {FIRST: "secret"})
    assert states(locate(str(folder)))[FIRST] is State.OUTSIDE


def test_links_within_the_checkpoint_are_nothing_to_speak_of(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    moved(folder, folder / "store", {FIRST: "aa", SECOND: "bb"})
    found = locate(str(folder))
    assert set(states(found).values()) == {State.GOOD}
    assert found.findings == ()


def test_a_link_to_the_folder_itself_is_the_folder(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "m")
    (tmp_path / "latest").symlink_to("m")
    found = locate(str(tmp_path / "latest"))
    assert set(states(found).values()) == {State.GOOD}
    assert found.findings == ()


@pytest.mark.parametrize("name", ["config.json", FIRST])
def test_a_fifo_in_the_place_of_a_file_is_never_opened(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    found = locate(str(folder))
    assert states(found)[name] is State.OUTSIDE
    assert any("FIFO" in one.message for one in found.findings)


def test_a_socket_in_the_place_of_a_file_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / FIRST).unlink()
    monkeypatch.chdir(folder)  # a socket's path has to be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(FIRST)
        assert states(locate(str(folder)))[FIRST] is State.OUTSIDE


def test_a_fifo_that_came_after_the_look_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "x")
