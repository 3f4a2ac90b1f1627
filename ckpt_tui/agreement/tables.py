"""File tables beside each other: which files differ, how, and which of their segments. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..facts.agreement import DifferenceKind, DifferingSegment
from ..facts.files import UNDECIDED_STATES, Role, Segment, SegmentKind, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..facts.agreement import Fingerprint, TableRow

#: The file is not there to be read.
GONE = frozenset({State.MISSING, State.BROKEN_LINK, State.OUTSIDE})
#: Its bytes are what there is to compare; the claims, the map or the payload are what the state speaks of.
READ = frozenset({State.GOOD, State.DIGEST_MISMATCH, State.SUSPECT, State.AMBIGUOUS})


@dataclass(frozen=True, slots=True)
class Side:
    """What one group, or one rank that belongs to none, brings: `label` is the group's letter or `rank 3`."""

    label: str
    member: Fingerprint
    table: Mapping[str, TableRow]
    segments: Mapping[str, Sequence[Segment]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether a file that the table does not name is known not to be there: nothing hid the names."""
        indexes = (row for name, row in self.table.items() if name.endswith(".index.json"))
        known = self.member.error is None and not self.member.undecided
        return known and all(row.state in READ for row in indexes)


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How one file differs between sides. Not `proven`: a side could not read it, the others hold the same."""

    name: str
    role: Role
    kind: DifferenceKind
    proven: bool
    rows: dict[str, TableRow | None]


def index_of(table: Iterable[TableRow]) -> dict[str, TableRow]:
    """A table by file name."""
    return {row.name: row for row in table}


def files_to_descend(tables: Mapping[int, Sequence[TableRow]]) -> tuple[str, ...]:
    """Names of the weight files whose segments the representatives exchange.

    Files that differ, and files that only some have when each side has some of its own: then the same tensors may lie
    in other files.
    """
    rows: defaultdict[str, dict[int, TableRow]] = defaultdict(dict)
    for place, table in tables.items():
        for row in table:
            if row.role is Role.WEIGHTS and row.digest is not None:
                rows[row.name][place] = row
    differing = {name for name, held in rows.items() if len(held) > 1 and contents_differ(held.values())}
    lopsided = {name: frozenset(held) for name, held in rows.items() if len(held) < len(tables)}
    if len(set(lopsided.values())) > 1:
        differing |= lopsided.keys()
    return tuple(sorted(differing))


def contents_differ(rows: Iterable[TableRow]) -> bool:
    """Whether sizes or digests prove that not all of these hold the same bytes."""
    sizes, whole = set(), set()
    cut: defaultdict[str | None, set[str]] = defaultdict(set)
    for row in rows:
        sizes.add(row.size)
        if row.sha256 is not None:
            whole.add(row.sha256)
        if row.digest is not None:
            cut[row.segmentation].add(row.digest)
    return len(sizes) > 1 or len(whole) > 1 or any(len(digests) > 1 for digests in cut.values())


def file_differences(sides: Sequence[Side]) -> list[FileDifference]:
    """The files that are not the same on all sides, by name."""
    if len(sides) < 2:
        return []
    names = sorted({name for side in sides for name in side.table})
    complete = {side.label: side.complete for side in sides}
    found = []
    for name in names:
        rows = {side.label: side.table.get(name) for side in sides if name in side.table or complete[side.label]}
        kind, proven = _compare(list(rows.values()))
        if kind is not None:
            role = next(row.role for row in rows.values() if row is not None)
            found.append(FileDifference(name, role, kind, proven, rows))
    return found


def _compare(rows: Sequence[TableRow | None]) -> tuple[DifferenceKind | None, bool]:
    """How a file differs, and whether that is proven."""
    decided = [row for row in rows if row is None or row.state not in UNDECIDED_STATES]
    kind = _decided(decided)
    if kind is not None:
        return kind, True
    return (DifferenceKind.STATE if len(decided) < len(rows) else None), False


def _decided(rows: Sequence[TableRow | None]) -> DifferenceKind | None:
    there = [row for row in rows if row is not None and row.state not in GONE]
    if not there:
        return None
    if len(there) < len(rows):
        return DifferenceKind.MISSING
    states = {State.GOOD if row.state in READ else row.state for row in there}
    if len(states) > 1:
        return DifferenceKind.STATE
    if len({row.size for row in there}) > 1:
        return DifferenceKind.SIZE
    return DifferenceKind.CONTENT if contents_differ(there) else None


@dataclass(frozen=True, slots=True)
class Pieces:
    """The segments of one file on all sides that show them. Tensors are counted, or in an opaque file extents."""

    differing: tuple[DifferingSegment, ...]
    tensors: int
    tensors_differing: int
    header: bool
    #: Tensors that only some sides have in this file, but which others hold, equal, in another file.
    moved: int
    #: Tensors whose dtype or shape is not the same, in words.
    retyped: tuple[str, ...]


#: What tells a segment from the others of its file, on all sides.
Key = tuple[SegmentKind, str, int]


def pieces(name: str, sides: Sequence[Side], elsewhere: Mapping[str, Mapping[str, Segment]]) -> Pieces | None:
    """The segments of `name` that differ. None where fewer than two sides show theirs, or they were cut differently.

    `elsewhere` holds each side's tensors by name, from all of its files that were exchanged.
    """
    showing = [side for side in sides if name in side.segments]
    if len(showing) < 2 or len({_cut(side.table.get(name)) for side in showing}) > 1:
        return None
    held: dict[Key, list[Segment]] = {}
    order: dict[Key, int] = {}
    for side in showing:
        for segment in side.segments[name]:
            key = key_of(segment)
            held.setdefault(key, []).append(segment)
            order.setdefault(key, segment.offset)
    differing = []
    retyped = []
    moved = 0
    for key in sorted(held, key=lambda key: (order[key], key)):
        segments = held[key]
        first = segments[0]
        if len(segments) == len(showing) and all(same(first, other) for other in segments[1:]):
            continue
        if first.kind is SegmentKind.TENSOR:
            elsewhere_too = [elsewhere.get(side.label, {}).get(first.name) for side in showing]
            if all(other is not None and same(first, other) for other in elsewhere_too):
                moved += 1
                continue
            if any((first.dtype, first.shape) != (other.dtype, other.shape) for other in segments[1:]):
                retyped.append(_retyped(segments))
        differing.append(DifferingSegment(name=first.name, kind=first.kind, offset=first.offset, length=first.length))
    body = [key for key in held if key[0] is not SegmentKind.HEADER]
    return Pieces(
        differing=tuple(differing),
        tensors=len(body),
        tensors_differing=sum(segment.kind is not SegmentKind.HEADER for segment in differing),
        header=any(segment.kind is SegmentKind.HEADER for segment in differing),
        moved=moved,
        retyped=tuple(retyped),
    )


def _retyped(segments: Sequence[Segment]) -> str:
    """`lm_head.weight: F16 [2, 3] / BF16 [2, 3], the bytes are equal`."""
    kinds = dict.fromkeys(f"{segment.dtype} {list(segment.shape or ())}" for segment in segments)
    equal = ", the bytes are equal" if len({segment.digest for segment in segments}) == 1 else ""
    return f"{segments[0].name}: {' / '.join(kinds)}{equal}"


def tensors_by_name(side: Side) -> dict[str, Segment]:
    """A side's tensors from all files that it shows."""
    return {
        segment.name: segment
        for segments in side.segments.values()
        for segment in segments
        if segment.kind is SegmentKind.TENSOR
    }


def names_by_digest(side: Side) -> dict[str, str]:
    """The names of a side's tensors from all files that it shows, by their digests; of equal tensors the last."""
    return {
        segment.digest: segment.name
        for segments in side.segments.values()
        for segment in segments
        if segment.kind is SegmentKind.TENSOR
    }


def files_by_digest(side: Side) -> dict[str, list[str]]:
    """The names of a side's weight files by their digests."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for row in side.table.values():
        if row.role is Role.WEIGHTS and row.digest is not None:
            names[row.digest].append(row.name)
    return names


def _cut(row: TableRow | None) -> str | None:
    return None if row is None else row.segmentation


def key_of(segment: Segment | DifferingSegment) -> Key:
    """What tells it from the others."""
    return make_key(segment.kind, segment.name, segment.offset)


def make_key(kind: SegmentKind, name: str, offset: int) -> Key:
    """Tensors are told by name wherever they lie; what has no name by its place."""
    return kind, name, 0 if kind in {SegmentKind.TENSOR, SegmentKind.HEADER} else offset


def same(one: Segment, other: Segment) -> bool:
    """Whether two sides hold the same under one name, wherever it lies."""
    return (one.digest, one.length, one.dtype, one.shape) == (other.digest, other.length, other.dtype, other.shape)
