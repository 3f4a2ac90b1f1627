"""Where two sides of one file differ, as stretches of the whole file: what the rules for damage look at. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.drill import GAP
from .tables import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..facts.agreement import DifferingSegment
    from ..facts.drill import ByteRun, Drill, SideDifference
    from .descent import Drills
    from .tables import FileDifference, Pieces

Zeros = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Spot:
    """A stretch of differing bytes, across the borders of segments. Zeros as in `facts.drill.ByteRun`."""

    start: int
    end: int
    reference_zeros: Zeros
    zeros: Zeros

    def near(self, start: int, end: int) -> bool:
        """Whether it fills `start` to `end`, but for bytes at its edges that are equal by chance."""
        return start <= self.start < start + GAP and end - GAP < self.end <= end


@dataclass(frozen=True, slots=True)
class Looked:
    """One segment in which the two sides differ."""

    segment: DifferingSegment
    drill: Drill
    side: SideDifference

    @property
    def throughout(self) -> bool:
        """Whether differences lie all over the segment, as other values do, and not in a place of it."""
        side, drill = self.side, self.drill
        if drill.leaves_differing < drill.leaves or not side.runs:
            return False
        if side.not_read:  # the first leaf and the last one were read, and all the others differ
            return True
        first, last = side.runs[0], side.runs[-1]
        margin = max(self.segment.length // 8, GAP)
        start, end = self.segment.offset, self.segment.offset + self.segment.length
        spread = first.offset - start <= margin and end - (last.offset + last.length) <= margin
        many = sum(run.bytes for run in side.runs) * 8 >= side.compared or side.runs_left_out > 0
        return spread and many


@dataclass(frozen=True, slots=True)
class Pair:
    """One side against the reference, in one file."""

    reference: str
    side: str
    looked: tuple[Looked, ...]
    spots: tuple[Spot, ...]
    #: Every segment that differs was looked into.
    whole: bool

    @property
    def complete(self) -> bool:
        """Whether nothing that differs was left out of the counts."""
        return self.whole and not self.not_read

    @property
    def listed(self) -> bool:
        """Whether every stretch in what was read is among the spots."""
        return not any(one.side.runs_left_out for one in self.looked)

    @property
    def bytes(self) -> int:
        """Differing bytes that were found."""
        return sum(one.side.bytes for one in self.looked)

    @property
    def bits(self) -> int:
        """Differing bits that were found."""
        return sum(one.side.bits for one in self.looked)

    @property
    def compared(self) -> int:
        """Bytes that were compared."""
        return sum(one.side.compared for one in self.looked)

    @property
    def not_read(self) -> int:
        """Bytes in leaves that differ and were not read."""
        return sum(one.side.not_read for one in self.looked)

    @property
    def stable(self) -> bool:
        """Whether reading again gave on both sides what their digests are made of."""
        return all(
            one.drill.read_again.get(label, True) for one in self.looked for label in (self.reference, self.side)
        )


def pairs(found: FileDifference, parts: Pieces, drills: Drills) -> list[Pair]:
    """Every side that was held against a reference, in the order of the sides."""
    looked: dict[tuple[str, str], list[Looked]] = {}
    undone: set[str] = set()
    blind = False
    for segment in parts.differing:
        drill = drills.get((found.name, key_of(segment)))
        if drill is None:
            blind = True
            continue
        undone |= drill.errors.keys()
        for side in drill.sides:
            looked.setdefault((drill.reference, side.side), []).append(Looked(segment, drill, side))
    order = list(found.rows)
    return [
        _pair(*labels, ones, whole=not blind and undone.isdisjoint(labels))
        for labels, ones in sorted(looked.items(), key=lambda item: order.index(item[0][1]))
    ]


def _pair(reference: str, side: str, looked: Sequence[Looked], *, whole: bool) -> Pair:
    return Pair(
        reference=reference,
        side=side,
        looked=tuple(looked),
        spots=tuple(_joined([run for one in looked for run in one.side.runs])),
        whole=whole,
    )


def _joined(runs: Sequence[ByteRun]) -> Iterator[Spot]:
    """Stretches of neighbouring segments that touch are one."""
    spot: Spot | None = None
    for run in sorted(runs, key=lambda run: run.offset):
        found = Spot(run.offset, run.offset + run.length, run.reference_zeros, run.zeros)
        if spot is not None and found.start - spot.end < GAP:
            spot = Spot(
                spot.start,
                max(spot.end, found.end),
                _both(spot.reference_zeros, found.reference_zeros),
                _both(spot.zeros, found.zeros),
            )
            continue
        if spot is not None:
            yield spot
        spot = found
    if spot is not None:
        yield spot


def _both(one: Zeros, other: Zeros) -> Zeros:
    return (one[0], max(one[1], other[1])) if one and other and one[1] >= other[0] else None
