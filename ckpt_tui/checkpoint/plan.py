"""Which files make the checkpoint: the shards that the weight maps name, and a listing only where there is no map."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ..facts.files import Severity, State
from ..facts.outcome import CkptError, UsageError
from ..present.safe import escape
from ..present.units import count
from . import outline
from .findings import Findings, some
from .index import LIMIT, BadIndex, parse_index, resolve
from .listing import Folder, list_folder
from .names import (
    INDEX,
    OPAQUE,
    RANK_FILE,
    RANK_FILES_TABLE,
    SAFETENSORS,
    Kind,
    gaps,
    is_weights_index,
    kind_of,
)
from .opening import denied, look, read_file
from .outline import Outlines, Sound
from .parts import Parts, find_parts
from .sniff import HEAD, pointer
from .unfinished import unfinished

if TYPE_CHECKING:
    from pathlib import Path


class Component(Struct):
    """Shards that belong together: what one index maps, or what one folder without an index holds."""

    #: The index's path relative to the root; None for a listing.
    index: str | None
    files: list[str]
    #: What an index maps: looked up when somebody asks.
    lookup: Callable[[], dict[str, str]] = dict
    total_size: Any = None
    #: Files that only their siblings' numbers speak of (`-of-00003`).
    by_number: list[str] = field(default_factory=list)
    #: Files that only something on record speaks of, and what that is.
    by_record: dict[str, str] = field(default_factory=dict)
    #: What is remembered of the index, and under which key; no key where something is wrong with it.
    sound: Sound | None = None
    key: bytes | None = None

    @property
    def shards(self) -> dict[str, str]:
        """Tensor, as the index writes it, to the shard's path relative to the root."""
        return self.lookup()

    def keep(self, shards: dict[str, str]) -> None:
        """Go on with a part of what the index maps; what is remembered speaks of the whole."""
        self.lookup = lambda: shards
        self.sound = self.key = None


class Plan(Struct):
    """The files of a checkpoint by what they are to it; names relative to the root."""

    findings: Findings
    components: list[Component] = field(default_factory=list)
    sidecars: list[str] = field(default_factory=list)
    #: Indexes, manifests and folders that cannot be used, and why.
    unusable: dict[str, tuple[State, str]] = field(default_factory=dict)
    #: The bytes of the indexes and manifests by which the files were found, by name.
    named_by: dict[str, bytes] = field(default_factory=dict)
    #: Values of weight maps that are refused, never opened, and why.
    refused: dict[str, str] = field(default_factory=dict)
    #: Parts that a manifest names and that are not there.
    absent: list[str] = field(default_factory=list)
    #: Weights beside an unusable index: looked at for damage, never taken for the checkpoint.
    unsettled: list[str] = field(default_factory=list)
    #: Weights that nothing names.
    extras: list[str] = field(default_factory=list)
    #: The folders that were listed, by name.
    folders: dict[str, Folder] = field(default_factory=dict)
    #: What is remembered of indexes in which nothing was wrong.
    outlines: Outlines | None = None

    @property
    def settled(self) -> bool:
        """Whether all is known that says which weight files there are; else there may be others."""
        return not (self.unusable or self.absent)

    @property
    def weights(self) -> list[str]:
        """Every weight file of every component, once each."""
        return list(dict.fromkeys(name for component in self.components for name in component.files))


def plan_file(path: Path) -> Plan:
    """A single file that was named: all there is."""
    return Plan(Findings(), [Component(None, [path.name])])


def plan_folder(root: Path, outlines: Outlines | None = None) -> Plan:
    """List a folder and its components and read their indexes, those that `outlines` does not know."""
    plan = Plan(Findings(), outlines=outlines)
    try:
        top = list_folder(root)
    except OSError as error:
        raise CkptError(f"{escape(str(root))}: {denied(root, error)}") from None
    parts = find_parts(root, top)
    plan.named_by |= parts.read
    for folder in (top, *parts.folders):
        plan.folders[folder.name] = folder
    for folder in plan.folders.values():
        _plan_one(root, folder, plan)
    _plan_obstacles(parts, plan)
    if not (plan.weights or plan.unusable or plan.refused):
        raise UsageError(_nothing_here(root, top))
    parts_of_files = unfinished(root)
    if parts_of_files:
        plan.findings.add("unfinished-download", Severity.WARNING, parts_of_files)
    return plan


def _plan_obstacles(parts: Parts, plan: Plan) -> None:
    """What keeps the parts from being known must not look like a checkpoint without them."""
    for name, error in parts.unreadable.items():
        plan.components.append(Component(None, [name]))
        plan.unusable[name] = State.UNREADABLE, error
    plan.unusable |= parts.broken
    if parts.missing:
        plan.absent = parts.missing
        message = f"named as parts of the checkpoint and not there: {some(parts.missing)}"
        plan.findings.add("component-missing", Severity.ERROR, message)


