"""What differs, by file and then by segment, each with its likeliest cause. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..facts.agreement import Difference, DifferenceKind, Stage, TableRow
from ..facts.files import Role, Severity, State
from .causes import cause_of
from .scene import Scene
from .tables import FileDifference, Pieces, Side, files_by_digest, key_of, names_by_digest, pieces, tensors_by_name
from .weights import logical_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .descent import Drills
    from .shared import Readers

#: Segments listed for one file; the rest is counted.
SEGMENTS_LISTED = 64


def differences(
    found: Sequence[FileDifference],
    sides: Sequence[Side],
    stage: Stage,
    *,
    blamed: frozenset[str],
    revisions: str | None,
    revisions_kept: bool,
    shared: tuple[Readers, ...] = (),
    drills: Drills | None = None,
) -> tuple[Difference, ...]:
    """The files that are not the same on all sides in words, weight files first, then by name.

    A difference with severity `error` is proven; `warning` marks a file that some side could not read.
    """
    elsewhere = {side.label: tensors_by_name(side) for side in sides if side.segments}
    parts = {one.name: pieces(one.name, sides, elsewhere) for one in found if one.role is Role.WEIGHTS}
    scene = Scene(
        sides=tuple(sides),
        stage=stage,
        blamed=blamed,
        same_tensors=_same_tensors(sides),
        tensors=_tensors(sides),
        everything=_everything(sides, found, parts),
        same_files=len({frozenset(name for name, row in side.table.items() if _weights(row)) for side in sides}) < 2,
        revisions=revisions,
        revisions_kept=revisions_kept,
        shared=shared,
        drills=drills or {},
        names={side.label: names_by_digest(side) for side in sides if side.segments},
        files={side.label: files_by_digest(side) for side in sides},
    )
    listed = [_difference(one, parts.get(one.name), scene) for one in found]
    return tuple(sorted(listed, key=lambda one: (one.role is not Role.WEIGHTS, one.file)))


def _difference(found: FileDifference, parts: Pieces | None, scene: Scene) -> Difference:
    segments = () if parts is None else parts.differing
    shown = tuple(
        msgspec.structs.replace(segment, drill=scene.drills.get((found.name, key_of(segment))))
        for segment in segments[:SEGMENTS_LISTED]
    )
    return Difference(
        file=found.name,
        role=found.role,
        kind=_kind(found, parts, scene),
        severity=Severity.ERROR if found.proven else Severity.WARNING,
        groups={label: held(row, found) for label, row in found.rows.items()},
        segments=shown,
        cause=cause_of(found, parts, scene),
        segments_left_out=max(len(segments) - SEGMENTS_LISTED, 0),
    )


def _kind(found: FileDifference, parts: Pieces | None, scene: Scene) -> DifferenceKind:
    """`header` where nothing but the header differs, or nothing else was looked at."""
    if found.role is Role.WEIGHTS and found.kind in {DifferenceKind.CONTENT, DifferenceKind.SIZE}:
        if scene.stage is Stage.IDENTITY and found.kind is DifferenceKind.CONTENT:
            return DifferenceKind.HEADER
        if parts is not None and parts.header and not parts.tensors_differing and not parts.moved:
            return DifferenceKind.HEADER
    return found.kind


def held(row: TableRow | None, found: FileDifference) -> str:
    """What a side holds, in words: `1,234 bytes, 3f9acc01d2e4`."""
    if row is None:
        return "not there"
    if row.state in {State.MISSING, State.BROKEN_LINK}:
        return row.state.value
    words = [] if row.state is State.GOOD else [row.state.value]
    words.append(f"{row.size:,} bytes")
    # Of digests that are there on some sides only, those that all have can be held side by side.
    both = all(other is None or other.sha256 is not None or other.digest is None for other in found.rows.values())
    digest = row.sha256 if both and row.sha256 is not None else row.digest
    if digest is not None:
        words.append(digest[:12])
    return ", ".join(words)


def _weights(row: TableRow) -> bool:
    return row.role is Role.WEIGHTS


def _same_tensors(sides: Sequence[Side]) -> bool:
    logical = {logical_content(side.member) for side in sides}
    return len(sides) > 1 and len(logical) == 1 and None not in logical


def _tensors(sides: Sequence[Side]) -> int | None:
    """The number of tensors, where every weight file has a header beside its tensors and all sides count the same."""
    counts = {sum(row.segments - 1 for row in side.table.values() if _weights(row)) for side in sides}
    return counts.pop() if len(counts) == 1 and min(counts) > 0 else None


def _everything(sides: Sequence[Side], found: Sequence[FileDifference], parts: dict[str, Pieces | None]) -> bool:
    """Whether no weight file and, of at least two tensors, no tensor is equal."""
    differing = {one.name for one in found}
    if any(_weights(row) and name not in differing for side in sides for name, row in side.table.items()):
        return False
    looked = [one for one in parts.values() if one is not None]
    tensors = sum(one.tensors for one in looked)
    return tensors > 1 and all(one.tensors == one.tensors_differing for one in looked)
