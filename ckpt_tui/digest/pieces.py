"""A file as pieces that are read at one go and hashed apart from each other: whole leaves, packed together. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from ..native import leaf_digests, leaf_ends
from .layout import LEAF, WIDTH, leaf_digest, segment_digests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The longest piece: what a thread's buffer has to hold. Two leaves, as threads meet over each piece (`lanes`).
LONGEST = 2 * LEAF


class Range(NamedTuple):
    """Where a piece lies in its file, and which leaves it holds, as a range of their numbers."""

    offset: int
    length: int
    first: int
    last: int


class Pieces:
    """The pieces of a file whose segments have these lengths, and the digests of its leaves as they come.

    Pieces may come in any order and from any thread.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = lengths
        #: Where each leaf ends, after the beginning of the first.
        self._ends = array("Q", leaf_ends([*lengths], LEAF))
        self._starts = list(_starts(self._ends))
        self.leaves = bytearray(WIDTH * (len(self._ends) - 1))

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> Range:
        """One of them, counted from 0."""
        first, last = self._starts[number], self._starts[number + 1]
        offset = self._ends[first]
        return Range(offset, self._ends[last] - offset, first, last)

    def __iter__(self) -> Iterator[Range]:
        """All of them, in order."""
        return (self[number] for number in range(len(self)))

    def hash(self, piece: Range, data: memoryview) -> None:
        """Take the bytes of a piece."""
        _, _, first, last = piece
        digests = leaf_digest(data) if last - first == 1 else leaf_digests(data, self._ends, first, last)
        self.leaves[first * WIDTH : last * WIDTH] = digests

    def segments(self) -> bytes:
        """The digests of all segments, once every piece has come."""
        return segment_digests(self._lengths, bytes(self.leaves))


def _starts(ends: Sequence[int]) -> Iterator[int]:
    """The number of the first leaf of each piece, and of the leaf after the last: as many whole leaves as fit."""
    first = 0
    while first < len(ends) - 1:
        yield first
        first = bisect_right(ends, ends[first] + LONGEST) - 1
    yield first
