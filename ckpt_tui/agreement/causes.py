"""The likeliest cause of a difference, and the facts that say so. Pure.

These rules rest on what ranks exchange: tables, states and segments. A cause that takes a look at the bytes
(`bit-flip`, `zero-run` ...) is never claimed here. `candidate` marks what metadata alone suggests.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.agreement import Cause, CauseCode, DifferenceKind, Stage
from ..facts.files import Role, Segmentation, State
from .tables import GONE

if TYPE_CHECKING:
    from .tables import FileDifference, Pieces, Side

#: A git-lfs pointer is a text of three short lines; the format's own limit is below this.
_LFS_POINTER_BYTES = 1024
_STATES = {
    State.TRUNCATED: (CauseCode.TRUNCATED, "the file is shorter than its header needs"),
    State.OVERLONG: (CauseCode.OVERLONG, "bytes follow the last tensor"),
    State.UNREADABLE: (CauseCode.UNREADABLE, "the file could not be read"),
    State.CHANGED: (CauseCode.CHANGED, "the file changed while it was read"),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """What all differences of one agreement have in common."""

    sides: tuple[Side, ...]
    stage: Stage
    #: Labels of groups that are wrong or a minority: those whose copy a repair would replace.
    blamed: frozenset[str]
    #: Logical contents are known and equal on all sides.
    same_tensors: bool
    #: How many tensors the sides hold in all, where all say the same number.
    tensors: int | None
    #: No tensor that was compared is equal.
    everything: bool
    #: Whether the sides' files carry the same names.
    same_files: bool
    #: `revision aaaaaaaaaaaa (rank 0) / bbbbbbbbbbbb (rank 1)`, where sides of one repository name several.
    revisions: str | None
    #: Each revision's copy keeps the hashes recorded for it.
    revisions_kept: bool


def cause_of(found: FileDifference, parts: Pieces | None, scene: Scene) -> Cause:
    """Name the likeliest cause of one file's difference."""
    by_state = _by_state(found)
    code, summary, facts, candidate = by_state or _likeliest(found, parts, scene)
    if scene.revisions is not None:
        facts = [scene.revisions, *facts]
        broken = any(row is not None and row.recorded is False for row in found.rows.values())
        if by_state is None and not broken:
            # What is whole and breaks no claim is explained by its revision; damage is damage whatever was meant.
            code, candidate = CauseCode.OTHER_REVISION, not scene.revisions_kept
            summary = "other revisions" + (", each keeping its recorded hashes" if scene.revisions_kept else "")
    facts += _claims(found)
    return Cause(
        code=code,
        summary=summary,
        facts=tuple(facts),
        mend=_mend(found, code, scene),
        candidate=candidate or scene.stage is Stage.IDENTITY,
    )


_Likeliest = tuple[CauseCode, str, list[str], bool]


def _likeliest(found: FileDifference, parts: Pieces | None, scene: Scene) -> _Likeliest:
    if scene.same_tensors and not scene.same_files:
        return _resharded(found, scene)
    if found.kind is DifferenceKind.MISSING:
        return _one_sided(found, scene)
    if scene.stage is Stage.IDENTITY:
        return _by_header(found)
    if found.role is Role.SIDECAR:
        return CauseCode.UNKNOWN, "other bytes", ["no weight file: it differs in its text alone"], False
    if parts is None:
        if scene.same_tensors:
            return CauseCode.HEADER_ONLY, "all tensors are equal, the header differs", _sizes(found), True
        return CauseCode.UNKNOWN, "other bytes", _sizes(found), False
    return _by_pieces(found, parts, scene)


def _by_state(found: FileDifference) -> _Likeliest | None:
    rows = [(label, row) for label, row in found.rows.items() if row is not None]
    for state, (code, summary) in _STATES.items():
        held = [f"{label}: {row.error or f'{row.size:,} bytes'}" for label, row in rows if row.state is state]
        if held:
            return code, summary, held, False
    pointers = [
        f"{label}: {row.error or f'{row.size:,} bytes'}"
        for label, row in rows
        if row.state is State.NOT_WEIGHTS and 0 < row.size < _LFS_POINTER_BYTES
    ]
    if pointers:
        return CauseCode.LFS_POINTER, "a short text lies where the weights belong, as git-lfs leaves it", pointers, True
    gone = [f"{label}: {row.error or row.state.value}" for label, row in rows if row.state in GONE]
    if gone and found.kind is DifferenceKind.MISSING:
        return CauseCode.MISSING, "a file that its own index names is not there", gone, False
    if found.kind is DifferenceKind.STATE:
        states = [f"{label}: {row.error or row.state.value}" for label, row in rows if row.state is not State.GOOD]
        return CauseCode.UNKNOWN, "broken where others are good", states, False
    return None


