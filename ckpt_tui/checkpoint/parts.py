"""The subfolders that are parts of a checkpoint: what a pipeline or a sentence-transformer says that it is made of."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from ..facts.files import State
from .index import LIMIT
from .listing import Folder, list_folder
from .names import Kind, is_weights_index, kind_of
from .opening import denied, look, read_file
from .sniff import HEAD, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: `model_index.json` is diffusers', `modules.json` is sentence-transformers'.
MANIFESTS = ("model_index.json", "modules.json")
#: A module that has nothing to save: its folder is empty, and git, so also the hub, keeps no empty folders.
_NOTHING_SAVED = ".Normalize"


class Parts(Struct):
    """The parts of a checkpoint, and what stands in the way of knowing them."""

    folders: list[Folder] = field(default_factory=list)
    #: Folders that cannot be listed, and why.
    unreadable: dict[str, str] = field(default_factory=dict)
    #: Parts that a manifest names and that are not there.
    missing: list[str] = field(default_factory=list)
    #: What the manifests were that tell something.
    read: dict[str, bytes] = field(default_factory=dict)
    #: Manifests that tell nothing, and why.
    broken: dict[str, tuple[State, str]] = field(default_factory=dict)


def find_parts(root: Path, top: Folder) -> Parts:
    """The subfolders that manifests name; where none does and the root holds no weights, those that hold some."""
    parts = Parts()
    named = list(dict.fromkeys(_named(root, top, parts)))
    for name in named:
        if _is_inside(name) and os.path.isdir(root / name):  # noqa: PTH112 - answers False where Path would raise
            _add(root, name, parts)
        else:
            parts.missing.append(name)
    if not named and not _holds_weights(top.files):
        for name in top.subfolders:
            if not name.startswith("."):
                _add(root, name, parts)
        parts.folders = [folder for folder in parts.folders if _holds_weights(folder.files)]
    return parts


def _add(root: Path, name: str, parts: Parts) -> None:
    try:
        parts.folders.append(list_folder(root, name))
    except OSError as error:
        parts.unreadable[name] = denied(root / name, error)


def _holds_weights(names: Iterable[str]) -> bool:
    return any(kind_of(name) in {Kind.WEIGHTS, Kind.OPAQUE} or is_weights_index(name) for name in names)


def _is_inside(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/") and "\0" not in name


def _named(root: Path, top: Folder, parts: Parts) -> Iterator[str]:
    for file in MANIFESTS:
        if file not in top.files:
            continue
        seen = look(root / file)
        if seen.state is not State.GOOD:
            parts.broken[file] = seen.state, seen.error or seen.state.value
            continue
        try:
            raw = read_file(root / file, LIMIT)
        except OSError as error:
            parts.broken[file] = State.UNREADABLE, denied(root / file, error)
            continue
        try:
            yield from _names(msgspec.json.decode(raw))
            parts.read[file] = raw
        except (msgspec.MsgspecError, RecursionError) as error:
            found = pointer(raw[:HEAD])
            words = f"it names the checkpoint's parts, and is no JSON: {error}"
            parts.broken[file] = (State.NOT_WEIGHTS, found.words) if found else (State.BAD_HEADER, words)


def _names(manifest: Any) -> Iterator[str]:
    """Folders as a manifest names them: a pipeline's `"unet": ["diffusers", "UNet"]`, a module's `"path"`."""
    if isinstance(manifest, dict):
        for name, value in manifest.items():
            if isinstance(value, list) and len(value) == 2 and all(isinstance(word, str) for word in value):
                yield name.rstrip("/")
    elif isinstance(manifest, list):
        for module in manifest:
            path = module.get("path") if isinstance(module, dict) else None
            if isinstance(path, str) and path.strip("/") and not str(module.get("type")).endswith(_NOTHING_SAVED):
                yield path.rstrip("/")
