"""One side's bytes of a segment against the reference's: how many differ, where first, and what they are worth. Pure.

Nothing in here walks over bytes one by one: equal pieces are compared as a whole, differing ones as large integers, by
`translate`-like slices and by regular expressions, which keeps a MiB of noise at some hundredths of a second.
"""

from __future__ import annotations

import math
import operator
import re
from array import array
from dataclasses import dataclass, field
from functools import reduce
from itertools import compress, islice
from typing import TYPE_CHECKING

from ..facts.drill import GAP, ByteRun, FirstElement, Kinds, SideDifference, Values
from .elements import floats, width
from .piece import Piece, leading_zeros, positions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Stretches that are listed; the last one is always among them.
RUNS_LISTED = 32
#: Differing elements of a segment whose values are looked at.
VALUES_LOOKED_AT = 1 << 14
_EQUAL = re.compile(rb"\0{%d,}" % GAP)
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(slots=True)
class _Run:
    """A stretch as it grows; offsets count from the segment's start."""

    start: int
    end: int
    bytes: int
    reference_zeros: tuple[int, int] | None
    zeros: tuple[int, int] | None

    def join(self, later: _Run) -> None:
        self.end = later.end
        self.bytes += later.bytes
        self.reference_zeros = _both(self.reference_zeros, later.reference_zeros)
        self.zeros = _both(self.zeros, later.zeros)


