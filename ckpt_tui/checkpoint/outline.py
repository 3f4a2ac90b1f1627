"""What is remembered of an index and its shards' headers where nothing is wrong with them, so that neither is parsed.

It speaks of bytes and of nothing else: it is found by the SHA-256 of the index as it was just read, and holds for each
shard whose header, as it was just read, has the SHA-256 that it names. No stat has a say in it, so no race has either.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Protocol

import msgspec

from ..facts.version import TOOL
from .geometry import DTYPE_BITS
from .header import PREFIX, REFERENCE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import CheckpointFile, Header
    from .plan import Component

#: To be raised with every change of what the parsers of indexes and headers, or `audit.check_map`, find wrong.
_RULES = 1
#: A header whose tensors have more lengths than this is parsed each time.
_MOST_LENGTHS = 256


class Outlines(Protocol):
    """Where outlines lie: values by keys of 32 bytes. A value may be lost at any time, and is never another's."""

    def load_outline(self, key: bytes) -> bytes | None:
        """The value, if there is one."""
        ...

    def save_outline(self, key: bytes, value: bytes) -> None:
        """Remember a value, where that is possible."""
        ...


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """What a scan asks of a header as long as no tensor is looked at; told by the SHA-256 of the raw header."""

    sha256: bytes
    #: The file size in bytes that the header asks for.
    needed: int
    #: Each length in bytes that some tensor has.
    lengths: tuple[int, ...]


class Sound(msgspec.Struct, frozen=True, array_like=True):
    """An index in which nothing is wrong, also not with shards whose headers are these."""

    total_size: int | None
    #: By the bytes of the shard's path relative to the root.
    shards: dict[bytes, Outline]

    def files(self) -> list[str]:
        """The paths of the shards."""
        return [os.fsdecode(path) for path in self.shards]

    def of(self, path: str) -> Outline | None:
        """What it says of one."""
        return self.shards.get(os.fsencode(path))


_SOUND = msgspec.msgpack.Decoder(Sound)


def key_of(index: bytes, folder: str) -> bytes:
    """The key under which an index in this folder of a checkpoint is remembered; another version looks anew."""
    rules = f"{TOOL} {_RULES} {len(folder)} {folder}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(rules + b"\0" + index).digest()


def recall(outlines: Outlines, key: bytes) -> Sound | None:
    """What is remembered of an index."""
    raw = outlines.load_outline(key)
    try:
        return None if raw is None else _SOUND.decode(raw)
    except msgspec.MsgspecError:
        return None


def holds(component: Component, files: Mapping[str, CheckpointFile]) -> bool:
    """Whether an index and the headers of all its shards are those in which nothing was wrong."""
    sound = component.sound
    headers = ((path, files[path].header) for path in component.files)
    return sound is not None and all(header and header.outline is sound.of(path) for path, header in headers)


def remember(outlines: Outlines, component: Component, files: Mapping[str, CheckpointFile]) -> None:
    """Remember an index in which nothing is wrong, nor with its shards, if all of them can be outlined."""
    total = component.total_size
    found = {path: _outline(files[path].header) for path in component.files}
    shards = {os.fsencode(path): outline for path, outline in found.items() if outline is not None}
    if component.key is None or len(shards) < len(found) or not (total is None or type(total) is int):
        return
    try:
        raw = msgspec.msgpack.encode(Sound(total, shards))
    except OverflowError:  # a total beyond 64 bits
        return
    outlines.save_outline(component.key, raw)


def _outline(header: Header | None) -> Outline | None:
    """The outline of a header that gives no warning."""
    if header is None or header.outline is not None:
        return header.outline if header else None
    lengths = {*header.tensors.lengths}
    if len(header.raw) - PREFIX > REFERENCE_LIMIT or len(lengths) > _MOST_LENGTHS:
        return None
    if not DTYPE_BITS.keys() >= {*header.tensors.dtypes}:
        return None
    return Outline(header.sha256, header.needed, tuple(sorted(lengths)))
