"""Causes that show in the bytes: flipped bits, zeros, foreign stretches, other values. Pure rules, tried in turn.

Each holds one side of a file against the reference and says what it is sure of, or nothing. The order is part of the
rules: what is more particular comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.agreement import CauseCode
from ..facts.drill import GAP
from ..facts.files import SegmentKind, State
from .elements import width
from .scene import Finding, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .spots import Looked, Pair, Spot
    from .tables import FileDifference

PAGE = 4096
#: At most so many bits are `a few`.
_FEW_BITS = 8
#: Single bits at one and the same place of many elements are a fault of the memory; up to one element in so many.
_ONE_IN = 64
#: At most so many stretches are damage at a place and not other values.
_FEW_SPOTS = 8
#: So much of a stretch makes it one.
_NEARLY = 15 / 16
#: Fewer swapped elements than this may be chance.
_TELLING = 8
#: Damage is short: up to this many bytes, or this part of the file.
_SHORT, _SHARE = 64 << 10, 16


def by_bytes(found: FileDifference, pair: Pair) -> Finding | None:
    """The first rule that fits what was read; None where none does."""
    rules: Sequence[Callable[[FileDifference, Pair], Finding | None]] = (
        _unstable,
        _bit_flip,
        _zeros,
        _whole_rows,
        _damaged_run,
        _replaced,
    )
    if not pair.looked:
        return None
    return next((finding for rule in rules if (finding := rule(found, pair)) is not None), None)


def _unstable(_found: FileDifference, pair: Pair) -> Finding | None:
    """Reading again gave other bytes under the same stat, or no difference at all."""
    moved = [
        side
        for side in (pair.reference, pair.side)
        if any(one.drill.read_again.get(side) is False for one in pair.looked)
    ]
    if moved:
        facts = [f"{side}: size, times and inode have not moved" for side in moved]
        summary = f"read again, {' and '.join(moved)} gave other bytes than before: the machine, not the file"
        return Finding(CauseCode.UNSTABLE_READ, summary, facts)
    return None


def _bit_flip(found: FileDifference, pair: Pair) -> Finding | None:
    if not pair.complete or not pair.bytes:
        return None
    positions = {bit for one in pair.looked for bit in one.side.bit_positions}
    stuck = pair.bits == pair.bytes and len(positions) == 1 and pair.bytes * _ONE_IN <= pair.compared
    if pair.bits > _FEW_BITS and not stuck:
        return None
    if pair.bits > 1 and all(_is_one_element(one) for one in pair.looked):
        return None  # a counter or a scale that has another value
    summary = f"{plural(pair.bits, 'bit')} in {plural(pair.bytes, 'byte')}"
    if stuck and pair.bits > _FEW_BITS:
        summary += f", always bit {positions.pop()}"
    return Finding(CauseCode.BIT_FLIP, summary, [_first(pair), *_rest_equal(found, pair), *_read_twice(pair)])


def _is_one_element(one: Looked) -> bool:
    return one.segment.kind is SegmentKind.TENSOR and one.segment.length <= 8


def _zeros(found: FileDifference, pair: Pair) -> Finding | None:
    """All that differs is zeros on one side, in few stretches."""
    if not pair.listed:
        return None
    for label, zeros in (
        (pair.side, [s.zeros for s in pair.spots]),
        (pair.reference, [s.reference_zeros for s in pair.spots]),
    ):
        extents = _merged([extent for extent in zeros if extent])
        unread = pair.not_read - _unread_zeros(pair, label)
        long = all(spot.end - spot.start >= GAP for spot in pair.spots)
        if not zeros or None in zeros or not long or unread or len(extents) > _FEW_SPOTS:
            continue
        return _zero_finding(found, pair, label, extents)
    return None


def _unread_zeros(pair: Pair, label: str) -> int:
    if label == pair.side:
        return sum(one.side.zeros_not_read for one in pair.looked)
    return sum(one.side.reference_zeros_not_read for one in pair.looked)


def _merged(extents: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in extents:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _zero_finding(found: FileDifference, pair: Pair, label: str, extents: Sequence[tuple[int, int]]) -> Finding | None:
    row = found.rows[label]
    suspect = row.error if row is not None and row.state is State.SUSPECT else None
    if (_fills_tensors(pair) or _rows(pair)) and not suspect:
        return None  # somebody may want a tensor to be zero, or the row of a word that pads
    facts = [_first(pair), *([suspect] if suspect else []), *_read_twice(pair)]
    candidate = not pair.whole and not suspect
    start, end = _from(pair.spots[0], extents[0]), extents[-1][1]
    covered = sum(until - begin for begin, until in extents)
    # Tensors in between may be zero on both sides: they do not differ, and were not looked at.
    if row is not None and end == row.size and (pair.not_read or covered >= (end - start) * _NEARLY):
        summary = f"zeros in {label} from byte {start:,} to the end, {plural(end - start, 'byte')}"
        return Finding(CauseCode.ZERO_TAIL, summary, [*_aligned([(start, end)]), *facts], candidate, frozenset({label}))
    if pair.not_read:  # in between there is nothing else
        stretches = [(start, _to(pair.spots[-1], extents[-1]))]
    else:
        inside = [[s for s in pair.spots if begin <= s.start < until] for begin, until in extents]
        stretches = [
            (_from(spots[0], extent), _to(spots[-1], extent)) for spots, extent in zip(inside, extents, strict=True)
        ]
    total = plural(sum(until - begin for begin, until in stretches), "byte")
    several = f" in {len(stretches)} stretches" if len(stretches) > 1 else ""
    summary = f"{total} of zeros in {label}{several} from byte {start:,}"
    return Finding(CauseCode.ZERO_RUN, summary, [*_aligned(stretches), *facts], candidate, frozenset({label}))


def _from(spot: Spot, extent: tuple[int, int]) -> int:
    """Where a block of zeros begins: at the page's border, where the zeros reach back to it."""
    border = spot.start // PAGE * PAGE
    return border if border >= extent[0] else spot.start


