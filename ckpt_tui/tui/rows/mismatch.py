"""The Mismatch view's tree: the groups, then what differs from file to tensor to the runs of bytes.

What the agreement holds and what was asked since are one: `Known` joins them. A node says what `enter` on it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ...facts.agreement import DifferenceKind
from ...facts.drill import LEAF
from ...facts.files import Role
from ...present.sides import Sides, minority_first
from ...stream.messages import DrillState, Place
from .names import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...facts.agreement import Agreement, Difference, DifferingSegment, Group
    from ...facts.drill import ByteRun, Drill, FirstElement, SideDifference
    from ...stream.messages import DrillRow, Holding

#: Bits of an element that is less than a byte; every other dtype's are told by its hex digits.
_PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


#: The place of what lies in no file.
NOWHERE = Place(file="")


class Sort(StrEnum):
    """The order of the files."""

    JUDGED = "as judged"
    NAME = "name"
    BYTES = "bytes that differ"

    def next(self) -> Sort:
        """The order after this one."""
        return list(Sort)[(list(Sort).index(self) + 1) % len(Sort)]


class Kind(StrEnum):
    """What a row of the tree is."""

    GROUP = "group"
    GAP = "gap"
    ROOT = "root"
    FILE = "file"
    SEGMENT = "segment"
    RUN = "run"
    MORE = "more"


class Node(NamedTuple):
    """A row's key. `place` is the file or segment it lies in; a run is told by its side and where it begins."""

    kind: Kind
    place: Place = NOWHERE
    #: A group's letter; a run's side.
    side: str = ""
    #: Of a run, bytes from the segment's start; of `more`, where it goes on.
    at: int = 0

    @property
    def parent(self) -> Node | None:
        """The row above it in the tree; None at the top."""
        if self.kind is Kind.SEGMENT:
            return Node(Kind.FILE, Place(file=self.place.file))
        return Node(Kind.SEGMENT, self.place) if self.kind in {Kind.RUN, Kind.MORE} else None


class Run(NamedTuple):
    """A stretch of differing bytes on one side; `at` counts from the segment's start."""

    side: SideDifference
    run: ByteRun
    at: int


@dataclass
class Known:
    """All that is known below the verdict."""

    agreement: Agreement
    drills: Mapping[Place, DrillRow] = field(default_factory=dict)
    holding: Holding | None = None

    def __post_init__(self) -> None:
        self.sides = Sides.of(self.agreement)
        self.differences = {one.file: one for one in self.agreement.differences}
        self.names = fold([one.file for one in self.agreement.differences])
        self._segments: dict[str, dict[Place, DifferingSegment]] = {}

    @property
    def held(self) -> bool:
        """Whether more may be asked."""
        return self.holding is not None and self.holding.ready

    def group(self, letter: str) -> Group | None:
        """The group of that name."""
        return next((group for group in self.agreement.groups if group.name == letter), None)

    def segments(self, file: str) -> Mapping[Place, DifferingSegment]:
        """All segments of a file that are known to differ: what was looked into keeps what was found."""
        if file not in self._segments:
            found = {place_of(file, one): one for one in self.differences[file].segments}
            row = self.drills.get(Place(file=file))
            told = {place_of(file, one): one for one in row.segments} if row is not None else {}
            self._segments[file] = {**told, **found}
        return self._segments[file]

    def left_out(self, file: str) -> int:
        """Segments that are not listed."""
        row = self.drills.get(Place(file=file))
        if row is not None and row.state is DrillState.DONE:
            return row.more
        return self.differences[file].segments_left_out

    def segment(self, place: Place) -> DifferingSegment | None:
        """One segment, with the first look into it."""
        bare = self.segments(place.file).get(place)
        if bare is None:
            return None
        row = self.drills.get(place)
        asked = row.drill if row is not None else None
        return msgspec.structs.replace(bare, drill=asked) if asked is not None else bare

    def looks(self, place: Place) -> Iterator[Drill]:
        """Everything that was found in a segment: the first look, then what was asked further on."""
        segment = self.segment(place)
        if segment is not None and segment.drill is not None:
            yield segment.drill
        for asked, row in self.drills.items():
            if asked.at and row.drill is not None and msgspec.structs.replace(asked, at=0) == place:
                yield row.drill

    def runs(self, place: Place) -> tuple[Run, ...]:
        """The runs of differing bytes in a segment, by side, in their order."""
        found: dict[tuple[str, int], Run] = {}
        for drill in self.looks(place):
            for side in drill.sides:
                start = begins(side)
                for run in side.runs if start is not None else ():
                    found.setdefault((side.side, run.offset), Run(side, run, run.offset - (start or 0)))
        order = [side.side for drill in self.looks(place) for side in drill.sides]
        return tuple(sorted(found.values(), key=lambda one: (order.index(one.side.side), one.at)))

    def run(self, node: Node) -> Run | None:
        """A run by its row."""
        return next((one for one in self.runs(node.place) if (one.side.side, one.at) == (node.side, node.at)), None)

    def first_of(self, place: Place, run: Run) -> tuple[Drill, SideDifference, FirstElement] | None:
        """The first element of a run, as far as anybody looked."""
        for drill in self.looks(place):
            for side in drill.sides:
                first = side.first
                inside = first is not None and 0 <= first.offset - run.run.offset < run.run.length
                if first is not None and inside and side.side == run.side.side:
                    return drill, side, first
        return None

    def onward(self, place: Place) -> int | None:
        """From which byte of a segment on there is more to look at; None where all was looked at.

        The first look is at a few leaves here and there: what is asked begins anew, and goes on where it ended.
        """
        segment = self.segment(place)
        if segment is None or segment.drill is None:
            return None if segment is None else 0
        if not any(map(_open, segment.drill.sides)):
            return None
        if place not in self.drills:
            return 0
        ends = [_end(side) for drill in self.looks(place) for side in drill.sides if _open(side)]
        latest = max((end for end in ends if end is not None), default=0)
        last = list(self.looks(place))[-1]
        return latest if latest < segment.length and any(map(_open, last.sides)) else None

    def wish(self, node: Node) -> Place | None:
        """What `enter` on a row asks for: what is not known yet; None where there is nothing to ask."""
        if node.kind is Kind.FILE:
            known = self.segments(node.place.file)
            difference = self.differences[node.place.file]
            asks = self.left_out(node.place.file) or (not known and _has_segments(difference))
            return self._unless_known(node.place) if asks else None
        if node.kind is Kind.SEGMENT:
            segment = self.segment(node.place)
            return self._unless_known(node.place) if segment is not None and segment.drill is None else None
        if node.kind is Kind.MORE:
            return self._unless_known(msgspec.structs.replace(node.place, at=node.at))
        if node.kind is Kind.RUN:
            run = self.run(node)
            if run is not None and self.first_of(node.place, run) is None:
                return self._unless_known(msgspec.structs.replace(node.place, at=node.at))
        return None

    def _unless_known(self, place: Place) -> Place | None:
        row = self.drills.get(place)
        return place if row is None or row.state is DrillState.FAILED else None

    def asked(self, node: Node) -> DrillRow | None:
        """What became of the question that a row asked."""
        at = node.at if node.kind in {Kind.RUN, Kind.MORE} else 0
        return self.drills.get(msgspec.structs.replace(node.place, at=at))

    def children(self, node: Node) -> list[Node]:
        """The rows under a file or a segment."""
        if node.kind is Kind.FILE:
            return [Node(Kind.SEGMENT, place) for place in self.segments(node.place.file)]
        if node.kind is Kind.SEGMENT:
            nodes = [Node(Kind.RUN, node.place, run.side.side, run.at) for run in self.runs(node.place)]
            onward = self.onward(node.place)
            return [*nodes, Node(Kind.MORE, node.place, at=onward)] if nodes and onward is not None else nodes
        return []


