"""The likeliest cause of a difference, and the facts that say so. Pure.

The rules are tried from the most telling to the least: states, then what tables and segments show, then, where the
bytes were looked at, what those show (`damage`). What rests on metadata alone, or on a part of the bytes, is a
`candidate`, and `unknown` is an answer.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ..facts.agreement import Cause, CauseCode, DifferenceKind, Stage
from ..facts.files import Role, Segmentation, SegmentKind, State
from .damage import by_bytes
from .mend import mend
from .rank_local import pattern
from .scene import Finding, Scene, plural
from .shared import read_differently
from .spots import pairs
from .swaps import swapped_file, swapped_tensors
from .tables import GONE

if TYPE_CHECKING:
    from .spots import Pair
    from .tables import FileDifference, Pieces, Side

#: A git-lfs pointer is a text of three short lines; the format's own limit is below this.
_LFS_POINTER_BYTES = 1024
#: How the audit calls such a file.
_LFS_POINTER = "git-lfs pointer"
_STATES = {
    State.TRUNCATED: (CauseCode.TRUNCATED, "the file is shorter than its header needs"),
    State.OVERLONG: (CauseCode.OVERLONG, "bytes follow the last tensor"),
    State.UNREADABLE: (CauseCode.UNREADABLE, "the file could not be read"),
    State.CHANGED: (CauseCode.CHANGED, "the file changed while it was read"),
}
#: From the most telling: which one is named where sides differ in several ways.
_RANKED = (
    CauseCode.UNSTABLE_READ,
    CauseCode.ZERO_TAIL,
    CauseCode.ZERO_RUN,
    CauseCode.BIT_FLIP,
    CauseCode.DAMAGED_RUN,
    CauseCode.TENSOR_REPLACED,
)


def cause_of(found: FileDifference, parts: Pieces | None, scene: Scene) -> Cause:
    """Name the likeliest cause of one file's difference."""
    by_state = _by_state(found)
    finding = by_state or _likeliest(found, parts, scene)
    if by_state is not None and parts is not None:
        finding = by_state._replace(facts=[*by_state.facts, *_beside(found, parts, scene)])
    one_file = read_differently(found, finding, scene)
    if one_file is not None:
        finding = one_file
    elif scene.revisions is not None:
        finding = finding._replace(facts=[scene.revisions, *finding.facts])
        broken = any(row is not None and row.recorded is False for row in found.rows.values())
        if by_state is None and not broken:
            # What is whole and breaks no claim is explained by its revision; damage is damage whatever was meant.
            finding = finding._replace(
                code=CauseCode.OTHER_REVISION,
                candidate=not scene.revisions_kept,
                summary="other revisions" + (", each keeping its recorded hashes" if scene.revisions_kept else ""),
                culprits=frozenset(),
            )
    return Cause(
        code=finding.code,
        summary=finding.summary,
        facts=(*finding.facts, *_claims(found)),
        mend=mend(found, finding, scene),
        candidate=finding.candidate or scene.stage is Stage.IDENTITY,
    )


def _likeliest(found: FileDifference, parts: Pieces | None, scene: Scene) -> Finding:
    if scene.same_tensors and not scene.same_files:
        return _resharded(found, scene)
    if found.kind is DifferenceKind.MISSING:
        return _one_sided(found, scene)
    if scene.stage is Stage.IDENTITY:
        return _by_header(found)
    if found.role is Role.SIDECAR:
        return Finding(CauseCode.UNKNOWN, "other bytes", ["no weight file: it differs in its text alone"])
    swapped = swapped_file(found, scene)
    if swapped is not None:
        return swapped
    if parts is None:
        if scene.same_tensors:
            return Finding(
                CauseCode.HEADER_ONLY, "all tensors are equal, the header differs", _sizes(found), candidate=True
            )
        return Finding(CauseCode.UNKNOWN, "other bytes", _sizes(found))
    return _by_pieces(found, parts, scene)


