"""From the seconds of all rounds to the tables of benchmarks/README.md."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds of each action in each round.
Times = dict[str, list[float]]

ROWS = {
    "read": "plain read, one thread",
    "read-all": "plain read, a thread a core",
    "limit": "sha256 on every core, bytes at hand: the cores' sha256",
    "limit-read": "sha256 on every core, each block read before",
    "two": "our sha256, two abreast on every core, bytes at hand",
    "hub": "`huggingface_hub`, the loop of `hf cache verify`",
    "signing": "model-signing",
    "sha256sum": "`sha256sum`",
    "full": "**`ckpt-tui scan`**",
    "full-in": "the same, without the start of the process",
    "xxhsum": "`xxhsum -H2`",
    "b3sum": "`b3sum`",
    "fast": "**`ckpt-tui scan --fast`**",
    "fast-in": "the same, without the start of the process",
}


class Column(NamedTuple):
    """One set of files in one state."""

    title: str
    size: int
    times: Times


class Aim(NamedTuple):
    """A ratio that was asked for: `slow` takes so many times as long as `quick`."""

    words: str
    slow: list[float]
    quick: list[float]
    asked: float
    at_most: bool = False


def ratio(slow: Sequence[float], quick: Sequence[float]) -> float:
    """How many times as long the first took: the median of the rounds that both took part in."""
    return statistics.median(one / other for one, other in zip(slow, quick, strict=False))


def rates(columns: Sequence[Column], missing: frozenset[str]) -> str:
    """Everybody's rates, a column for each set of files."""
    lines = [
        " | ".join(["| GB/s", *(column.title for column in columns)]) + " |",
        "|---" + "|---:" * len(columns) + "|",
    ]
    for key, words in ROWS.items():
        cells = []
        for column in columns:
            seconds = column.times.get(key)
            cells.append(f"{column.size / statistics.median(seconds) / 1e9:.2f}" if seconds else "")
        if key in missing:
            cells = ["not installed"] * len(columns)
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def aims(rows: Sequence[Aim]) -> str:
    """What was asked for, and what came out."""
    lines = ["| ratio of the medians of rounds | asked | measured | |", "|---|---:|---:|---|"]
    for row in rows:
        if not row.slow or not row.quick:
            lines.append(f"| {row.words} | {_asked(row)} | not installed | |")
            continue
        found = ratio(row.slow, row.quick)
        held = found <= row.asked if row.at_most else found >= row.asked
        lines.append(f"| {row.words} | {_asked(row)} | {found:.2f} | {'held' if held else '**missed**'} |")
    return "\n".join(lines)


def _asked(row: Aim) -> str:
    return f"{'≤' if row.at_most else '≥'} {row.asked:g}"


def starts(times: Times, words: dict[str, str]) -> str:
    """How long whole processes take."""
    lines = ["| whole processes | ms |", "|---|---:|"]
    lines += [f"| {words[key]} | {statistics.median(seconds) * 1000:.0f} |" for key, seconds in times.items()]
    return "\n".join(lines)
