"""`locate`: from what was named to the files of one checkpoint, their headers and everything the audit has to say."""

from __future__ import annotations

import os

from ..facts.files import Role, Severity, State
from ..facts.scan import CheckpointKind, CheckpointRef
from ..present.safe import escape
from .extras import add_extras, not_compared
from .find import Place, find
from .findings import Findings
from .inspect import Inspected, inspect, unopened
from .links import judge_links
from .model import Checkpoint, CheckpointFile
from .names import Kind, kind_of
from .opening import Look, look
from .plan import Plan, plan_folder


def locate(target: str, *, include: tuple[str, ...] = (), hub_cache: str | None = None) -> Checkpoint:
    """Find a checkpoint, stat its files, parse their headers and audit the structure; no tensor byte is read.

    `target` is a folder, a weight file, a place in the hub cache, or `org/name[@revision]` in it. UsageError where
    nothing can be checked, CkptError where it cannot be read at all; all else is a file's state or a finding.
    """
    place = find(target, hub_cache)
    ref = CheckpointRef(path=escape(str(place.path)), kind=place.kind, repo_id=place.repo_id, revision=place.revision)
    if place.kind is CheckpointKind.FILE:
        return _one_file(place, ref)
    plan = plan_folder(place.path)
    add_extras(place.path, plan, include)
    files = _inspect_all(place, plan)
    return Checkpoint(
        ref=ref,
        root=place.path,
        files=tuple(sorted(files.values(), key=lambda file: file.raw_name)),
        findings=tuple(plan.findings),
        not_compared=not_compared(place.path, sorted(plan.extras, key=os.fsencode)),
    )


def _one_file(place: Place, ref: CheckpointRef) -> Checkpoint:
    root, name = place.path.parent, place.path.name
    findings = Findings()
    file = _take(inspect(root, name, Role.WEIGHTS, look(place.path)), findings)
    return Checkpoint(ref=ref, root=root, files=(file,), findings=tuple(findings))


def _inspect_all(place: Place, plan: Plan) -> dict[str, CheckpointFile]:
    """Every file of the plan by its name, its state noted."""
    root = place.path
    weights = plan.weights
    roles = dict.fromkeys(plan.sidecars, Role.SIDECAR) | dict.fromkeys(weights, Role.WEIGHTS)
    looks = {name: look(root / name) for name in roles}
    by_number = {name for component in plan.components for name in component.by_number}
    for name in by_number:
        looks[name] = Look(State.MISSING, error="missing, by the numbers in the names of the others")
    for name, (state, error) in plan.unusable.items():
        looks[name] = Look(state, looks[name].size, error)
    judge_links(place, weights, looks, plan.findings)
    files = {name: _take(inspect(root, name, roles[name], found), plan.findings) for name, found in looks.items()}
    for value, reason in plan.refused.items():
        refused = unopened(root, value, Role.WEIGHTS, Look(State.OUTSIDE, error=reason))
        files[value] = _take(Inspected(refused), plan.findings)
    for name in plan.unsettled:
        found = inspect(root, name, Role.WEIGHTS, look(root / name))
        if found.file.state is State.GOOD:
            plan.extras.append(name)
        else:
            files[name] = _take(found, plan.findings)
    return files


def _take(found: Inspected, findings: Findings) -> CheckpointFile:
    """The file of an inspection, after its findings were noted."""
    file = found.file
    if file.state is not State.GOOD and not found.problems:
        findings.state(file.state, file.error or file.state.value, file.name)
    for problem in found.problems:
        findings.add(
            file.state.value, Severity.ERROR, f"{file.name}: {problem.message}", file=file.name, tensor=problem.tensor
        )
    for warning in found.warnings:
        message = f"{file.name}: {warning.message}"
        findings.add("header", Severity.WARNING, message, file=file.name, tensor=warning.tensor)
    if file.state is State.GOOD and file.role is Role.WEIGHTS and kind_of(file.path.name) is Kind.OPAQUE:
        words = "its bytes are compared, its tensors are not listed"
        pickled = "" if file.path.suffix.lower() == ".gguf" else "may hold a pickle, which is not opened; "
        findings.add("opaque", Severity.NOTE, f"{file.name}: {pickled}{words}", file=file.name)
    return file