def _both(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    return (one[0], other[1]) if one and other and one[1] >= other[0] else None


@dataclass(slots=True)
class Comparison:
    """Takes pieces of a segment in order, and in the end tells how they differ.

    A piece begins at a whole element, as every leaf does; only elements of 6 bits may lie across two pieces, and count
    as one. `offset` is where the segment lies in the reference's file.
    """

    side: str
    offset: int
    dtype: str | None
    shape: tuple[int, ...]
    compared: int = 0
    _bytes: int = 0
    _bits: int = 0
    _elements: int = 0
    #: The number of the last element that differs.
    _last: int = -1
    _first: FirstElement | None = None
    _swapped: bool = True
    _runs_left_out: int = 0
    _runs: list[_Run] = field(default_factory=list)
    _masks: list[int] = field(default_factory=list)
    _reference: array[int] = field(init=False)
    _other: array[int] = field(init=False)
    _wide: int = field(init=False)

    def __post_init__(self) -> None:
        self._wide = width(self.dtype) or 1
        self._masks = [0] * self._wide
        self._reference, self._other = array(_CODES[self._wide]), array(_CODES[self._wide])

    def add(self, at: int, reference: bytes, other: bytes) -> None:
        """Compare a piece that begins `at` bytes after the segment's start; both sides' have one length."""
        if len(reference) != len(other):
            raise ValueError("pieces of two sides are compared at one length")
        self.compared += len(reference)
        if reference == other:
            return
        mixed = int.from_bytes(reference, "little") ^ int.from_bytes(other, "little")
        self._bits += mixed.bit_count()
        xor = mixed.to_bytes(len(reference), "little")
        self._bytes += len(xor) - xor.count(0)
        piece = Piece(self.dtype, at, xor, reference, other)
        self._masks = [
            mask | reduce(operator.or_, set(plane), 0) for mask, plane in zip(self._masks, piece.planes, strict=True)
        ]
        self._count(piece)
        if self._first is None:
            self._first = piece.first_element(self.offset, self.shape)
        self._swapped = self._swapped and _reversed(reference, self._swap_width()) == other
        for run in _runs(at, xor, reference, other):
            self._take(run)
        self._collect(piece)

    def result(
        self, *, not_read: int = 0, reference_zeros_not_read: int = 0, zeros_not_read: int = 0, lacking: int = 0
    ) -> SideDifference:
        """What was found; the arguments say what was not compared: in leaves that differ, or on one side only."""
        known = width(self.dtype) is not None
        return SideDifference(
            side=self.side,
            dtype=self.dtype,
            shape=self.shape,
            bytes=self._bytes,
            bits=self._bits,
            elements=self._elements if known else None,
            bit_positions=positions(int.from_bytes(bytes(self._masks), "little")),
            runs=tuple(self._shown(run) for run in self._runs),
            first=self._first,
            values=self._values(),
            runs_left_out=self._runs_left_out,
            byte_swapped=self._swapped and self._swap_width() > 1 and self._elements > 0,
            compared=self.compared,
            not_read=not_read,
            lacking=lacking,
            reference_zeros_not_read=reference_zeros_not_read,
            zeros_not_read=zeros_not_read,
        )

    def _swap_width(self) -> int:
        return 4 if self.dtype == "C64" else self._wide

    def _count(self, piece: Piece) -> None:
        """Add the elements that differ; one that lies across two pieces is counted once."""
        number = len(piece.differs) - piece.differs.count(0)
        if number:
            self._elements += number - (piece.first + leading_zeros(piece.differs) == self._last)
            self._last = piece.first + len(piece.differs.rstrip(b"\0")) - 1

    def _take(self, run: _Run) -> None:
        """Join it to the one before it where few equal bytes lie between; list the first ones and the last."""
        last = self._runs[-1] if self._runs else None
        if last is not None and run.start - last.end < GAP:
            last.join(run)
        elif len(self._runs) < RUNS_LISTED:
            self._runs.append(run)
        else:
            self._runs[-1] = run
            self._runs_left_out += 1

    def _shown(self, run: _Run) -> ByteRun:
        def moved(zeros: tuple[int, int] | None) -> tuple[int, int] | None:
            return (self.offset + zeros[0], self.offset + zeros[1]) if zeros else None

        return ByteRun(
            offset=self.offset + run.start,
            length=run.end - run.start,
            bytes=run.bytes,
            reference_zeros=moved(run.reference_zeros),
            zeros=moved(run.zeros),
        )

    def _collect(self, piece: Piece) -> None:
        """Keep the bits of the differing elements whose values will be looked at."""
        room = VALUES_LOOKED_AT - len(self._reference)
        if floats(self.dtype) is None or room <= 0:
            return
        start, end = piece.whole
        for kept, raw in ((self._reference, piece.reference), (self._other, piece.other)):
            all_ = array(_CODES[self._wide])
            all_.frombytes(piece.cut(raw)[start * self._wide : end * self._wide])
            kept.extend(islice(compress(all_, piece.differs[start:end]), room))

    def _values(self) -> Values | None:
        decode = floats(self.dtype)
        if decode is None or not self._reference:
            return None
        one, other = decode(self._reference.tobytes()), decode(self._other.tobytes())
        differences = [value for value in map(abs, map(operator.sub, one, other)) if value < math.inf]
        # Divided first, so that no sum is larger than a float can be.
        mean = math.fsum(value / len(differences) for value in differences) if differences else None
        return Values(
            elements=len(one),
            reference=_kinds(one),
            other=_kinds(other),
            equal_values=sum(map(operator.eq, one, other)),
            nan_payloads=sum(map(operator.and_, map(operator.ne, one, one), map(operator.ne, other, other))),
            max_abs=max(differences, default=None),
            mean_abs=mean,
        )


def _runs(at: int, xor: bytes, reference: bytes, other: bytes) -> Iterator[_Run]:
    """The stretches of one piece."""
    start = leading_zeros(xor)
    stop = len(xor.rstrip(b"\0"))
    ends = [(gap.start(), gap.end()) for gap in _EQUAL.finditer(xor, start, stop)]
    for end, next_start in [*ends, (stop, stop)]:
        yield _Run(
            start=at + start,
            end=at + end,
            bytes=end - start - xor.count(0, start, end),
            reference_zeros=_zeros(at, start, end, reference),
            zeros=_zeros(at, start, end, other),
        )
        start = next_start


def _zeros(at: int, start: int, stop: int, raw: bytes) -> tuple[int, int] | None:
    """How far the zeros go that fill this stretch; None where it holds anything else."""
    if raw.count(0, start, stop) < stop - start:
        return None
    before = len(raw[:start].rstrip(b"\0"))
    after = len(raw) - len(raw[stop:].lstrip(b"\0"))
    return at + before, at + after


def _reversed(raw: bytes, wide: int) -> bytes:
    """Each element's bytes in the other order."""
    swapped = bytearray(raw)
    whole = len(raw) - len(raw) % wide
    for place in range(wide):
        swapped[place:whole:wide] = raw[wide - 1 - place : whole : wide]
    return bytes(swapped)


def _kinds(values: Sequence[float]) -> Kinds:
    infinite = values.count(math.inf) + values.count(-math.inf)
    return Kinds(nan=sum(map(operator.ne, values, values)), inf=infinite, zero=values.count(0.0))
