"""What the weights beside a checkpoint mean: copies, another format, a set that the index should have named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.files import Role, Severity, State
from ..present.safe import escape
from ..present.units import count
from .audit import stored_names
from .findings import some
from .inspect import inspect
from .names import Kind, is_whole_set, kind_of, original_of
from .opening import look, read_file
from .sniff import HEAD, pointer

if TYPE_CHECKING:
    from pathlib import Path

    from .model import CheckpointFile
    from .plan import Component, Plan


def drop_copies(plan: Plan, files: dict[str, CheckpointFile]) -> None:
    """Take out of a listing what a browser or file manager copied: named so, and its header is its original's."""
    for component in plan.components:
        if component.index is not None:
            continue
        for path in list(component.files):
            folder, slash, name = path.rpartition("/")
            original = files.get(f"{folder}{slash}{original_of(name)}")
            copy, first = files[path].header, original.header if original else None
            if original is None or copy is None or first is None or copy.raw != first.raw:
                continue
            component.files.remove(path)
            shown = files.pop(path).name
            plan.extras.append(path)
            message = f"{shown}: by its name and header a copy of {original.name}; not compared"
            plan.findings.add("extra", Severity.WARNING, message, file=shown)


def note_extras(root: Path, plan: Plan, files: dict[str, CheckpointFile]) -> None:
    """Say of all weights that are left out what they are; those in folders of no component are only counted."""
    stored: dict[str, set[str]] = {}
    elsewhere: dict[str, int] = {}
    copies = {finding.file for finding in plan.findings if finding.code == "extra"}
    for path in plan.extras:
        folder = path.rpartition("/")[0]
        if path in plan.unsettled or escape(path) in copies:
            continue
        if folder not in plan.folders:
            elsewhere[folder] = elsewhere.get(folder, 0) + 1
            continue
        if kind_of(path.rpartition("/")[2]) is Kind.WEIGHTS:
            stored[path] = stored_names(inspect(root, path, Role.WEIGHTS, look(root / path)).file)
        _note_one(path, stored.get(path), plan)
    for folder, number in elsewhere.items():
        files_there = count(number, "weight file")
        message = f"{escape(folder)}/: {files_there} that no index names; not compared"
        plan.findings.add("extra", Severity.NOTE, message, file=escape(folder))
    for component in plan.components:
        _note_instead(component, plan, files, stored)
    if plan.unsettled:
        message = (
            f"{count(len(plan.unsettled), 'weight file lies', 'weight files lie')} beside an index that cannot be "
            f"used; without it nobody knows whether they are all: {some(plan.unsettled)}"
        )
        plan.findings.add("unsettled", Severity.WARNING, message)


def _note_one(path: str, tensors: set[str] | None, plan: Plan) -> None:
    shown = escape(path)
    if tensors is None:
        message = f"{shown}: another format than the checkpoint's; not compared"
        plan.findings.add("extra", Severity.NOTE, message, file=shown)
        return
    for component in plan.components:
        repeated = sorted(tensors.intersection(map(escape, component.shards)))
        if repeated and component.index is not None and _folder(component.index) == _folder(path):
            names = count(len(repeated), "tensor")
            message = f"{shown}: not named by {escape(component.index)}, and repeats {names} of it; not compared"
            plan.findings.add("extra", Severity.WARNING, message, file=shown)
            return
    plan.findings.add("extra", Severity.NOTE, f"{shown}: weights that no index names; not compared", file=shown)


def _note_instead(
    component: Component, plan: Plan, files: dict[str, CheckpointFile], stored: dict[str, set[str]]
) -> None:
    """Where shards are missing: do the weights beside them make up for it?"""
    missing = [path for path in component.files if files[path].state is State.MISSING]
    if component.index is None or not missing:
        return
    folder, index = _folder(component.index), escape(component.index)
    extra = [path for path in stored if _folder(path) == folder]
    held = set[str]().union(*(stored[path] for path in extra))
    if extra and held.issuperset(map(escape, component.shards)):
        message = (
            f"{index}: {len(missing):,} of its shards missing, and the {len(extra):,} extra here ({some(extra)}) "
            "together hold every tensor that it lists: the index is stale"
        )
        plan.findings.add("stale-index", Severity.ERROR, message, file=index)
    others = [path for path in plan.extras if _folder(path) == folder and kind_of(_name(path)) is Kind.OPAQUE]
    if others:
        words = "a complete set of another format is here" if is_whole_set(list(map(_name, others))) else "here are"
        message = f"{index}: shards missing; {words}, not compared: {some(others)}"
        plan.findings.add("other-format", Severity.NOTE, message, file=index)


def note_pointers(root: Path, plan: Plan, files: dict[str, CheckpointFile]) -> None:
    """Add up what git-lfs pointers stand for: one line of advice for all of them."""
    pointers = []
    for path, file in files.items():
        if file.state is State.NOT_WEIGHTS and file.size <= HEAD:
            try:
                pointers.append(pointer(read_file(root / path, HEAD)))
            except OSError:
                continue
    found = [one for one in pointers if one is not None]
    if found:
        missing = sum(one.size for one in found)
        message = (
            f"{count(len(found), 'git-lfs pointer stands', 'git-lfs pointers stand')} for {count(missing, 'byte')} "
            "that were never fetched: run `git lfs pull` in the repository"
        )
        plan.findings.add("lfs-pointers", Severity.ERROR, message)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