def _plan_one(root: Path, folder: Folder, plan: Plan) -> None:
    """One folder: its sidecars, then its indexes, else its listing."""
    kinds = {name: kind_of(name) for name in folder.files}
    plan.sidecars += [folder.path(name) for name, kind in kinds.items() if kind is Kind.SIDECAR]
    weights = [name for name, kind in kinds.items() if kind is Kind.WEIGHTS]
    opaque = [name for name, kind in kinds.items() if kind is Kind.OPAQUE]
    indexes = [name for name in folder.files if is_weights_index(name)]
    ours = [name for name in indexes if name.lower().endswith(SAFETENSORS + INDEX)]
    used = ours if ours or weights else indexes
    for name in used:
        plan.sidecars.append(folder.path(name))
        _plan_index(root, folder, folder.path(name), plan)
    if used:
        if any(folder.path(name) in plan.unusable for name in used):
            plan.unsettled += [folder.path(name) for name in weights or opaque]
        return
    if folder.name == "" and len(plan.folders) > 1 and "model_index.json" in kinds:
        return  # a pipeline's weights lie in its parts
    listed = weights or opaque
    if listed:
        plan.components.append(_listing(folder, listed, plan))
        if any(name.lower().endswith(RANK_FILE) for name in listed):
            plan.sidecars.append(folder.path(RANK_FILES_TABLE))


def _plan_index(root: Path, folder: Folder, name: str, plan: Plan) -> None:
    try:
        raw = plan.named_by[name] = _read_index(root / name)
        key = outline.key_of(raw, folder.name) if plan.outlines else None
        sound = outline.recall(plan.outlines, key) if plan.outlines and key else None
        if sound is not None:
            lookup = cache(lambda: resolve(parse_index(raw), folder.name).shards)
            plan.components.append(Component(name, sound.files(), lookup, sound.total_size, sound=sound, key=key))
            return
        weight_map = parse_index(raw)
        resolved = resolve(weight_map, folder.name)
    except _Unusable as reason:
        plan.unusable[name] = reason.state, str(reason)
        return
    except BadIndex as error:
        plan.unusable[name] = State.BAD_HEADER, str(error)
        return
    safe = escape(name)
    if weight_map.bom:
        plan.findings.add("index-bom", Severity.NOTE, f"{safe}: starts with a byte order mark", file=safe)
    for twice in weight_map.twice:
        tensor = escape(twice.tensor)
        message = f"{safe}: maps {tensor} twice, to {escape(twice.first)} and {escape(twice.second)}"
        plan.findings.add("ambiguous", Severity.ERROR, message, file=safe, tensor=tensor)
    plan.refused |= {path: f"{reason} (named by {safe})" for path, reason in resolved.refused.items()}
    files = sorted(set(resolved.shards.values()))
    component = Component(name, files, lambda: resolved.shards, weight_map.total_size)
    if not (weight_map.bom or weight_map.twice or resolved.refused):
        component.key = key
    plan.components.append(component)


class _Unusable(Exception):
    """An index that is not there, cannot be read or is something else."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(reason)
        self.state = state


def _read_index(path: Path) -> bytes:
    seen = look(path)
    if seen.state is not State.GOOD:
        raise _Unusable(seen.state, seen.error or seen.state.value)
    try:
        raw = read_file(path, LIMIT)
    except OSError as error:
        raise _Unusable(State.UNREADABLE, denied(path, error)) from None
    found = pointer(raw[:HEAD])
    if found is not None:
        raise _Unusable(State.NOT_WEIGHTS, found.words)
    return raw


def _listing(folder: Folder, names: list[str], plan: Plan) -> Component:
    where = escape(folder.name) + "/" if folder.name else "the folder"
    message = f"no index: {count(len(names), 'weight file')} taken from a listing of {where}"
    plan.findings.add("no-index", Severity.NOTE, message)
    component = Component(None, [folder.path(name) for name in names])
    for gap in gaps(names):
        if gap.certain:
            component.by_number += [folder.path(name) for name in gap.absent]
            continue
        message = f"no {some(gap.absent)} among {escape(gap.first)} to {escape(gap.last)}; the numbering alone says so"
        plan.findings.add("numbering-gap", Severity.WARNING, message, file=escape(folder.path(gap.absent[0])))
    component.files = sorted([*component.files, *component.by_number])
    return component


def _nothing_here(root: Path, top: Folder) -> str:
    kinds = {name: kind_of(name) for name in top.files}
    leftovers = [name for name, kind in kinds.items() if kind in {Kind.LEFTOVER, Kind.SIDECAR, Kind.INDEX}]
    foreign = [name for name, kind in kinds.items() if kind is Kind.FOREIGN]
    words = f"{escape(str(root))}: no weights found"
    if foreign:
        return f"{words} of a kind that is read here ({' '.join((SAFETENSORS, *OPAQUE))}): {some(foreign)}"
    there = f"only sidecars and leftovers are there: {some(leftovers)}" if leftovers else "nor in its folders"
    return "; ".join(part for part in (words, there, unfinished(root)) if part)
