"""Files that a shared file system does not show yet are looked for again, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt_tui.digest import Scanner
from ckpt_tui.digest.filesystem import FileSystem
from ckpt_tui.facts.agreement import Stage
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.files import State
from ckpt_tui.facts.outcome import Interrupted
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.patience import Patience
from ckpt_tui.ranks.work import Work
from tests.support.checkpoints import write_checkpoint

SHARD = "model-00002-of-00002.safetensors"
SETTINGS = ScanSettings(use_cache=False)


class Later(SystemClock):
    """A clock on which waiting takes no time; something may happen at a moment of it."""

    def __init__(self, seconds: float = float("inf"), happens: Callable[[], object] = nothing) -> None:
        self.now = 0.0
        self._seconds, self.happens = seconds, happens

    def monotonic(self) -> float:
        """Seconds since the test began."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Time passes at once."""
        self.now += seconds
        if self.now >= self._seconds:
            self.happens()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint on a network file system that does not show the second shard."""
    monkeypatch.setattr(Scanner, "file_system", lambda _: FileSystem("nfs4", "server:/models", "x"))
    folder = write_checkpoint(tmp_path / "model")
    (folder / SHARD).rename(tmp_path / SHARD)
    return folder


def test_a_file_that_shows_after_a_while_is_part_of_the_answer(folder: Path) -> None:
    """Case R13, a stale listing."""
    said = []

    def shows() -> None:
        said.append(patience.waiting)
        if (folder.parent / SHARD).exists():
            (folder.parent / SHARD).rename(folder / SHARD)

    clock = Later(5.0, shows)
    patience = Patience(Scanner(str(folder), SETTINGS, clock=clock))
    survey = patience.survey()
    assert {file.state for file in survey.checkpoint.files} == {State.GOOD}
    assert survey.identity is not None
    assert 9 < clock.now < 12
    assert said[0] == f"waiting for the file system: {SHARD} not seen on nfs4 server:/models"
    assert (patience.waiting, patience.doubt) == ("", "")


def test_one_that_never_shows_is_missing_with_a_hint(folder: Path) -> None:
    """Case R13, a file that is not there at all."""
    clock = Later()
    work = Work(str(folder), SETTINGS, rank=lambda: 1, clock=clock)
    work.begin()
    told = work.surveyed(nothing).fingerprint(Stage.IDENTITY)
    work.close()
    assert told.broken == (f"{SHARD}: missing",)
    assert clock.now == pytest.approx(35, abs=1)
    (warning,) = told.warnings
    assert warning.startswith(f"{SHARD} is not there on nfs4 server:/models after 35 s")
    assert "cache of the file system is stale" in warning


def test_on_a_disk_of_its_own_a_missing_file_is_missing_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scanner, "file_system", lambda _: FileSystem("ext4", "/dev/sda1", "x"))
    clock = Later()
    patience = Patience(Scanner(str(folder), SETTINGS, clock=clock))
    patience.survey()
    assert (clock.now, patience.doubt) == (0.0, "")


def test_who_is_interrupted_does_not_wait_on(folder: Path) -> None:
    clock = Later(1.0)
    scanner = Scanner(str(folder), SETTINGS, clock=clock)
    clock.happens = scanner.cancel
    with pytest.raises(Interrupted):
        Patience(scanner).survey()
    assert clock.now < 2


def test_a_scanner_knows_where_its_checkpoint_lies(tmp_path: Path) -> None:
    scanner = Scanner(str(write_checkpoint(tmp_path / "model")), SETTINGS)
    assert str(scanner.file_system()) == scanner.run().file_system
