"""Leaves and segments of a file from its bytes in order, wherever the blocks are cut. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xxhash

from .layout import LEAF, leaf_digest, segment_digest, small_segment_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cut import Span


class SegmentStream:
    """Takes the blocks of a file and collects the digest of each leaf and segment.

    The hot path is the tensor that lies whole in one block: a slice, a leaf, a segment, and no object that lives on.
    """

    def __init__(self, spans: Sequence[Span]) -> None:
        #: Digests of all segments so far, and of all their leaves, one after the other.
        self.segments = bytearray()
        self.leaves = bytearray()
        self._lengths = iter([span.length for span in spans])
        self._length = 0  # of the current segment
        self._left = 0  # its bytes that have not come, counted in whole leaves
        self._own: list[bytes] = []  # leaves of the current segment
        self._partial: xxhash.xxh3_128 | None = None  # a leaf whose beginning came in an earlier block
        self._need = 0  # bytes until the current leaf is whole
        self._open()

    @property
    def complete(self) -> bool:
        """Whether every byte of every segment has come."""
        return self._left == 0

    def update(self, block: memoryview) -> None:
        """Take the next bytes of the file; no more than the segments hold."""
        at, end = 0, len(block)
        while at < end:
            stop = at + self._need
            if stop > end:
                self._partial = self._partial or xxhash.xxh3_128()
                self._partial.update(block[at:])
                self._need = stop - end
                return
            if self._partial is None:
                leaf = leaf_digest(block[at:stop])
            else:
                self._partial.update(block[at:stop])
                leaf, self._partial = self._partial.digest(), None
            at = stop
            self.leaves += leaf
            if self._length <= LEAF:
                self.segments += small_segment_digest(self._length, leaf)
                self._open()
                continue
            self._own.append(leaf)
            self._left -= min(LEAF, self._left)
            self._need = min(LEAF, self._left)
            if not self._left:
                self.segments += segment_digest(self._length, self._own)
                self._own.clear()
                self._open()

    def _open(self) -> None:
        """Go to the next segment that has bytes; those without are whole as they are."""
        length = 0
        for length in self._lengths:
            if length:
                break
            self.segments += segment_digest(0, ())
        self._length = self._left = length
        self._need = min(LEAF, length)
