"""One element's bits as its dtype cuts them: sign, exponent and mantissa, with those marked that differ. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .spans import Line, Span

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...facts.drill import FirstElement

#: Bits of sign, exponent and mantissa.
_FLOATS = {
    "BF16": (1, 8, 7), "F16": (1, 5, 10), "F32": (1, 8, 23), "F64": (1, 11, 52), "F8_E4M3": (1, 4, 3),
    "F8_E5M2": (1, 5, 2), "F8_E4M3FNUZ": (1, 4, 3), "F8_E5M2FNUZ": (1, 5, 2), "F8_E8M0": (0, 8, 0), "F4": (1, 2, 1),
    "F6_E2M3": (1, 2, 3), "F6_E3M2": (1, 3, 2),
}  # fmt: skip
_PARTS = ("sign", "exponent", "mantissa")
#: More differing bits than this have no place in a sentence.
_NAMED = 4


class Field(NamedTuple):
    """A part of an element: its name, and the places of its bits, the highest first."""

    name: str
    places: range


def fields(dtype: str | None, width: int) -> tuple[Field, ...]:
    """The parts of an element of `width` bits; bytes without a name where the dtype has no parts."""
    cut = _FLOATS.get(dtype or "")
    if cut is None:
        return tuple(Field("", range(low + 7, low - 1, -1)) for low in range(width - 8, -1, -8))
    made, high = [], sum(cut) - 1
    for name, size in zip(_PARTS, cut, strict=True):
        if size:
            made.append(Field(name, range(high, high - size, -1)))
        high -= size
    return tuple(made)


def width_of(first: FirstElement) -> int:
    """Bits of an element as it is shown: whole bytes."""
    return 4 * len(first.reference.hex)


def drawn(digits: str, cut: tuple[Field, ...], marked: Collection[int]) -> Line:
    """The bits of one side, given in hex; those that differ in the tone of trouble."""
    value = int(digits, 16)
    spans: list[Span] = []
    for number, field in enumerate(cut):
        spans += [Span(" ")] * (number > 0)
        spans += [Span(str(value >> place & 1), "bad" if place in marked else "") for place in field.places]
    return tuple(spans)


def pointer(cut: tuple[Field, ...], marked: Collection[int], up: str) -> str:
    """The line below the bits that points at those that differ."""
    return " ".join("".join(up if place in marked else " " for place in field.places) for field in cut).rstrip()


def named(cut: tuple[Field, ...], marked: Collection[int]) -> str:
    """`bit 15, the sign`; `bits 9, 3: exponent, mantissa`; '' for many."""
    if not marked or len(marked) > _NAMED:
        return ""
    where = [field.name for field in cut if field.name and any(place in marked for place in field.places)]
    if len(marked) == 1:
        return f"bit {min(marked)}{f', the {where[0]}' if where else ''}"
    said = f": {', '.join(where)}" if where else ""
    return f"bits {', '.join(map(str, sorted(marked, reverse=True)))}{said}"
