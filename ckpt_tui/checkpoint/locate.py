"""`locate`: from what was named to the files of one checkpoint, their headers and everything the audit has to say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..facts.files import Role, Severity, State
from ..facts.scan import CheckpointKind, CheckpointRef
from ..present.safe import escape
from .absent import explain_absent
from .audit import check_map, note_map, note_shared, note_total
from .beside import drop_copies, note_extras, note_pointers
from .claims import Recorded, Records, check_size, contradictions
from .extras import add_extras, leave_out, not_compared
from .find import find
from .inspect import Inspected, inspect, unopened
from .links import judge_links
from .listing import list_folder
from .model import Checkpoint, CheckpointFile
from .names import Kind, kind_of
from .opening import Look, RealPaths, look
from .outline import holds, remember
from .plan import plan_file, plan_folder
from .presence import add_missing, note_presence, refuse_another, told_apart
from .recorded import statements_beside

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from ..facts.expected import Expected
    from .find import Place
    from .findings import Findings
    from .listing import Folder
    from .outline import Outlines
    from .plan import Plan

#: A hostile header can hold a problem for each of a million tensors; more than these are only counted.
_MOST_PROBLEMS = 100


def locate(
    target: str,
    *,
    include: tuple[str, ...] = (),
    rank_local: tuple[str, ...] = (),
    hub_cache: str | None = None,
    expected: Sequence[Expected] = (),
    fail_on: Collection[str] = (),
    outlines: Outlines | None = None,
) -> Checkpoint:
    """Find a checkpoint, stat its files, parse their headers and audit the structure; no tensor byte is read.

    `target` is a folder, a weight file, a place in the hub cache, or `org/name[@revision]` in it. `rank_local` are
    patterns of files that are each rank's own, listed and not compared. `expected` is what its files should be by each
    word that was handed over, beside what lies with them; `fail_on` says what counts as an error (`presence.MISSING`,
    `presence.EXTRA`). What `outlines` remembers of an index and its shards' headers is not parsed again. UsageError
    where nothing can be checked or another repo's files are expected, CkptError where it cannot be read at all; all
    else is a file's state or a finding.
    """
    place = find(target, hub_cache)
    one_file = place.kind is CheckpointKind.FILE
    root = place.path.parent if one_file else place.path
    plan = plan_file(place.path) if one_file else plan_folder(root, outlines)
    if not one_file:
        add_extras(root, plan, include)
        leave_out(plan, rank_local)
    beside = statements_beside(root, _listed(root, plan), plan.findings)
    expected = told_apart(expected, beside)
    statements = [*beside, *(one for one in expected if one not in beside)]
    records = Records(root, plan.findings, statements)
    if not one_file:
        add_missing(root, plan, expected, records)
    files = _inspect_all(place, root, plan, records)
    for one in expected:
        refuse_another(one, place, records)
    _audit(root, plan, files)
    if not one_file:
        note_presence(root, plan, files, statements, records, given=expected, fail_on=fail_on)
    return Checkpoint(
        ref=CheckpointRef(
            path=escape(str(place.path)), kind=place.kind, repo_id=place.repo_id, revision=place.revision
        ),
        root=root,
        files=tuple(sorted(files.values(), key=lambda file: file.raw_name)),
        findings=tuple(plan.findings),
        not_compared=not_compared(root, sorted(plan.extras, key=os.fsencode)),
        settled=plan.settled,
        named_by={escape(name): raw for name, raw in plan.named_by.items()},
    )


def _listed(root: Path, plan: Plan) -> list[Folder]:
    """The checkpoint's folders; for a file that was named, the one in which it lies."""
    if plan.folders:
        return list(plan.folders.values())
    try:
        return [list_folder(root)]
    except OSError:  # a folder that may be entered and not listed
        return []