def _resharded(found: FileDifference, scene: Scene) -> _Likeliest:
    tensors = "all tensors" if scene.tensors is None else f"{scene.tensors:,} tensor{'s' * (scene.tensors != 1)}"
    if found.role is Role.SIDECAR:
        if found.name.endswith(".index.json"):
            return CauseCode.RESHARDED, "the index of another sharding", [f"{tensors} equal, split differently"], True
        return CauseCode.UNKNOWN, "other bytes", [], False
    files = " / ".join(f"{side.label}: {_weights(side)} weight files" for side in scene.sides)
    return CauseCode.RESHARDED, f"{tensors} equal, split differently", [files], False


def _weights(side: Side) -> int:
    return sum(row.role is Role.WEIGHTS for row in side.table.values())


def _one_sided(found: FileDifference, scene: Scene) -> _Likeliest:
    holders = [label for label, row in found.rows.items() if row is not None and row.state not in GONE]
    lacking = [label for label in found.rows if label not in holders]
    facts = [f"only in {', '.join(holders)}"]
    if scene.blamed and set(holders) <= scene.blamed:
        return CauseCode.EXTRA, "a file that the others do not have", facts, False
    return CauseCode.MISSING, f"not there in {', '.join(lacking)}", facts, False


def _by_header(found: FileDifference) -> _Likeliest:
    if found.role is Role.SIDECAR:
        return CauseCode.UNKNOWN, "other bytes", _sizes(found), True
    if found.kind is DifferenceKind.SIZE:
        return CauseCode.TENSOR_REPLACED, "another size: other tensors, or other shapes or dtypes", _sizes(found), True
    summary = "another header: other tensor names, shapes, dtypes or metadata"
    return CauseCode.TENSOR_REPLACED, summary, ["no tensor byte was read"], True


def _by_pieces(found: FileDifference, parts: Pieces, scene: Scene) -> _Likeliest:
    opaque = any(row is not None and row.segmentation == Segmentation.EXTENTS for row in found.rows.values())
    facts = [f"{parts.tensors_differing:,} of {parts.tensors:,} {'extents' if opaque else 'tensors'} differ"]
    if parts.moved:
        facts.append(f"{parts.moved:,} equal, in another file")
    if not parts.tensors_differing:
        if parts.moved:
            return CauseCode.RESHARDED, "equal tensors, split differently", facts, False
        if parts.header:
            return CauseCode.HEADER_ONLY, "all tensors are equal, the header differs", _sizes(found), False
        return CauseCode.UNKNOWN, "other bytes", _sizes(found), False
    if opaque:
        return CauseCode.UNKNOWN, "other bytes", facts, False
    if scene.everything:
        summary = "every tensor differs: other weights or another quantization under the same names"
        return CauseCode.EVERYTHING_DIFFERS, summary, facts, False
    if parts.retyped:
        first = f"another dtype or shape: {parts.retyped[0]}"
        return CauseCode.TENSOR_REPLACED, "other tensors under the same names", [*facts, first], False
    if parts.header:
        return CauseCode.TENSOR_REPLACED, "other tensors, and another header", facts, True
    return CauseCode.UNKNOWN, "other bytes under the same header", facts, False


def _sizes(found: FileDifference) -> list[str]:
    sizes = {label: row.size for label, row in found.rows.items() if row is not None}
    if len(set(sizes.values())) < 2:
        return []
    return [" / ".join(f"{label}: {size:,} bytes" for label, size in sizes.items())]


def _claims(found: FileDifference) -> list[str]:
    words = {True: "keeps", False: "breaks"}
    return [
        f"{label} {words[row.recorded]} the hub's recorded hash"
        for label, row in found.rows.items()
        if row is not None and row.recorded is not None
    ]


def _mend(found: FileDifference, code: CauseCode, scene: Scene) -> str:
    """The command that would mend the blamed copy; '' where none is sure to be right."""
    if code is CauseCode.LFS_POINTER:
        return "git lfs pull"
    if (
        "\\" in found.name
        or found.name.startswith("-")
        or code in {CauseCode.EXTRA, CauseCode.UNREADABLE, CauseCode.CHANGED}
    ):
        return ""
    for side in scene.sides:
        one = side.member
        if side.label in scene.blamed and one.repo_id is not None and one.revision is not None:
            words = ("hf", "download", one.repo_id, found.name, "--revision", one.revision, "--force-download")
            return shlex.join(words)
    return ""
