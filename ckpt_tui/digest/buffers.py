"""Buffers that the kernel copies into at full speed."""

from __future__ import annotations

import mmap

from .pieces import LONGEST

_PAGE = mmap.PAGESIZE


def new_buffer(length: int = LONGEST, *, rooms: int = 1) -> memoryview:
    """Rooms for so many bytes of a file each (its longest piece), wherever in its page they begin and end."""
    return memoryview(mmap.mmap(-1, rooms * _room(length), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def rooms_of(buffer: memoryview) -> list[memoryview]:
    """The rooms for pieces in a buffer."""
    room = _room(LONGEST)
    return [buffer[at : at + room] for at in range(0, len(buffer), room)]


def place(buffer: memoryview, offset: int, length: int) -> memoryview:
    """Where in a buffer the bytes go that lie at this offset of a file: as far into a page as they are there.

    A copy whose target lies a few bytes further into its page than its source takes two to four times as long: the
    processor takes each load for one of what was stored just before (4 KiB aliasing).
    """
    start = offset % _PAGE
    return buffer[start : start + length]


def _room(length: int) -> int:
    return -(-length // _PAGE) * _PAGE + 2 * _PAGE