def _inspect_all(place: Place, root: Path, plan: Plan, records: Records) -> dict[str, CheckpointFile]:
    """Every file of the plan by its name, its claims attached and its state noted."""
    roles = dict.fromkeys(plan.sidecars, Role.SIDECAR) | dict.fromkeys(plan.weights, Role.WEIGHTS)
    real_paths = RealPaths()
    looks = {name: look(root / name, real_paths) for name in roles}
    for name, (state, error) in plan.unusable.items():
        looks[name] = Look(state, looks[name].size, error)
    if place.kind is not CheckpointKind.FILE:
        judge_links(place, plan.weights, looks, plan.findings)
    explain_absent(root, plan, looks, records)
    outlined = {name: one.sound.of(name) for one in plan.components if one.sound for name in one.files}
    files: dict[str, CheckpointFile] = {}
    for name, found in looks.items():
        recorded = records.of(name) if found.state is State.GOOD else Recorded()
        inspected = inspect(root, name, roles[name], found, recorded.claims, outlined.get(name))
        files[name] = _take(inspected, plan.findings, recorded)
    for value, reason in plan.refused.items():
        refused = unopened(root, value, Role.WEIGHTS, Look(State.OUTSIDE, error=reason))
        files[value] = _take(Inspected(refused), plan.findings, Recorded())
    for name in plan.unsettled:
        unsettled = inspect(root, name, Role.WEIGHTS, look(root / name))
        if unsettled.file.state is State.GOOD:
            plan.extras.append(name)
        else:
            files[name] = _take(unsettled, plan.findings, Recorded())
    return files


def _take(found: Inspected, findings: Findings, recorded: Recorded) -> CheckpointFile:
    """The file of an inspection, after everything that is to be said of it was noted."""
    file = found.file
    whole = file.state in {State.GOOD, State.SUSPECT}
    misfit = check_size(file.size, recorded.sizes) if whole else None
    if misfit:
        file = file._replace(state=misfit[0], error=misfit[1])
    for words in contradictions(recorded):
        findings.add("claims-contradict", Severity.WARNING, f"{file.name}: {words}", file=file.name)
    for problem in found.problems[:_MOST_PROBLEMS]:
        message = f"{file.name}: {problem.message}"
        findings.add(file.state.value, Severity.ERROR, message, file=file.name, tensor=problem.tensor)
    if len(found.problems) > _MOST_PROBLEMS:
        message = f"{file.name}: {len(found.problems) - _MOST_PROBLEMS:,} more problems like these"
        findings.add(file.state.value, Severity.ERROR, message, file=file.name)
    if file.state is not State.GOOD and not found.problems:
        findings.state(file.state, file.error or file.state.value, file.name)
    for warning in found.warnings:
        message = f"{file.name}: {warning.message}"
        findings.add("header", Severity.WARNING, message, file=file.name, tensor=warning.tensor)
    if file.state is State.GOOD and file.role is Role.WEIGHTS and kind_of(file.path.name) is Kind.OPAQUE:
        words = "its bytes are compared, its tensors are not listed"
        pickled = "" if file.path.suffix.lower() == ".gguf" else "may hold a pickle, which is not opened; "
        findings.add("opaque", Severity.NOTE, f"{file.name}: {pickled}{words}", file=file.name)
    return file


def _audit(root: Path, plan: Plan, files: dict[str, CheckpointFile]) -> None:
    """Hold the files against each other and against what names them."""
    drop_copies(plan, files)
    for component in plan.components:
        if component.index is None:
            note_shared(component, files, plan.findings)
            continue
        if holds(component, files):
            note_total(component, files, plan.findings)
            continue
        found = check_map(component, files)
        note_map(component, found, plan.findings)
        note_total(component, files, plan.findings)
        if plan.outlines and not any(found):
            remember(plan.outlines, component, files)
        for path in component.files:
            others = found.rivals.get(path)
            if others and files[path].state is State.GOOD:
                files[path] = files[path]._replace(state=State.AMBIGUOUS, error=others)
    note_extras(root, plan, files)
    note_pointers(root, plan, files)
