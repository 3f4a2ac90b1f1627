"""How many shards of a rank came from the cache: sidecars are read in a moment and count for nothing.

Thousands of ranks tell of thousands of files each, so nothing in here walks over the files one by one.
"""

from __future__ import annotations

from functools import lru_cache
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
    sidecars = _sidecars(roles)
    aside = sum(status.cells[place] in _FROM_CACHE for place in sidecars)
    shards = len(roles) - len(sidecars)
    return min(max(status.files_cached - aside, 0), shards), shards


def shared_shards(status: RankStatus, roles: str) -> int:
    """Those of them that another process of the host put there while this one was at work."""
    shared = Cell.SHARED.value
    return status.cells.count(shared) - sum(status.cells[place : place + 1] == shared for place in _sidecars(roles))


@lru_cache(maxsize=4)
def _sidecars(roles: str) -> tuple[int, ...]:
    """The places of the sidecars among all files."""
    return tuple(place for place, role in enumerate(roles) if role != "w")
