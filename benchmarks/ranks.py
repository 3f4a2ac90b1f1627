"""Whole sessions of real processes on this machine: `python -m benchmarks.ranks --world-size 32`.

One session of equal copies and one in which a rank has a flipped bit: seconds, and what the ranks sent. With
`--gather` no process is started: what the ways to exchange cost, descriptors and seconds to connect, with all ranks as
threads of this process.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.gather import StoreGather
from ckpt_tui.ranks.gloo import GlooGather
from ckpt_tui.ranks.messages import Step
from ckpt_tui.ranks.native import load_torch
from ckpt_tui.ranks.store import connect, listen

from .data import write_small_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ckpt_tui.ranks.gather import Gather
    from ckpt_tui.ranks.store import Store

LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
#: What a rank sends when all agree.
PAYLOAD = 600


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__)
    parser.add_argument("--world-size", type=int, default=32)
    parser.add_argument("--gather", type=int, nargs="+", metavar="RANKS", help="measure the exchanges alone")
    parser.add_argument("--deadline", type=float, default=600, help="seconds for one session (default: 600)")
    options = parser.parse_args()
    if options.gather:
        for ranks in options.gather:
            for way in ("gloo", "store"):
                print(exchanged(way, ranks))
        return
    with tempfile.TemporaryDirectory(prefix="ckpt-tui-bench-") as scratch:
        good = write_small_model(Path(scratch) / "good", 4, 50)
        bad = flipped(good, Path(scratch) / "bad")
        for words, folders in (
            ("all equal", [good] * options.world_size),
            ("one bit in one rank", [*[good] * (options.world_size - 1), bad]),
        ):
            print(f"{options.world_size} processes, {words}: {session(folders, options.deadline)}")


def flipped(good: Path, bad: Path) -> Path:
    """A copy whose last byte of one shard is another."""
    bad.mkdir()
    for path in good.iterdir():
        data = path.read_bytes()
        if path.name.startswith("model-00002"):
            data = data[:-1] + bytes([data[-1] ^ 1])
        (bad / path.name).write_bytes(data)
    return bad


def session(folders: Sequence[Path], deadline: float) -> str:
    """Run one, and tell how it went."""
    size = len(folders)
    env = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    place = ("--master", f"127.0.0.1:{free_port()}", "--world-size", str(size), "--join-timeout", f"{deadline:.0f}s")
    begun = time.perf_counter()
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "ckpt_tui", "ranks", str(folder), "--json", "--no-cache"),
                *place,
                *("--rank", str(rank)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=env,
        )
        for rank, folder in enumerate(folders)
    ]
    try:
        with ThreadPoolExecutor(size) as pool:
            told = list(pool.map(lambda process: process.communicate(timeout=deadline)[0], processes))
    finally:
        for process in processes:
            process.kill()
    seconds = time.perf_counter() - begun
    agreement: dict[str, Any] = json.loads(told[0])
    assert set(told) == {told[0]}, "the ranks came to different agreements"
    sent = sorted(rank["bytes_sent"] for rank in agreement["ranks"])
    codes = sorted({process.returncode for process in processes})
    return (
        f"{agreement['verdict']}, codes {codes}, {seconds:.1f} s; bytes sent by a rank: "
        f"{sent[0]} to {sent[-1]}, median {sent[size // 2]}; {agreement['summary']}"
    )


def exchanged(way: str, ranks: int) -> str:
    """Connect all ranks, exchange once, and tell what it cost. Every rank is a thread of this process."""
    torch = load_torch()
    listening = listen(Address("127.0.0.1", 0))
    assert listening is not None
    address = Address("127.0.0.1", listening.getsockname()[1])
    stores = [connect(torch, address, seconds=60, patience=60, listening=listening)]
    stores += [connect(torch, address, seconds=60, patience=60) for _ in range(ranks - 1)]
    nonce = secrets.token_hex(16)
    before = descriptors()
    begun = time.perf_counter()
    with ThreadPoolExecutor(ranks) as pool:

        def everywhere(work: Callable[[int], Any]) -> list[Any]:
            return list(pool.map(work, range(ranks)))

        gathers: list[Gather] = everywhere(
            lambda rank: _form(way, torch, stores[rank], rank=rank, ranks=ranks, nonce=nonce)
        )
        formed = time.perf_counter() - begun
        mine = (descriptors() - before) / ranks
        begun = time.perf_counter()
        everywhere(lambda rank: gathers[rank].gather(Step.CONTENT, bytes(PAYLOAD)))
        seconds = time.perf_counter() - begun
    return f"{way}, {ranks} ranks: {mine:.1f} descriptors a rank, formed in {formed:.2f} s, a gather in {seconds:.2f} s"


def _form(way: str, torch: Any, store: Store, *, rank: int, ranks: int, nonce: str) -> Gather:
    if way == "store":
        return StoreGather(
            store,
            base="benchmark",
            rank=rank,
            ranks=range(ranks),
            seconds=60,
            clock=SystemClock(),
            watch=nothing,
            gone=dict,
        )
    return GlooGather.form(
        torch,
        store,
        address="127.0.0.1",
        interfaces=(),
        rank=rank,
        size=ranks,
        nonce=nonce,
        seconds=120,
        forming=nothing,
        watch=nothing,
    )


def descriptors() -> int:
    """How many files and sockets this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def free_port() -> int:
    """A port that the system chose and nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