def place_of(file: str, segment: DifferingSegment) -> Place:
    """Where a segment is, as it is asked for."""
    return Place(file=file, kind=segment.kind, name=segment.name, offset=segment.offset)


def begins(side: SideDifference) -> int | None:
    """Where the segment begins in the reference's file, reckoned from an element's place; None if none differs."""
    first = side.first
    if first is None:
        return None
    wide = _PACKED.get(side.dtype or "") or 4 * len(first.reference.hex)
    return first.offset - (first.element * wide + min(first.bits, default=0)) // 8


def _open(side: SideDifference) -> bool:
    """Whether a look left anything out."""
    return bool(side.not_read or side.runs_left_out)


def _end(side: SideDifference) -> int | None:
    """How far a look from front to back came, in bytes of the segment: all but the listed runs' end was seen."""
    start = begins(side)
    if start is None or not side.runs:
        return None
    end = side.runs[-1].offset + side.runs[-1].length - start
    return end if side.runs_left_out else -(-end // LEAF) * LEAF


def _has_segments(difference: Difference) -> bool:
    """Whether two sides have bytes of a file to hold side by side, cut into segments."""
    cut = {DifferenceKind.CONTENT, DifferenceKind.SIZE, DifferenceKind.HEADER}
    return difference.role is Role.WEIGHTS and difference.kind in cut


def differing_bytes(segments: Iterable[DifferingSegment]) -> int:
    """Bytes of the segments that differ, which is not how many bytes of them do."""
    return sum(segment.length for segment in segments)


def tree(known: Known, opened: set[Node], needle: str, sort: Sort) -> list[Node]:
    """The rows in their order. `opened` are those whose children show; a filter shows what it finds."""
    nodes = [Node(Kind.GROUP, side=group.name) for group in minority_first(known.agreement.groups)]
    nodes += [Node(Kind.GAP), Node(Kind.ROOT)]
    for difference in _ordered(known, sort):
        file = Node(Kind.FILE, Place(file=difference.file))
        hits = _hits(known, difference.file, needle)
        if hits is None:
            continue
        nodes.append(file)
        if file not in opened and not (needle and hits):
            continue
        for segment in known.children(file):
            if hits and segment not in hits:
                continue
            nodes.append(segment)
            if segment in opened:
                nodes += known.children(segment)
    return nodes


def _ordered(known: Known, sort: Sort) -> list[Difference]:
    found = list(known.agreement.differences)
    if sort is Sort.NAME:
        return sorted(found, key=lambda one: one.file)
    if sort is Sort.BYTES:
        return sorted(found, key=lambda one: -differing_bytes(known.segments(one.file).values()))
    return found


def _hits(known: Known, file: str, needle: str) -> set[Node] | None:
    """The segments that a filter found in a file; empty where it found the file itself, None where nothing."""
    if not needle or needle.casefold() in file.casefold():
        return set()
    found = {Node(Kind.SEGMENT, place) for place in known.segments(file) if needle.casefold() in place.name.casefold()}
    return found or None


def stops(known: Known, nodes: Sequence[Node]) -> list[Node]:
    """Where `n` and `N` halt: every segment that differs, and the files of which none is known."""
    halts: list[Node] = []
    for node in nodes:
        if node.kind is Kind.FILE:
            halts += known.children(node) or [node]
    return halts


def first_stop(known: Known, file: str) -> Node:
    """Where the cursor goes in a file: the first run of bytes of the first segment that was looked into."""
    node = Node(Kind.FILE, Place(file=file))
    segments = known.children(node)
    for segment in segments:
        for run in known.children(segment):
            return run
    return segments[0] if segments else node
