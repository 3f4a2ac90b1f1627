"""What lies beside a checkpoint and is no part of it: weights that nothing names, and files that only look like it."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from ..facts.files import Severity, State
from ..facts.outcome import UsageError
from ..facts.scan import NotCompared
from ..present.safe import escape
from ..present.units import count
from .findings import some
from .listing import Folder, TooMany, walk
from .names import Kind, kind_of
from .opening import look
from .plan import Component
from .recorded import is_record

if TYPE_CHECKING:
    from pathlib import Path

    from .plan import Plan

_WEIGHTS = {Kind.WEIGHTS, Kind.OPAQUE, Kind.FOREIGN}


def add_extras(root: Path, plan: Plan, include: tuple[str, ...]) -> None:
    """Find the weights that the plan leaves out; take in those that `include` names, list the rest."""
    known = {*plan.weights, *plan.unsettled}
    for folder in plan.folders.values():
        _note_leftovers(root, folder, plan)
        plan.extras += _weights_in(folder, known)
    top = plan.folders[""]
    unread: list[str] = []
    try:
        for folder in walk(root, top, plan.folders.keys(), unread):
            plan.extras += _weights_in(folder, known)
    except TooMany:
        plan.findings.add("listing-cut", Severity.WARNING, "too many folders: not all were searched for extra weights")
    if unread:
        message = f"cannot be listed, so extra weights in them are not counted: {some(unread)}"
        plan.findings.add("listing-cut", Severity.WARNING, message)
    _include(plan, include)


def leave_out(plan: Plan, globs: tuple[str, ...]) -> None:
    """Take from the plan what is each rank's own by these patterns; it is listed, not compared. Indexes stay.

    UsageError where no weights are left.
    """
    if not globs:
        return

    def own(name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, glob) for glob in globs)

    chosen = [name for name in plan.weights if own(name)]
    for component in plan.components:
        component.files = [name for name in component.files if not own(name)]
        component.keep({tensor: name for tensor, name in component.shards.items() if not own(name)})
        component.by_number = [name for name in component.by_number if not own(name)]
        component.total_size = None if chosen else component.total_size
    indexes = {component.index for component in plan.components}
    chosen += [name for name in plan.sidecars if own(name) and name not in indexes]
    plan.sidecars = [name for name in plan.sidecars if name not in chosen]
    plan.unsettled = [name for name in plan.unsettled if not own(name)]
    words = " ".join(f"--rank-local {escape(glob)}" for glob in globs)
    if chosen and not plan.weights:
        raise UsageError(f"{words}: every weight file matches, so there is nothing to compare")
    if chosen:
        plan.findings.add("rank-local", Severity.NOTE, f"{words}: {count(len(chosen), 'file')} not compared")
    elif not any(own(name) for name in plan.extras):
        plan.findings.add("rank-local-nothing", Severity.WARNING, f"{words}: no file matches")
    plan.extras += [name for name in chosen if name not in plan.extras]


def not_compared(root: Path, names: list[str]) -> tuple[NotCompared, ...]:
    """The weights that are left out, with their sizes, in order of name bytes."""
    rows = []
    for name in names:
        try:
            size = (root / name).stat().st_size
        except OSError:
            size = 0
        rows.append(NotCompared(name=escape(name), size=size))
    return tuple(rows)


def _weights_in(folder: Folder, known: set[str]) -> list[str]:
    paths = [folder.path(name) for name in folder.files if kind_of(name) in _WEIGHTS]
    return [path for path in paths if path not in known]


def _note_leftovers(root: Path, folder: Folder, plan: Plan) -> None:
    for name in folder.files:
        kind, path = kind_of(name), escape(folder.path(name))
        if kind is Kind.LEFTOVER and not is_record(name):
            plan.findings.add("ignored", Severity.NOTE, f"{path}: not weights, by its name", file=path)
        elif kind is Kind.OTHER and look(root / folder.path(name)).state is State.BROKEN_LINK:
            message = f"{path}: a link to nothing; not needed to load the weights"
            plan.findings.add(State.BROKEN_LINK.value, Severity.NOTE, message, file=path)


def _include(plan: Plan, globs: tuple[str, ...]) -> None:
    for glob in globs:
        chosen = [name for name in plan.extras if fnmatch.fnmatchcase(name, glob)]
        if not chosen and not any(fnmatch.fnmatchcase(name, glob) for name in plan.weights):
            plan.findings.add("include-nothing", Severity.WARNING, f"--include {escape(glob)}: no weights match it")
        if chosen:
            message = f"--include {escape(glob)}: {count(len(chosen), 'weight file')} added"
            plan.findings.add("included", Severity.NOTE, message)
            plan.components.append(Component(None, chosen))
            plan.extras = [name for name in plan.extras if name not in set(chosen)]
