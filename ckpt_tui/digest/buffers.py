"""Buffers that the kernel copies into at full speed."""

from __future__ import annotations

import mmap

from .pieces import LONGEST

_PAGE = mmap.PAGESIZE


def new_buffer(length: int = LONGEST) -> memoryview:
    """A buffer for so many bytes of a file (its longest piece), wherever in its page they begin and end."""
    return memoryview(mmap.mmap(-1, length + 2 * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def place(buffer: memoryview, offset: int, length: int) -> memoryview:
    """Where in a buffer the bytes go that lie at this offset of a file: as far into a page as they are there.

    A copy whose target lies a few bytes further into its page than its source takes two to four times as long: the
    processor takes each load for one of what was stored just before (4 KiB aliasing).
    """
    start = offset % _PAGE
    return buffer[start : start + length]
