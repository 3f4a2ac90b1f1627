"""How many shards of a rank came from the cache: sidecars are read in a moment and count for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...facts.status import Cell

if TYPE_CHECKING:
    from ...facts.status import RankStatus

_FROM_CACHE = {Cell.CACHED.value, Cell.SHARED.value}


def cached_shards(status: RankStatus, roles: str) -> tuple[int, int]:
    """Cached shards and shards; of all files where a rank does not tell its files one by one."""
    if not roles or len(status.cells) != len(roles):
        return status.files_cached, status.files_total
    # A bad shard's cell does not say where its digest comes from, but the sum over all files counts it.
    aside = sum(cell in _FROM_CACHE and role == "s" for cell, role in zip(status.cells, roles, strict=True))
    shards = roles.count("w")
    return min(max(status.files_cached - aside, 0), shards), shards


def shared_shards(status: RankStatus, roles: str) -> int:
    """Those of them that another process of the host put there while this one was at work."""
    return sum(cell == Cell.SHARED.value and role == "w" for cell, role in zip(status.cells, roles, strict=False))
