"""An agreement on replicas in words: its summary, each difference, and the text that every rank raises. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..facts.agreement import (
    Agreement,
    Cause,
    CauseCode,
    Difference,
    DifferenceKind,
    DifferingSegment,
    Standing,
    Verdict,
)
from ..facts.files import SegmentKind, Severity
from ..facts.ranksets import named
from ..present import units
from ..present.drills import lines
from ..present.sides import Sides
from .kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..facts.drill import Drill
    from ..facts.files import Role
    from .hearing import Question
    from .messages import Outline
    from .tables import Line

#: Tensors that an agreement lists for each kind; the rest is counted.
LISTED = 10_000
#: Tensors that the raised text names, and characters of a name or value in it.
NAMED = 8
_CHARACTERS = 120
#: What training makes differ between ranks, and rightly.
_BUFFERS = "normal between steps for BatchNorm, unless it is SyncBatchNorm; a checkpoint usually keeps rank 0's"


def cut(text: str) -> str:
    """A name or value that is too long for a line, without its middle, which is counted."""
    more = len(text) - _CHARACTERS
    if more <= 0:
        return text
    half = _CHARACTERS // 2
    return f"{text[:half]}… {more:,} more characters …{text[-half:]}"


def moment(phase: str | None, step: int | None) -> str:
    """When it was: `before the optimizer step, step 120`."""
    return ", ".join(part for part in (phase, f"step {step}" if step is not None else "") if part)


def holds(count: int, root: bytes | None) -> str:
    """What a side holds of a kind: `120 entries, 1a2b3c4d5e6f`."""
    return f"{units.count(count, 'entry', 'entries')}{f', {root.hex()[:12]}' if root else ''}"


def other_calls(calls: Mapping[int, Mapping[str, str]]) -> dict[int, str]:
    """What each rank was called with, where that is not the same everywhere."""
    keys = sorted({key for call in calls.values() for key in call})
    unlike = [key for key in keys if len({call.get(key) for call in calls.values()}) > 1]
    return {
        rank: f"was called with {', '.join(f'{key} {cut(call[key])}' for key in unlike if key in call)}"
        for rank, call in calls.items()
        if unlike
    }


def nothing(kinds: Collection[Kind]) -> str:
    """Where ranks were given nothing that decides, and of kinds that decide nothing these."""
    if kinds:
        return f"nothing was compared but {', '.join(sorted(kinds))}, which decide nothing"
    return "nothing was compared: no name was given, or patterns left all of them out"


def warnings(outlines: Mapping[int, Outline], question: Question) -> tuple[str, ...]:
    """What was not compared although it was named: tensors without data; and who is held against whom."""
    found = []
    empty = {rank: outline.without_data for rank, outline in outlines.items() if outline.without_data}
    if empty:
        count = units.count(max(empty.values()), "tensor has", "tensors have")
        found.append(f"{named(empty)}: {count} no data: on the meta device, or not initialized")
    if len(question.sets) > 1:
        sets = ", ".join(named(ranks) for ranks in question.sets)
        found.append(f"compared only inside each of: {sets}")
    return tuple(found)


def difference(
    file: str,
    found: Sequence[Line],
    groups: Mapping[str, str],
    *,
    total: int,
    severity: Severity,
    role: Role,
    drills: Mapping[tuple[str, str], Drill] | None = None,
) -> Difference:
    """One kind of tensors that differs, or could not be told, with its tensors as segments."""
    looked = drills or {}
    segments = tuple(
        DifferingSegment(
            name=one.name,
            kind=SegmentKind.TENSOR if one.tensor else SegmentKind.VALUE,
            offset=0,
            length=one.length,
            drill=looked.get((file, one.name)),
            held=one.held,
        )
        for one in found[:LISTED]
    )
    missing, schema = _counted(found)
    shape = DifferenceKind.MISSING if missing == len(found) else DifferenceKind.CONTENT
    if missing < len(found) == missing + schema:
        shape = DifferenceKind.HEADER
    return Difference(
        file=file,
        role=role,
        kind=DifferenceKind.STATE if severity is Severity.WARNING else shape,
        severity=severity,
        groups=dict(groups),
        segments=segments,
        cause=_unread(len(found), total) if severity is Severity.WARNING else _cause(file, found, total, segments),
        segments_left_out=max(len(found) - LISTED, 0),
    )


def _counted(found: Sequence[Line]) -> tuple[int, int]:
    """How many are missing somewhere, and how many others are not of one kind, dtype and shape."""
    return sum(one.missing for one in found), sum(one.schema and not one.missing for one in found)


def _unread(count: int, total: int) -> Cause:
    summary = f"{count:,} of {total:,} could not be read on every rank"
    return Cause(code=CauseCode.UNKNOWN, summary=summary, facts=(), mend="", candidate=False)


def _cause(file: str, found: Sequence[Line], total: int, segments: Sequence[DifferingSegment]) -> Cause:
    missing, schema = _counted(found)
    facts = [_BUFFERS] if file.startswith(Kind.BUFFERS) else []
    bits = len(found) - missing - schema
    counts = (
        (bits, "in its bits", "in their bits"),
        (schema, "in its kind, dtype or shape", "in kind, dtype or shape"),
        (missing, "not on every rank", "not on every rank"),
    )
    told = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    code = CauseCode.MISSING if missing == len(found) else CauseCode.UNKNOWN
    drill = segments[0].drill if len(found) == 1 else None
    if drill is not None and [side.bits for side in drill.sides] == [1]:
        code = CauseCode.BIT_FLIP
    differ = "differs" if len(found) == 1 else "differ"
    summary = f"{len(found):,} of {total:,} {differ}: {', '.join(told)}"
    return Cause(code=code, summary=summary, facts=tuple(facts), mend="", candidate=False)


def summarized(agreement: Agreement) -> Agreement:
    """The agreement with its one sentence."""
    when = moment(agreement.phase, agreement.step)
    said = f"{when}: {_said(agreement)}" if when else _said(agreement)
    return msgspec.structs.replace(agreement, summary=said)


def _said(agreement: Agreement) -> str:
    proven = [one for one in agreement.differences if one.severity is Severity.ERROR]
    if proven:
        count = sum(len(one.segments) + one.segments_left_out for one in proven)
        where = f"{proven[0].file} {cut(proven[0].segments[0].name)}" + (f" and {count - 1:,} more" * (count > 1))
        return f"{_who(agreement)} in {where}"
    if agreement.verdict is Verdict.UNDECIDED:
        first, more = agreement.errors[0], len(agreement.errors) - 1
        return f"rank {first.rank}: {cut(first.message)}" + (f"; and {more:,} more" * (more > 0))
    count = max((report.files for report in agreement.ranks), default=0)
    size = max((report.bytes for report in agreement.ranks), default=0)
    ranks = agreement.world_size
    who = {1: "the one rank holds", 2: "both ranks hold"}.get(ranks, f"all {ranks:,} ranks hold")
    apart = [one.file for one in agreement.differences]
    note = f"; {', '.join(apart)} differ, which decides nothing here" if apart else ""
    inside = " inside each set" if len(agreement.groups) > 1 else ""
    return f"{who} the same{inside}: {units.count(count, 'entry', 'entries')}, {units.size(size)}{note}"


def _who(agreement: Agreement) -> str:
    """`rank 3 differs from ranks [0-2]`."""
    few = [group for group in agreement.groups if group.standing is Standing.MINORITY]
    most = [group for group in agreement.groups if group.standing is Standing.MAJORITY]
    if few and len(few) + len(most) == len(agreement.groups):
        ranks = [rank for group in few for rank in group.ranks]
        others = [rank for group in most for rank in group.ranks]
        return f"{named(ranks)} {'differs' if len(ranks) == 1 else 'differ'} from {named(others)}"
    if len(agreement.groups) == 2:
        return f"{named(agreement.groups[0].ranks)} and {named(agreement.groups[1].ranks)} differ"
    return f"{len(agreement.groups):,} groups of ranks differ"


def raised(agreement: Agreement) -> str:
    """The text of RanksDiffer: phase, how many differ, who holds what of the first eight, and what is undecided."""
    proven = [one for one in agreement.differences if one.severity is Severity.ERROR]
    when = moment(agreement.phase, agreement.step)
    head = f"{when}: " if when else ""
    texts = []
    if proven:
        count = sum(len(one.segments) + one.segments_left_out for one in proven)
        total = max((report.files for report in agreement.ranks), default=0)
        kinds = ", ".join(f"{one.file} {len(one.segments) + one.segments_left_out:,}" for one in proven)
        texts.append(f"{head}{count:,} of {units.count(total, 'tensor')} differ between ranks ({kinds}):")
        sides = Sides.of(agreement)
        texts += [
            f"  {sides.holder(group.name, agreement.groups)}  {group.standing.value}" for group in agreement.groups
        ]
        first = [(one, segment) for one in proven for segment in one.segments][:NAMED]
        for one, segment in first:
            texts.append(f"  {one.file}  {cut(segment.name)}")
            texts += [f"      {label}  {cut(what)}" for label, what in segment.held.items()]
            texts += [f"      {line.label}: {line.text}" for line in lines(segment)]
        if count > len(first):
            texts.append(f"  and {count - len(first):,} more")
    else:
        texts.append(f"{head}it could not be decided whether the ranks hold the same:")
    texts += [f"  undecided on rank {error.rank}: {cut(error.message)}" for error in agreement.errors[:NAMED]]
    if len(agreement.errors) > NAMED:
        texts.append(f"  and {len(agreement.errors) - NAMED:,} more that are undecided")
    return "\n".join(texts)
