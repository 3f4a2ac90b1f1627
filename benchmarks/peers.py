"""What is measured: everybody as a process of its own, as its user runs it, and the limits that nobody can beat."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple

from ckpt_tui import native
from ckpt_tui.digest import scan
from ckpt_tui.facts.settings import ScanSettings

from .data import bytes_of, files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BLOCK = 1 << 20

_HUB = """
import sys
from pathlib import Path
from huggingface_hub.utils._verification import compute_file_hash
for name in sys.argv[1:]:
    compute_file_hash(Path(name), "sha256")
"""
_MODEL_SIGNING = "import sys; from model_signing import hashing; hashing.hash(sys.argv[1])"


class Action(NamedTuple):
    """Something to run over the files of a folder. One that is slow beyond doubt takes part in two rounds alone."""

    run: Callable[[Path], object]
    slow: bool = False


class Runner:
    """Starts processes whose modules are compiled, as after an installation."""

    def __init__(self, scratch: Path) -> None:
        self._env = {**os.environ, "PYTHONPYCACHEPREFIX": str(scratch / "compiled")}
        self._env.pop("PYTHONDONTWRITEBYTECODE", None)

    def __call__(self, *command: str | Path) -> None:
        """Run one to its end."""
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=self._env)

    def python(self, *arguments: str | Path) -> Callable[[Path], None]:
        """An action: this Python with these arguments."""
        return lambda _folder: self(sys.executable, *arguments)

    def scan(self, *options: str | Path) -> Callable[[Path], None]:
        """An action: our scan as a whole process."""
        return lambda folder: self(sys.executable, "-m", "ckpt_tui", "scan", folder, "--format", "quiet", *options)


def peers(run: Runner, model_signing: str | None) -> dict[str, Action | None]:
    """Who is here; None for who is not."""
    found: dict[str, Action | None] = {
        "hub": Action(lambda folder: run(sys.executable, "-c", _HUB, *files(folder))),
        "signing": None,
        "sha256sum": Action(lambda folder: run("sha256sum", *files(folder)), slow=True),
        "xxhsum": Action(lambda folder: run("xxhsum", "-q", "-H2", *files(folder))),
        "b3sum": Action(lambda folder: run("b3sum", *files(folder))),
    }
    for tool in ("sha256sum", "xxhsum", "b3sum"):
        if shutil.which(tool) is None:
            found[tool] = None
    if model_signing:
        check = subprocess.run(
            [model_signing, "-c", "from model_signing import hashing"], capture_output=True, text=True, check=False
        )
        if check.returncode:
            raise SystemExit(f"{model_signing}: no model-signing: {check.stderr.strip().splitlines()[-1]}")
        found["signing"] = Action(lambda folder: run(model_signing, "-c", _MODEL_SIGNING, folder), slow=True)
    return found


def in_process(folder: Path, *, sha256: bool) -> None:
    """Our scan in this process, cache apart: without the start of the interpreter."""
    result = scan(folder, ScanSettings(use_cache=False, sha256=sha256))
    assert result.content, result.findings


def plain_read(folder: Path, *, threads: int = 1) -> None:
    """Every byte read into a buffer a thread, and looked at by nobody."""
    left = files(folder)

    def read() -> None:
        buffer = bytearray(BLOCK)
        while left:
            try:
                path = left.pop()
            except IndexError:
                return
            with path.open("rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
                while file.readinto(buffer):
                    pass

    in_parallel(read, threads)


def sha256_limit(folder: Path, *, read: bool) -> None:
    """As many bytes through hashlib's sha256 on every core, of a block that is at hand, or read anew."""
    blocks, cores = bytes_of(folder) // BLOCK, len(os.sched_getaffinity(0))
    path = files(folder)[0]

    def hash_share() -> None:
        digest, block = hashlib.sha256(), memoryview(bytearray(BLOCK))
        with path.open("rb", buffering=0) as file:
            for number in range(blocks // cores):
                if read:
                    os.preadv(file.fileno(), [block], number % 64 * BLOCK)
                digest.update(block)

    in_parallel(hash_share, cores)


def two_abreast(folder: Path) -> None:
    """As many bytes through our own sha256, two blocks that are at hand at once on every core."""
    blocks, cores = bytes_of(folder) // BLOCK, len(os.sched_getaffinity(0))

    def hash_share() -> None:
        one, other, block = native.Sha256(), native.Sha256(), memoryview(bytearray(BLOCK))
        for _ in range(blocks // cores // 2):
            one.update_with(block, other, block)

    in_parallel(hash_share, cores)


def in_parallel(work: Callable[[], None], count: int) -> None:
    """Run `work` on `count` threads."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
