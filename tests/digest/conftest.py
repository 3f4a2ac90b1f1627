"""What the tests of the digest room share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ckpt_tui.digest import Scanner, scan
from ckpt_tui.facts.clock import Clock
from ckpt_tui.facts.files import FileResult
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import write_checkpoint


class SetClock:
    """A clock that moves only when somebody sleeps; `on_sleep` is called once at the next sleep, before time moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.on_sleep: Callable[[], object] | None = None

    def time(self) -> float:
        return 1_700_000_000.0 + self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        act, self.on_sleep = self.on_sleep, None
        if act:
            act()
        self.now += seconds


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of two shards."""
    return write_checkpoint(tmp_path / "model")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The cache folder that `scanned` uses."""
    return tmp_path / "cache"


@pytest.fixture
def scanned(cache: Path) -> Callable[..., ScanResult]:
    """Scan a path with a cache of the test's own; keywords are settings."""

    def run(target: Path | str, *, clock: Clock | None = None, **settings: object) -> ScanResult:
        return scan(target, ScanSettings(cache_dir=str(cache), **settings), clock=clock)  # type: ignore[arg-type]

    return run


@pytest.fixture
def scanner(cache: Path) -> Callable[..., Scanner]:
    """A scanner with a cache of the test's own; keywords are settings."""

    def make(target: Path, *, clock: Clock | None = None, **settings: object) -> Scanner:
        return Scanner(str(target), ScanSettings(cache_dir=str(cache), **settings), clock=clock)  # type: ignore[arg-type]

    return make


def named(result: ScanResult, name: str) -> FileResult:
    """One file of a result."""
    return next(file for file in result.files if file.name == name)


@pytest.fixture
def block_device(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """An ext4 in a file, mounted: where it lies, and the file that is its disk."""
    image, place = tmp_path / "disk.img", tmp_path / "disk"
    place.mkdir()
    image.write_bytes(bytes(16 << 20))
    made = (
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", str(image)], capture_output=True, check=False, timeout=60)
        if (os.geteuid() == 0 and Path("/usr/sbin/mkfs.ext4").exists())
        else None
    )
    if made is None or made.returncode:
        pytest.skip("needs root and mkfs.ext4")
    mounted = subprocess.run(
        ["mount", "-o", "loop", str(image), str(place)], capture_output=True, check=False, timeout=30
    )
    if mounted.returncode:
        pytest.skip("a disk cannot be mounted in every container")
    yield place, image
    subprocess.run(["umount", str(place)], check=True, timeout=30)
