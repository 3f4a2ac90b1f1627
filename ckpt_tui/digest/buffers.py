"""Buffers that the kernel copies into at full speed."""

from __future__ import annotations

import mmap

from .pieces import LONGEST

_PAGE = mmap.PAGESIZE


def new_buffer() -> memoryview:
    """A buffer for the longest piece of a file, wherever in its page that begins."""
    return memoryview(mmap.mmap(-1, LONGEST + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def place(buffer: memoryview, offset: int, length: int) -> memoryview:
    """Where in a buffer the bytes go that lie at this offset of a file: as far into a page as they are there.

    A copy whose target lies a few bytes further into its page than its source takes two to four times as long: the
    processor takes each load for one of what was stored just before (4 KiB aliasing).
    """
    start = offset % _PAGE
    return buffer[start : start + length]
