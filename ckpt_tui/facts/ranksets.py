"""Rank sets as people write them: `[0-3,5]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def fold(ranks: Iterable[int]) -> str:
    """`[0-3,5]` for 0, 1, 2, 3, 5; `[]` for none."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = [str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs]
    return f"[{','.join(parts)}]"


def named(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks [0-2,5]`."""
    listed = sorted(set(ranks))
    return f"rank {listed[0]}" if len(listed) == 1 else f"ranks {fold(listed)}"
