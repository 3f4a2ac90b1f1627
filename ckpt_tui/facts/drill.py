"""Which bytes of a segment differ, and what they mean: what a descent below the digests has found.

One side is the reference: of a group that is right or a majority, else of the first group that has the segment. Every
other side whose segment is not the same is held against it. Offsets count from the start of the reference's file.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .base import Fact

#: Files are compared, and read again, in leaves of this many bytes from each segment's start (the digests' layout).
LEAF = 1 << 20
#: As many bytes a side are read again, unless the user says otherwise.
DRILL_BYTES = 64 << 20
#: Fewer equal bytes than this between two differing ones are taken for chance.
GAP = 64


class Reread(NamedTuple):
    """Bytes read once more. `doubt`: why it is not proven that they came from the disk; None where it is."""

    data: bytes
    doubt: str | None = None


class ByteRun(Fact, frozen=True, kw_only=True):
    """A stretch from one differing byte to another, in which no `GAP` bytes in a row are equal."""

    offset: int
    length: int
    #: Differing bytes in it.
    bytes: int
    #: First and last byte (exclusive) of the zeros that cover this stretch, as far as was looked, on either side.
    reference_zeros: tuple[int, int] | None = None
    zeros: tuple[int, int] | None = None


class Element(Fact, frozen=True, kw_only=True):
    """One element on one side: its bits in hex, most significant first, and its value as text.

    `around` are bytes in the file's order, in hex, from `FirstElement.around_offset` on.
    """

    hex: str
    value: str
    around: str


class FirstElement(Fact, frozen=True, kw_only=True):
    """The first element that differs; where the dtype is not known, the first byte."""

    offset: int
    #: Its place in the tensor, counted flat, and by the tensor's shape.
    element: int
    index: tuple[int, ...]
    #: Which of its bits differ, the least significant being 0.
    bits: tuple[int, ...]
    around_offset: int
    reference: Element
    other: Element


class Kinds(Fact, frozen=True, kw_only=True):
    """What the differing elements of one side are."""

    nan: int
    inf: int
    zero: int


class Values(Fact, frozen=True, kw_only=True):
    """What the differing elements are worth, for dtypes with a point. Differences are of finite pairs alone."""

    #: Differing elements that were looked at: the first ones, where there are very many.
    elements: int
    reference: Kinds
    other: Kinds
    #: Pairs whose values are equal all the same: 0.0 and -0.0.
    equal_values: int
    #: Pairs that are both NaN, with other bits.
    nan_payloads: int
    max_abs: float | None
    mean_abs: float | None


class SideDifference(Fact, frozen=True, kw_only=True):
    """How one side's bytes differ from the reference's, in what was compared."""

    side: str
    dtype: str | None
    shape: tuple[int, ...]
    #: Differing bytes, bits and elements. Elements are null where the dtype is not known.
    bytes: int
    bits: int
    elements: int | None
    #: The bits that differ in any element (in any byte, where the dtype is not known).
    bit_positions: tuple[int, ...]
    runs: tuple[ByteRun, ...]
    first: FirstElement | None
    values: Values | None = None
    #: Stretches beyond those that are listed.
    runs_left_out: int = 0
    #: Every element compared holds the reference's bytes in reverse.
    byte_swapped: bool = False
    #: Bytes compared, and bytes of leaves that differ and were not read.
    compared: int = 0
    not_read: int = 0
    #: Bytes of the segment that only one of the two has: it is longer.
    lacking: int = 0
    #: Of those that were not read, the bytes that are zeros by their digests, on either side.
    reference_zeros_not_read: int = 0
    zeros_not_read: int = 0


class Drill(Fact, frozen=True, kw_only=True):
    """What was found in the bytes of one segment.

    `read_again`: by side, whether reading it once more, past the page cache where that can be, gave what its digests
    were made of.
    """

    reference: str
    sides: tuple[SideDifference, ...]
    read_again: dict[str, bool]
    #: Leaves of the segment, and how many of them are not the same on all sides.
    leaves: int
    leaves_differing: int
    #: Sides that could not be read for this, each with the reason.
    errors: dict[str, str] = msgspec.field(default_factory=dict)
    #: Sides whose second reading is not proven to come from the disk, each with the reason.
    not_proven: dict[str, str] = msgspec.field(default_factory=dict)
