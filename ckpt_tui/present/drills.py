"""What a look at the bytes has found, in lines: the same on the command line, in a report and on the screen. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from . import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts.agreement import DifferingSegment
    from ..facts.drill import Drill, Element, FirstElement, SideDifference


class Said(NamedTuple):
    """A line with the word that goes before it."""

    label: str
    text: str


class Around(NamedTuple):
    """The bytes about the first element, on one side, as pairs of hex digits."""

    label: str
    offset: int
    before: str
    element: str
    after: str


def lines(segment: DifferingSegment) -> list[Said]:
    """How much differs, where first, what it is worth, what was left out, and whether it was read twice the same."""
    drill = segment.drill
    if drill is None:
        return []
    said = [line for side in drill.sides for line in _side(segment, drill, side)]
    said += [Said("not read", f"{side}: {error}") for side, error in drill.errors.items()]
    if drill.read_again:
        moved = [side for side, same in drill.read_again.items() if not same]
        text = f"{', '.join(moved)} gave other bytes than before" if moved else "read twice, the same"
        said.append(Said("again", text + _not_proven(drill)))
    return said


def _not_proven(drill: Drill) -> str:
    """`; not proven to come from the disk: A, B (pages stayed in the page cache)`."""
    sides: dict[str, list[str]] = {}
    for side, why in drill.not_proven.items():
        sides.setdefault(why, []).append(side)
    told = [f"{', '.join(who)} ({why})" for why, who in sides.items()]
    return f"; not proven to come from the disk: {', '.join(told)}" if told else ""


def _side(segment: DifferingSegment, drill: Drill, side: SideDifference) -> Iterator[Said]:
    who = f"{drill.reference} / {side.side}: " if len(drill.sides) > 1 else ""
    yield Said("differs", who + amount(segment, side))
    if side.first is not None:
        yield Said("first", who + first(drill, side, side.first))
    if worth := _values(drill, side):
        yield Said("values", who + worth)
    if side.not_read:
        yield Said("left out", f"{who}{units.size(side.not_read)} in leaves that differ were not read again")


def amount(segment: DifferingSegment, side: SideDifference) -> str:
    """`1 of 50,331,648 elements, 1 byte, 1 bit`; what was compared, where that is not all."""
    more = [f"{units.count(side.lacking, 'byte')} only on one side"] if side.lacking else []
    if not side.bytes and not side.not_read:
        return ", ".join(["nothing as far as both go" if more else "nothing any more", *more])
    parts = [units.count(side.bytes, "byte"), units.count(side.bits, "bit")]
    if side.elements is not None:
        total = math.prod(side.shape) if side.shape else 1
        parts.insert(0, f"{side.elements:,} of {units.count(total, 'element')}")
    stretches = len(side.runs) + side.runs_left_out
    if stretches > 1:
        parts.append(f"in {stretches:,} places")
    if side.compared < segment.length and side.not_read:
        parts.append(f"in the {units.size(side.compared)} that were compared")
    if side.byte_swapped:
        parts.append("each element's bytes in the other order")
    return ", ".join([*parts, *more])


def first(drill: Drill, side: SideDifference, found: FirstElement) -> str:
    """`[1204, 77]: A 0.0123 (0x3c4a), B -0.0123 (0xbc4a), bit 15`."""
    where = f"[{', '.join(map(str, found.index))}]" if side.elements is not None else f"byte {found.offset:,}"
    values = [_value(drill.reference, found.reference), _value(side.side, found.other)]
    bits = f"bit{'s' * (len(found.bits) > 1)} {', '.join(map(str, found.bits))}" if len(found.bits) <= 8 else ""
    return f"{where}: {', '.join(part for part in (*values, bits) if part)}"


def _value(label: str, element: Element) -> str:
    return " ".join(part for part in (label, element.value, f"(0x{element.hex})") if part)


def _values(drill: Drill, side: SideDifference) -> str:
    values = side.values
    if values is None:
        return ""
    parts = []
    if values.max_abs is not None and values.mean_abs is not None:
        parts.append(f"apart by {values.max_abs:.4g} at most, {values.mean_abs:.4g} on average")
    for name in ("nan", "inf", "zero"):
        mine, theirs = getattr(values.reference, name), getattr(values.other, name)
        if mine or theirs:
            word = {"nan": "NaN", "inf": "Inf", "zero": "zero"}[name]
            parts.append(f"{word}: {drill.reference} {mine:,}, {side.side} {theirs:,}")
    if values.equal_values:
        parts.append(f"equal all the same in {values.equal_values:,} (0.0 and -0.0)")
    if values.nan_payloads:
        parts.append(f"both NaN, with other bits, in {values.nan_payloads:,}")
    if side.elements is not None and values.elements < side.elements:
        parts.append(f"of the first {values.elements:,}")
    return "; ".join(parts)


def around(drill: Drill, side: SideDifference) -> list[Around]:
    """The bytes about the first element that differs: the reference's, then the other's."""
    found = side.first
    if found is None:
        return []
    wide = max(len(found.reference.hex) // 2, 1)
    start = found.offset - found.around_offset
    start -= start % wide if side.elements is not None else 0
    both = ((drill.reference, found.reference), (side.side, found.other))
    return [_around(label, found.around_offset, _bytes(one.around), start, wide) for label, one in both]


def _bytes(hexed: str) -> bytes:
    """What a peer or a file says that there is; nothing where it is no hex."""
    try:
        return bytes.fromhex(hexed)
    except ValueError:
        return b""


def _around(label: str, offset: int, raw: bytes, start: int, wide: int) -> Around:
    return Around(label, offset, raw[:start].hex(" "), raw[start : start + wide].hex(" "), raw[start + wide :].hex(" "))