def _by_state(found: FileDifference) -> Finding | None:
    rows = [(label, row) for label, row in found.rows.items() if row is not None]
    for state, (code, summary) in _STATES.items():
        held = {label: f"{label}: {row.error or f'{row.size:,} bytes'}" for label, row in rows if row.state is state}
        if held:
            culprits = frozenset(held) if len(held) < len(rows) else frozenset[str]()
            return Finding(code, summary, list(held.values()), culprits=culprits)
    pointers = [(label, row) for label, row in rows if row.state is State.NOT_WEIGHTS]
    if pointers and all(_may_be_pointer(row.size, row.error) for _, row in pointers):
        return Finding(
            CauseCode.LFS_POINTER,
            "a short text lies where the weights belong, as git-lfs leaves it",
            [f"{label}: {row.error or f'{row.size:,} bytes'}" for label, row in pointers],
            candidate=not all(row.error for _, row in pointers),
            culprits=frozenset(label for label, _ in pointers),
        )
    gone = {label: f"{label}: {row.error or row.state.value}" for label, row in rows if row.state in GONE}
    if gone and found.kind is DifferenceKind.MISSING:
        summary = "a file that its own index names is not there"
        return Finding(CauseCode.MISSING, summary, list(gone.values()), culprits=frozenset(gone))
    if found.kind is DifferenceKind.STATE:
        broken = {
            label: f"{label}: {row.error or row.state.value}" for label, row in rows if row.state is not State.GOOD
        }
        summary = "broken where others are good" if len(broken) < len(rows) else "broken in other ways"
        culprits = frozenset(broken) if len(broken) < len(rows) else frozenset[str]()
        return Finding(CauseCode.UNKNOWN, summary, list(broken.values()), culprits=culprits)
    return None


def _may_be_pointer(size: int, error: str | None) -> bool:
    """By the words of the audit; where a rank sent none, by the size."""
    return _LFS_POINTER in error if error else 0 < size < _LFS_POINTER_BYTES


def _resharded(found: FileDifference, scene: Scene) -> Finding:
    tensors = "all tensors" if scene.tensors is None else plural(scene.tensors, "tensor")
    if found.role is Role.SIDECAR:
        if found.name.endswith(".index.json"):
            facts = [f"{tensors} equal, split differently"]
            return Finding(CauseCode.RESHARDED, "the index of another sharding", facts, candidate=True)
        return Finding(CauseCode.UNKNOWN, "other bytes", [], candidate=True)
    files = " / ".join(f"{side.label}: {_weights(side)} weight files" for side in scene.sides)
    return Finding(CauseCode.RESHARDED, f"{tensors} equal, split differently", [files])


def _weights(side: Side) -> int:
    return sum(row.role is Role.WEIGHTS for row in side.table.values())


def _one_sided(found: FileDifference, scene: Scene) -> Finding:
    holders = [label for label, row in found.rows.items() if row is not None and row.state not in GONE]
    lacking = [label for label in found.rows if label not in holders]
    facts = [f"only in {', '.join(holders)}"]
    own = pattern(found.name)
    if own is not None:
        facts.append(f"one rank's own by its name? --rank-local {shlex.quote(own)} leaves such files out")
    if scene.blamed and set(holders) <= scene.blamed:
        return Finding(CauseCode.EXTRA, "a file that the others do not have", facts)
    return Finding(CauseCode.MISSING, f"not there in {', '.join(lacking)}", facts)


def _by_header(found: FileDifference) -> Finding:
    if found.role is Role.SIDECAR:
        return Finding(CauseCode.UNKNOWN, "other bytes", _sizes(found), candidate=True)
    if found.kind is DifferenceKind.SIZE:
        summary = "another size: other tensors, or other shapes or dtypes"
        return Finding(CauseCode.TENSOR_REPLACED, summary, _sizes(found), candidate=True)
    summary = "another header: other tensor names, shapes, dtypes or metadata"
    return Finding(CauseCode.TENSOR_REPLACED, summary, ["no tensor byte was read"], candidate=True)


def _by_pieces(found: FileDifference, parts: Pieces, scene: Scene) -> Finding:
    opaque = any(row is not None and row.segmentation == Segmentation.EXTENTS for row in found.rows.values())
    facts = [f"{parts.tensors_differing:,} of {parts.tensors:,} {'extents' if opaque else 'tensors'} differ"]
    if parts.moved:
        facts.append(f"{parts.moved:,} equal, in another file")
    looked = pairs(found, parts, scene.drills)
    if not parts.tensors_differing:
        return _equal_tensors(found, parts, looked, facts)
    if opaque:
        early = _ends_early(found, looked, facts)
        return early or _told_by_bytes(found, looked, facts) or Finding(CauseCode.UNKNOWN, "other bytes", facts)
    swapped = swapped_tensors(found, parts, scene)
    if swapped is not None:
        return swapped._replace(facts=[*facts, *swapped.facts])
    shown = _told_by_bytes(found, looked, facts)
    if shown is not None and shown.code is not CauseCode.TENSOR_REPLACED:
        return shown
    return _other_tensors(parts, scene, shown, facts) or Finding(
        CauseCode.UNKNOWN, "other bytes under the same header", [*facts, *_scattered(looked)]
    )


