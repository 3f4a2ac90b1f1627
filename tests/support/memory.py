"""Peak memory of a process, asked by itself."""

from __future__ import annotations

from pathlib import Path

#: Where a child finds this module.
ROOT = Path(__file__).parents[2]


def peak_mib() -> float:
    """The most memory that this process has held, in MiB.

    Not `ru_maxrss`: it survives exec, so that a child would report its parent's peak.
    """
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
