"""What a git-lfs clone records of its weights, read without git: the index names each pointer, the store each object.

The index holds git's hash of a pointer's three lines. Those lines are made of an object's name and size alone, and
the objects lie in `.git/lfs/objects` under their names, so each one says which pointer it would be written as.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .opening import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIMIT = 64 << 20
_MOST_OBJECTS = 20_000
_OID = r"[0-9a-f]{64}"
#: ctime, mtime, dev, ino, mode, uid, gid, size, sha1, flags.
_ENTRY = struct.Struct(">10I20sH")
_EXTENDED, _NAME = 0x4000, 0x0FFF
_TEXT = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


class Tracked(NamedTuple):
    """An object that git-lfs holds for a file: its sha256, its size, and the file's mtime when git last saw it."""

    oid: str
    size: int
    seconds: int


def tracked_files(root: Path) -> dict[str, Tracked]:
    """Files below a folder that git-lfs keeps, by name relative to it; empty where that is no clone that tells."""
    stores = ((place, place / ".git" / "lfs") for place in (root, *root.parents))
    repository = next((place for place, store in stores if os.path.isdir(store)), None)  # noqa: PTH112 - answers False where Path would raise
    if repository is None:
        return {}
    try:
        objects = {_pointer_sha1(oid, size): (oid, size) for oid, size in _objects(repository / ".git/lfs/objects")}
        entries = list(_entries(read_file(repository / ".git" / "index", _LIMIT))) if objects else []
    except (OSError, ValueError, struct.error):
        return {}
    prefix = "".join(f"{part}/" for part in root.relative_to(repository).parts)
    found = {}
    for name, sha1, seconds in entries:
        if sha1 in objects and name.startswith(prefix):
            found[name.removeprefix(prefix)] = Tracked(*objects[sha1], seconds)
    return found


def _objects(store: Path) -> Iterator[tuple[str, int]]:
    number = 0
    for folder, _, names in os.walk(store):
        for name in names:
            if re.fullmatch(_OID, name):
                number += 1
                if number > _MOST_OBJECTS:
                    return
                yield name, Path(folder, name).stat().st_size


def _pointer_sha1(oid: str, size: int) -> bytes:
    text = _TEXT.format(oid, size).encode()
    return hashlib.sha1(b"blob %d\0" % len(text) + text, usedforsecurity=False).digest()


def _entries(raw: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Name, hash and mtime in seconds of every entry of a git index, version 2 or 3; ValueError for anything else."""
    magic, version, number = struct.unpack_from(">4sII", raw)
    if magic != b"DIRC" or version not in {2, 3}:
        raise ValueError(f"no git index that is read here: {magic!r} {version}")
    place = 12
    for _ in range(number):
        _, _, seconds, *_, sha1, flags = _ENTRY.unpack_from(raw, place)
        start = place + _ENTRY.size + (2 if flags & _EXTENDED else 0)
        end = raw.index(b"\0", start)
        yield os.fsdecode(raw[start:end]), sha1, seconds
        place += (end - place) // 8 * 8 + 8
