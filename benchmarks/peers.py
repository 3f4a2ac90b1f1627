"""What is measured, each as a function over the files of a folder."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from ckpt_tui.digest import scan
from ckpt_tui.facts.settings import ScanSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BLOCK = 1 << 20


def files(folder: Path) -> list[Path]:
    """The weight files."""
    return sorted(folder.glob("*.safetensors"))


def bytes_of(folder: Path) -> int:
    """Bytes of the weight files."""
    return sum(path.stat().st_size for path in files(folder))


def ours(folder: Path, *, sha256: bool) -> None:
    """Our scan, cache apart, with as many threads as there are cores."""
    result = scan(folder, ScanSettings(use_cache=False, sha256=sha256))
    assert result.content, result.findings


def hub_loop(folder: Path) -> None:
    """huggingface_hub's own loop, file after file."""
    from huggingface_hub.utils.sha import sha_fileobj

    for path in files(folder):
        with path.open("rb") as file:
            sha_fileobj(file)


def xxhsum(folder: Path) -> None:
    """`xxhsum -H2`: xxh3-128 in C, one thread."""
    subprocess.run(["xxhsum", "-q", "-H2", *files(folder)], check=True, stdout=subprocess.DEVNULL)


def plain_read(folder: Path) -> None:
    """Every byte read into one buffer and looked at by nobody."""
    buffer = bytearray(BLOCK)
    for path in files(folder):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def sha256_ceiling(folder: Path) -> None:
    """As many bytes of one resident block through hashlib's sha256, on every core at once: no scan can be faster."""
    blocks = bytes_of(folder) // BLOCK
    cores = len(os.sched_getaffinity(0))
    block = bytes(BLOCK)

    def hash_share() -> None:
        digest = hashlib.sha256()
        for _ in range(blocks // cores):
            digest.update(block)

    in_parallel(hash_share, cores)


def in_parallel(work: Callable[[], None], count: int) -> None:
    """Run `work` on `count` threads."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bare_python(_folder: Path) -> None:
    """An interpreter that starts and ends."""
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def scan_process(folder: Path, cache: Path) -> None:
    """`ckpt-tui scan` as a whole process, with the cache filled."""
    command = [sys.executable, "-m", "ckpt_tui", "scan", str(folder), "--json", "--cache-dir", str(cache)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