def _to(spot: Spot, extent: tuple[int, int]) -> int:
    border = -(-spot.end // PAGE) * PAGE
    return border if border <= extent[1] else spot.end


def _aligned(stretches: Sequence[tuple[int, int]]) -> list[str]:
    """What may be said of page borders; stretches of bytes that end at the file's end need begin at one only."""
    if all(start % PAGE == 0 and end % PAGE == 0 for start, end in stretches):
        return ["whole pages of 4,096 bytes"]
    if all(start % PAGE == 0 for start, _ in stretches):
        return ["begins at a border of a page of 4,096 bytes"]
    return ["not at borders of pages"]


def _fills_tensors(pair: Pair) -> bool:
    """Whether each stretch is one tensor or several, from its first byte to its last."""
    starts = [one.segment.offset for one in pair.looked]
    ends = [one.segment.offset + one.segment.length for one in pair.looked]
    tensors = all(one.segment.kind is SegmentKind.TENSOR for one in pair.looked)
    return tensors and all(
        any(spot.near(start, end) for start in starts for end in ends if start < end) for spot in pair.spots
    )


def _whole_rows(_found: FileDifference, pair: Pair) -> Finding | None:
    """Rows of a matrix, as somebody writes them who trains the embedding of a word."""
    rows = _rows(pair)
    if not rows:
        return None
    summary = f"other values in {plural(rows, 'whole row')} of a tensor"
    return Finding(CauseCode.TENSOR_REPLACED, summary, [_first(pair), *_worth(pair)])


def _rows(pair: Pair) -> int:
    """How many rows of one matrix differ, where nothing else does; 0 also where they may as well be pages."""
    if not (pair.complete and pair.listed and len(pair.looked) == 1) or _covers_pages(pair.spots):
        return 0
    one = pair.looked[0]
    row = (width(one.side.dtype) or 0) * one.side.shape[-1] if len(one.side.shape) > 1 else 0
    start = one.segment.offset
    if row < GAP or _fills_tensors(pair):
        return 0
    if not all((spot.start - start) % row < 16 and -(spot.end - start) % row < 16 for spot in pair.spots):
        return 0
    return sum(-(-(spot.end - start) // row) - (spot.start - start) // row for spot in pair.spots)


def _damaged_run(found: FileDifference, pair: Pair) -> Finding | None:
    if not (pair.complete and pair.listed) or not 0 < len(pair.spots) <= _FEW_SPOTS or _fills_tensors(pair):
        return None
    size = max(row.size for row in found.rows.values() if row is not None)
    total = sum(spot.end - spot.start for spot in pair.spots)
    if total > max(_SHORT, size // _SHARE):
        return None
    one = pair.spots[0]
    pages = _covers_pages(pair.spots)
    if pages:
        total = sum(_pages(spot) for spot in pair.spots) * PAGE
    start = one.start // PAGE * PAGE if pages else one.start
    summary = f"{plural(total, 'byte')} at byte {start:,}"
    if len(pair.spots) > 1:
        summary = f"{plural(total, 'byte')} in {len(pair.spots)} stretches from byte {start:,}"
    aligned = "whole pages of 4,096 bytes" if pages else "not at borders of pages"
    facts = [aligned, _first(pair), *_rest_equal(found, pair), *_read_twice(pair)]
    return Finding(CauseCode.DAMAGED_RUN, summary, facts)


def _covers_pages(spots: Sequence[Spot]) -> bool:
    """Whether each stretch fills pages, but for a few bytes at its edges that are equal by chance."""
    return all(spot.start % PAGE < 16 and -spot.end % PAGE < 16 and spot.end - spot.start > PAGE // 2 for spot in spots)


def _pages(spot: Spot) -> int:
    return -(-spot.end // PAGE) - spot.start // PAGE


def _replaced(_found: FileDifference, pair: Pair) -> Finding | None:
    """Other values all over every tensor that differs."""
    tensors = [one for one in pair.looked if one.segment.kind is SegmentKind.TENSOR]
    if (
        not tensors
        or len(tensors) < len(pair.looked)
        or not (_fills_tensors(pair) or all(t.throughout for t in tensors))
    ):
        return None
    facts = [_first(pair), *_worth(pair)]
    summary = f"other values all over {plural(len(tensors), 'tensor')}"
    swapped = all(one.side.byte_swapped and one.drill.leaves_differing == one.drill.leaves for one in tensors)
    if swapped and sum(one.side.elements or 0 for one in tensors) >= _TELLING:
        facts.insert(0, "an endianness swap: each element's bytes are in the other order")
    return Finding(CauseCode.TENSOR_REPLACED, summary, facts, not pair.whole)


def _worth(pair: Pair) -> list[str]:
    """How far the values are apart."""
    known = [one.side.values for one in pair.looked if one.side.values is not None]
    largest = [values.max_abs for values in known if values.max_abs is not None]
    facts = [f"apart by {max(largest):.3g} at most"] if largest else []
    nan = sum(values.other.nan for values in known), sum(values.reference.nan for values in known)
    if any(nan):
        facts.append(f"NaN: {pair.reference} {nan[1]:,}, {pair.side} {nan[0]:,}")
    return facts


def _first(pair: Pair) -> str:
    """`layers.3.w [1204, 77]: A 0.0123 (0x3c4a), B -0.0123 (0xbc4a), bit 15`."""
    one = min(pair.looked, key=lambda one: one.side.first.offset if one.side.first else one.segment.offset)
    first = one.side.first
    name = one.segment.name or one.segment.kind.value
    if first is None:
        return f"{name}: no byte that was read again differs"
    if width(one.side.dtype) is None:
        where, said = f"byte {first.offset:,}", f"{name}, "
    else:
        where, said = f"[{', '.join(map(str, first.index))}]", f"{name} "
    values = ", ".join(
        f"{label} {element.value} (0x{element.hex})".replace("  ", " ")
        for label, element in ((pair.reference, first.reference), (pair.side, first.other))
    )
    bits = (
        f", bit{'s' * (len(first.bits) > 1)} {', '.join(map(str, first.bits))}" if len(first.bits) <= _FEW_BITS else ""
    )
    return f"{said}{where}: {values}{bits}"


def _rest_equal(found: FileDifference, pair: Pair) -> list[str]:
    sizes = {row.size for label, row in found.rows.items() if row is not None and label in {pair.reference, pair.side}}
    return [f"the other {sizes.pop() - pair.bytes:,} bytes are equal"] if len(sizes) == 1 else []


def _read_twice(pair: Pair) -> list[str]:
    return ["read twice, the same"] if pair.stable else []
