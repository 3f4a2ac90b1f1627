"""What is expected and not there, what is there and not expected, and what is expected of another place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..facts.expected import ClaimKind
from ..facts.files import Severity, State
from ..facts.outcome import UsageError
from ..present.safe import escape, unescape
from ..present.units import count
from .findings import some
from .names import Kind, kind_of
from .opening import look

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from ..facts.expected import Expected
    from .claims import Records
    from .find import Place
    from .model import CheckpointFile
    from .plan import Plan

#: What `fail_on` may hold.
MISSING, EXTRA = "missing", "extra"
_ABSENT = {State.MISSING, State.BROKEN_LINK}
#: What a loader asks for; that a README was left out is worth a note.
_NEEDED = {Kind.WEIGHTS, Kind.INDEX, Kind.SIDECAR}


def told_apart(expected: Sequence[Expected], beside: Sequence[Expected]) -> list[Expected]:
    """What was handed over, under origins that no other record beside the checkpoint has.

    `SHA256SUMS` in the folder where the command was started, say, and another one in the checkpoint's.
    """
    taken = {one.origin for one in beside}
    replace = msgspec.structs.replace
    return [
        replace(one, origin=f"{one.origin} (handed over)") if one.origin in taken and one not in beside else one
        for one in expected
    ]


def refuse_another(expected: Expected, place: Place, records: Records) -> None:
    """UsageError where what is expected is of another repo or revision than the files: all of it would differ."""
    repo_id = place.repo_id or records.repo_id
    if expected.repo_id and repo_id and expected.repo_id.casefold() != escape(repo_id).casefold():
        raise UsageError(
            f"{expected.origin}: states the files of {expected.repo_id}, and these are of {escape(repo_id)}"
        )
    if expected.revision and records.commits and expected.revision not in records.commits:
        ours = ", ".join(sorted(records.commits))
        raise UsageError(
            f"{expected.origin}: states the files of revision {expected.revision}, and these are of {ours}"
        )


def add_missing(root: Path, plan: Plan, expected: Sequence[Expected], records: Records) -> None:
    """Where only a listing says which shards there are, what is expected there and absent is a shard that is missing.

    An index says itself which shards there are. The hub states all that a repo holds, variants and formats that nobody
    asked for included; there only `fail_on` makes an error of what is absent.
    """
    telling = [one for one in expected if one.repo_id is None or one.kind is ClaimKind.SAVED_SCAN]
    for component in plan.components:
        if component.index is not None or not component.files:
            continue
        folder = component.files[0].rpartition("/")[0]
        kind = kind_of(component.files[0].rpartition("/")[2])
        for one in telling:
            for escaped, _ in records.named_in(one):
                name = unescape(escaped)
                ours = name.rpartition("/")[0] == folder and kind_of(name.rpartition("/")[2]) is kind
                if ours and name not in component.files and look(root / name).state in _ABSENT:
                    component.by_record.setdefault(name, one.origin)
        component.files = sorted([*component.files, *component.by_record])


def note_presence(
    root: Path,
    plan: Plan,
    files: dict[str, CheckpointFile],
    statements: Sequence[Expected],
    records: Records,
    *,
    given: Sequence[Expected],
    fail_on: Collection[str],
) -> None:
    """Compare what is on record with what is there. `given` are the statements that were handed over."""
    listings: dict[str, set[str]] = {}
    for one in statements:
        listings.setdefault(one.origin, set()).update(unescape(name) for name, _ in records.named_in(one))
    if MISSING in fail_on or EXTRA in fail_on:
        for name, origin in records.listed():
            listings.setdefault(origin, set()).add(name)
    own_origins = {one.origin for one in given}
    for origin, names in listings.items():
        own = origin in own_origins
        severity = Severity.ERROR if MISSING in fail_on else Severity.WARNING if own else Severity.NOTE
        _note_absent(root, plan, files, origin, names, severity=severity)
    recorded = set[str]().union(*listings.values())
    if given or (EXTRA in fail_on and recorded):
        _note_unexpected(plan, files, recorded, fail_on)
    if EXTRA in fail_on and (extras := [name for name in plan.extras if name not in recorded]):
        message = f"{count(len(extras), 'weight file')} that nothing names: {some(extras)}"
        plan.findings.add("unexpected", Severity.ERROR, message)


def _note_absent(
    root: Path, plan: Plan, files: dict[str, CheckpointFile], origin: str, names: set[str], *, severity: Severity
) -> None:
    """What one source names beside the checkpoint's own files: not there, or there and not looked into."""
    others = sorted(name for name in names if name not in files)
    absent = [name for name in others if look(root / name).state in _ABSENT]
    if absent:
        if severity is Severity.WARNING and not any(kind_of(name.rpartition("/")[2]) in _NEEDED for name in absent):
            severity = Severity.NOTE
        message = f"{count(len(absent), 'file')} that {origin} records {_are(absent)} not here: {some(absent)}"
        plan.findings.add("expected-missing", severity, message)
    unread = [name for name in others if name not in set(absent)]
    if unread and severity is not Severity.NOTE:
        message = (
            f"{count(len(unread), 'file')} that {origin} records {_are(unread)} no part of the checkpoint and not "
        )
        plan.findings.add("expected-unread", Severity.NOTE, f"{message}checked: {some(unread)}")


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _note_unexpected(
    plan: Plan, files: dict[str, CheckpointFile], recorded: set[str], fail_on: Collection[str]
) -> None:
    """Files of the checkpoint of which nothing is on record: their bytes are read, and prove nothing."""
    there = [name for name, file in files.items() if file.state not in _ABSENT and name not in recorded]
    if not there:
        return
    weights = any(kind_of(name.rpartition("/")[2]) in {Kind.WEIGHTS, Kind.OPAQUE} for name in there)
    severity = Severity.ERROR if EXTRA in fail_on else Severity.WARNING if weights else Severity.NOTE
    message = f"nothing is recorded of {count(len(there), 'file')}: {some(sorted(there))}"
    plan.findings.add("unexpected", severity, message)