def _equal_tensors(found: FileDifference, parts: Pieces, looked: list[Pair], facts: list[str]) -> Finding:
    if parts.moved:
        return Finding(CauseCode.RESHARDED, "equal tensors, split differently", facts)
    if parts.header:
        seen = [*_sizes(found), *_in_header(looked)]
        return Finding(CauseCode.HEADER_ONLY, "all tensors are equal, the header differs", seen)
    return Finding(CauseCode.UNKNOWN, "other bytes", _sizes(found))


def _other_tensors(parts: Pieces, scene: Scene, shown: Finding | None, facts: list[str]) -> Finding | None:
    """Tensors that are no damaged copies of each other, as far as it shows."""
    facts = facts if shown is None else shown.facts
    if scene.everything:
        summary = "every tensor differs: other weights or another quantization under the same names"
        return Finding(CauseCode.EVERYTHING_DIFFERS, summary, [*facts, *parts.retyped[:1]])
    if parts.retyped:
        return Finding(CauseCode.TENSOR_REPLACED, "other tensors under the same names", [*facts, *parts.retyped[:3]])
    if shown is not None:
        return shown
    if parts.header:
        return Finding(CauseCode.TENSOR_REPLACED, "other tensors, and another header", facts, candidate=True)
    return None


def _told_by_bytes(found: FileDifference, looked: list[Pair], facts: list[str]) -> Finding | None:
    """What the bytes tell of each side: the most telling names the cause, and all are among the facts."""
    told = {pair.side: finding for pair in looked if (finding := by_bytes(found, pair)) is not None}
    if not told:
        return None
    best = min(told.values(), key=lambda finding: _RANKED.index(finding.code))
    if len(told) == 1 or len({(finding.code, finding.summary) for finding in told.values()}) == 1:
        return best._replace(facts=[*facts, *best.facts])
    said = [f"{side}: {finding.code.value}, {finding.summary}" for side, finding in told.items()]
    return best._replace(facts=[*facts, *said], culprits=frozenset().union(*(one.culprits for one in told.values())))


def _beside(found: FileDifference, parts: Pieces, scene: Scene) -> list[str]:
    """What the bytes tell of the other sides, where a file's state already names the cause for one."""
    told = [(pair.side, by_bytes(found, pair)) for pair in pairs(found, parts, scene.drills)]
    return [f"{side}: {finding.code.value}, {finding.summary}" for side, finding in told if finding is not None]


def _ends_early(found: FileDifference, looked: list[Pair], facts: list[str]) -> Finding | None:
    """A file whose format is not known and which ends early: what there is of it is equal."""
    sizes = {label: row.size for label, row in found.rows.items() if row is not None}
    if len(sizes) < 2 or len(set(sizes.values())) == 1 or not looked:
        return None
    if any(pair.bytes or pair.not_read for pair in looked):
        return None
    short = min(sizes, key=lambda label: sizes[label])
    lacking = max(sizes.values()) - sizes[short]
    summary = f"{short} is the beginning of the other, {plural(lacking, 'byte')} short"
    return Finding(CauseCode.TRUNCATED, summary, [*facts, *_sizes(found)], candidate=True)


def _in_header(looked: list[Pair]) -> list[str]:
    """What of the header's text is not the same."""
    return [
        f"{plural(one.side.bytes, 'byte')} of the header differ{'s' * (one.side.bytes == 1)}, "
        f"the first at {one.side.first.offset:,}"
        for pair in looked
        for one in pair.looked
        if one.segment.kind is SegmentKind.HEADER and one.side.first is not None
    ][:1]


def _scattered(looked: list[Pair]) -> list[str]:
    """Where there is no name for it: how much was found, and in how many places."""
    return [
        f"{pair.side}: {plural(pair.bytes, 'byte')} in {plural(_places(pair), 'place')}"
        for pair in looked
        if pair.bytes
    ]


def _places(pair: Pair) -> int:
    return len(pair.spots) + sum(one.side.runs_left_out for one in pair.looked)


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
