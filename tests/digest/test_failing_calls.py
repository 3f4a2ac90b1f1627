"""Whatever the operating system answers to a single question, a scan ends in words, and no digest is a wrong one."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt_tui.digest import scan
from ckpt_tui.facts.outcome import CkptError, Exit, scan_code
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import write_checkpoint

CALLS = ("fstat", "listdir", "lseek", "lstat", "open", "pread", "preadv", "readlink", "scandir", "stat")


class Failing:
    """Calls on paths below a folder, and on what is open there, are counted; one of them fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, below: Path) -> None:
        self._below = str(below)
        self.number = 0
        self.fails = -1
        self.code = 0
        self._readlink = os.readlink
        for name in CALLS:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(place: int | str | Path, *rest: object, **named: object) -> object:
            path = self._readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.fspath(place)
            if path.startswith(self._below):
                self.number += 1
                if self.number - 1 == self.fails:
                    raise OSError(self.code, os.strerror(self.code))
            return call(place, *rest, **named)

        return counted

    def scan(self, target: Path, fails: int = -1, code: int = errno.EIO) -> ScanResult:
        self.number, self.fails, self.code = 0, fails, code
        return scan(target, ScanSettings(use_cache=False, threads=1))


def clone(root: Path) -> Path:
    """A git clone with links in it."""
    folder = write_checkpoint(root / "model")
    subprocess.run(["git", "init", "-q", str(folder)], check=True, timeout=30)
    (folder / ".git" / "lfs").mkdir()
    config = folder / "config.json"
    config.rename(root / "config.json")
    config.symlink_to("../config.json")
    return folder


def pipeline(root: Path) -> Path:
    """Two parts, downloaded."""
    folder = root / "model"
    for name in ("unet", "vae"):
        write_checkpoint(folder / name, shards=1)
    (folder / "model_index.json").write_text(json.dumps({name: ["diffusers", "M"] for name in ("unet", "vae")}))
    (folder / ".cache" / "huggingface" / "download").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("make", [clone, pipeline])
def test_one_call_that_fails_is_no_traceback_and_no_wrong_digest(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path)
    failing = Failing(monkeypatch, tmp_path)
    whole = failing.scan(folder)
    assert scan_code(whole) is Exit.SAME
    ends = set()
    for number in range(failing.number):
        try:
            result = failing.scan(folder, number, (errno.EIO, errno.EACCES, errno.ESTALE)[number % 3])
        except CkptError as error:
            ends.add(type(error).__name__)
            continue
        ends.add(scan_code(result).name)
        assert result.content in {None, whole.content}
        assert result.identity in {None, whole.identity}
    assert {"CkptError", "SAME", "UNDECIDED"} <= ends <= {"CkptError", "SAME", "UNDECIDED", "DIFFERENT"}
