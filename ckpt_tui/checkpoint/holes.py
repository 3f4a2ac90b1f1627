"""Tensors that were never written: a downloader set the file's length first and left holes, which read as zeros."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..present.units import count

if TYPE_CHECKING:
    from .model import Header

#: Smaller tensors do not fill a block, so that a hole never shows whether they were written.
_SMALLEST = 4096
_MOST_HOLES = 100_000


def never_written(fd: int, header: Header, size: int) -> str | None:
    """What lies in holes of the file, in words; None where every tensor has blocks.

    Only where a tensor begins or ends inside a block that a hole adjoins are the few bytes of that block read.
    """
    found = os.fstat(fd)
    allocated = found.st_blocks * 512
    if allocated >= size:
        return None
    try:
        holes = _holes(fd, size)
    except OSError:  # a file system that does not tell
        return None
    empty = []
    place = 0
    for tensor in header.tensors:
        end = tensor.offset + tensor.length
        while place < len(holes) and holes[place][1] <= tensor.offset:
            place += 1
        if place == len(holes):
            break
        before, after = holes[place][0] - tensor.offset, end - holes[place][1]
        if tensor.length < _SMALLEST or max(before, after) >= found.st_blksize:
            continue
        if _zeros(fd, tensor.offset, before) and _zeros(fd, end - after, after):
            empty.append(tensor)
    if not empty:
        return None
    total = sum(tensor.length for tensor in empty)
    last = empty[-1].offset + empty[-1].length
    until = "the end" if last == size else f"{last:,}"
    return (
        f"{len(empty):,} of {count(len(header.tensors), 'tensor')} are entirely zero and were never written: "
        f"{count(total, 'byte')}, from offset {empty[0].offset:,} to {until}, lie in holes "
        f"({allocated:,} of {count(size, 'byte')} are allocated)"
    )


def _zeros(fd: int, offset: int, length: int) -> bool:
    return length <= 0 or not any(os.pread(fd, length, offset))


def _holes(fd: int, size: int) -> list[tuple[int, int]]:
    holes: list[tuple[int, int]] = []
    position = 0
    while position < size and len(holes) < _MOST_HOLES:
        start = os.lseek(fd, position, os.SEEK_HOLE)
        if start >= size:
            break
        try:
            position = os.lseek(fd, start, os.SEEK_DATA)
        except OSError:  # no data after the hole
            position = size
        holes.append((start, position))
    return holes
