"""Speed beside its peers, on the same page-cached files in one run: `python -m benchmarks`, or `make bench`.

Rounds are interleaved, so that whatever else the machine does hits everybody; a ratio is the median of the rounds' own
ratios. The table goes into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ckpt_tui import __version__

from . import peers
from .data import MIB, write_model, write_small_model

if TYPE_CHECKING:
    from collections.abc import Callable

README = Path(__file__).with_name("README.md")
MARKS = "<!-- measured -->", "<!-- end -->"
SHARDS = 33

Times = dict[str, list[float]]


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--mib", type=int, default=4096, help="size of the files (default: 4096)")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (default: 7)")
    parser.add_argument("--folder", help="where the files go for the while (default: the temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ckpt-tui-bench-", dir=options.folder) as scratch:
        table = measure(Path(scratch), options.mib * MIB, options.rounds)
    print(table)
    before, _, rest = README.read_text("utf-8").partition(MARKS[0])
    README.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}", "utf-8")


def measure(scratch: Path, size: int, rounds: int) -> str:
    """All rounds of everything, as Markdown."""
    large = write_model(scratch / "large", size, 64 * MIB)
    small = write_model(scratch / "small", size // 4, 16 << 10)
    warm = write_small_model(scratch / "warm", SHARDS)
    there = shutil.which("xxhsum") is not None
    hashing: dict[str, Callable[[Path], None]] = {
        "hub": peers.hub_loop,
        "scan": partial(peers.ours, sha256=True),
        "fast": partial(peers.ours, sha256=False),
        "ceiling": peers.sha256_ceiling,
        "read": peers.plain_read,
    }
    if there:
        hashing["xxhsum"] = peers.xxhsum
    starting = {"python": peers.bare_python, "warm": partial(peers.scan_process, cache=scratch / "cache")}
    big = in_turns(hashing, large, rounds)
    tiny = in_turns({name: hashing[name] for name in ("scan", "fast")}, small, rounds)
    starts = in_turns(starting, warm, 3 * rounds)
    sizes = peers.bytes_of(large), peers.bytes_of(small)
    head = f"{machine()}; {sizes[0] / (1 << 30):.1f} GiB in 8 shards; {rounds} rounds."
    return f"\n{head}\n\n{render(big, tiny, starts, sizes)}\n"


def in_turns(actions: dict[str, Callable[[Path], None]], folder: Path, rounds: int) -> Times:
    """Seconds of each action in each round; the first round only warms up."""
    times: Times = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            begun = time.perf_counter()
            action(folder)
            if number:
                times[name].append(time.perf_counter() - begun)
    return times


def ratio(slow: list[float], quick: list[float]) -> float:
    """How many times faster `quick` is: the median of the rounds."""
    return statistics.median(one / other for one, other in zip(slow, quick, strict=True))


def render(big: Times, tiny: Times, starts: Times, sizes: tuple[int, int]) -> str:
    """The tables."""

    def rate(times: list[float], size: int = sizes[0]) -> str:
        return f"{size / statistics.median(times) / 1e9:.2f} GB/s"

    def time_of(times: list[float]) -> str:
        return f"{statistics.median(times) * 1000:.0f} ms"

    scan, ceiling = ratio(big["hub"], big["scan"]), ratio(big["hub"], big["ceiling"])
    rows = [
        ("huggingface_hub's sha256 loop", rate(big["hub"]), ""),
        ("`scan`: sha256, and xxh3 of leaves and segments", rate(big["scan"]), f"**{scan:.2f} ×** the loop"),
        ("sha256 of resident bytes on every core: the ceiling", rate(big["ceiling"]), f"{ceiling:.2f} × the loop"),
    ]
    if "xxhsum" in big:
        fast = ratio(big["xxhsum"], big["fast"])
        rows += [
            ("`xxhsum -H2`", rate(big["xxhsum"]), ""),
            ("`scan --fast`", rate(big["fast"]), f"**{fast:.2f} ×** `xxhsum -H2`"),
        ]
    else:
        rows.append(("`scan --fast` (`xxhsum` is not installed)", rate(big["fast"]), ""))
    rows += [
        ("plain read, one thread", rate(big["read"]), ""),
        ("`scan`, tensors of 16 KiB", rate(tiny["scan"], sizes[1]), ""),
        ("`scan --fast`, tensors of 16 KiB", rate(tiny["fast"], sizes[1]), ""),
        ("`python -c pass`", time_of(starts["python"]), ""),
        (
            f"warm `ckpt-tui scan`, whole process, {SHARDS} shards, 9,900 tensors",
            time_of(starts["warm"]),
            f"**{ratio(starts['warm'], starts['python']):.1f} ×** a bare Python",
        ),
    ]
    return "\n".join(["| | | |", "|---|---:|---|", *(f"| {' | '.join(row)} |" for row in rows)])


def machine() -> str:
    """What was measured on, without naming it."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, Python {platform.python_version()}, ckpt-tui {__version__}"


if __name__ == "__main__":
    main()
