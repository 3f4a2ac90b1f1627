"""A piece of a segment as two sides hold it, an element at a time. Pure."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from ..facts.drill import Element, FirstElement
from .elements import packed, shown, unpacked, width

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Bytes shown before and after the first element that differs.
_AROUND = 8


@dataclass(frozen=True)
class Piece:
    """Bytes that begin `at` bytes after the segment's start, on two sides and mixed by exclusive or."""

    dtype: str | None
    at: int
    xor: bytes
    reference: bytes
    other: bytes

    @cached_property
    def wide(self) -> int:
        """Bytes of an element as it is cut here: those of less than a byte get one each."""
        return width(self.dtype) or 1

    @cached_property
    def _bits(self) -> int:
        return packed(self.dtype) or 8 * self.wide

    @cached_property
    def _lead(self) -> int:
        """Bytes before the piece that belong to its first group of elements."""
        return self.at % (math.lcm(self._bits, 8) // 8)

    @cached_property
    def first(self) -> int:
        """The number of its first element in the tensor."""
        return (self.at - self._lead) * 8 // self._bits

    @cached_property
    def whole(self) -> tuple[int, int]:
        """The elements that lie in the piece with all their bits: a start and an end, counted from `first`."""
        end = (self.at + len(self.xor)) * 8 // self._bits
        return -(-self.at * 8 // self._bits) - self.first, end - self.first

    def cut(self, raw: bytes) -> bytes:
        """One side's elements, or the mixed ones, `wide` bytes each."""
        if packed(self.dtype) is None:
            return raw[: len(raw) - len(raw) % self.wide]
        # Zeros stand for what lies before the piece: they are equal on both sides.
        return unpacked(bytes(self._lead) + raw, self._bits)

    @cached_property
    def planes(self) -> list[bytes]:
        """The mixed elements' bytes by significance, least first."""
        mixed = self.cut(self.xor)
        return [mixed[place :: self.wide] for place in range(self.wide)]

    @cached_property
    def differs(self) -> bytes:
        """For each element a byte that is not zero where any byte of the element is not."""
        if len(self.planes) == 1:
            return self.planes[0]
        united = reduce(operator.or_, (int.from_bytes(plane, "little") for plane in self.planes))
        return united.to_bytes(len(self.planes[0]), "little")

    def first_element(self, offset: int, shape: Sequence[int]) -> FirstElement:
        """The first element that differs. `offset` is where the segment lies in the reference's file."""
        byte = leading_zeros(self.xor)
        start = byte - byte % self.wide
        end = start + self.wide
        around, until = max(start - _AROUND, 0), end + _AROUND
        split = packed(self.dtype) is not None
        place = leading_zeros(self.differs) if split else start // self.wide
        known = self.whole[0] <= place < self.whole[1]

        def bits(raw: bytes) -> bytes:
            return self.cut(raw)[place : place + 1] if split else raw[start:end]

        def element(raw: bytes) -> Element:
            own = bits(raw)
            value = shown(self.dtype, own) if known else ""
            return Element(hex=own[::-1].hex(), value=value, around=raw[around:until].hex())

        return FirstElement(
            offset=offset + self.at + byte,
            element=self.first + place,
            index=_index(self.first + place, shape),
            bits=positions(int.from_bytes(bits(self.xor), "little")),
            around_offset=offset + self.at + around,
            reference=element(self.reference),
            other=element(self.other),
        )


def leading_zeros(raw: bytes) -> int:
    """Zero bytes before the first other one."""
    return len(raw) - len(raw.lstrip(b"\0"))


def positions(mask: int) -> tuple[int, ...]:
    """The bits that are set, the least significant being 0."""
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


def _index(place: int, shape: Sequence[int]) -> tuple[int, ...]:
    """A flat place in a tensor as one index a dimension, the last one running fastest."""
    index = []
    for dim in reversed(shape):
        place, rest = divmod(place, dim) if dim else (0, 0)
        index.append(rest)
    return tuple(reversed(index))
