"""The digest cache: one small self-checksummed file for each file that was hashed.

A record is a fixed prefix, a head (msgpack), the digests of all segments and of all their leaves (16 bytes each), and
a checksum over everything before it. What is not exactly that is a miss, never an error. Records are written under a
temporary name and renamed, so that readers on any machine see a whole one or none.
"""

from __future__ import annotations

import os
import re
import struct
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import xxhash

from ..checkpoint.opening import open_regular
from ..facts.files import MissReason, Segmentation
from ..facts.scan import DIGEST_LAYOUT
from ..present.safe import error_text
from .layout import WIDTH
from .validity import Miss, Stamp

if TYPE_CHECKING:
    from pathlib import Path

#: What every record of ours begins with, and nothing else in the folder does.
MAGIC = b"ckpttuir"
_FORMAT = 2
#: Magic, format, layout, bytes of the head, number of segments, number of leaves.
_PREFIX = struct.Struct("<8sIIQQQ")


class Derived(StrEnum):
    """What follows from digests alone, and is remembered under them: no stat has a say in it."""

    #: The logical content that belongs to a content.
    LOGICAL = "logical"
    #: An index in which nothing is wrong, nor with its shards' headers.
    OUTLINE = "outline"


class Key(NamedTuple):
    """Whose record it is: host, file system and real path."""

    host: str
    file_system: str
    path: bytes


class Earlier(NamedTuple):
    """What the same file held before under the very same stat: other bytes, which is corruption."""

    digest: bytes
    hashed_at: float


class Record(NamedTuple):
    """What is remembered of one file."""

    stamp: Stamp
    #: Seconds since the epoch at which the bytes were read.
    hashed_at: float
    segmentation: Segmentation
    digest: bytes
    sha256: bytes | None
    git_sha1: bytes | None
    #: Digests of `WIDTH` bytes each: of the segments in their order, and of each segment's leaves.
    segments: bytes
    leaves: bytes
    #: Stays until the file is written again, so that no later scan takes the bytes for sound.
    earlier: Earlier | None = None

    def contradicted_by(self, digest: bytes) -> Earlier | None:
        """What a reading of the same file under the same stat makes of this record: other bytes are corruption."""
        return self.earlier if digest == self.digest else Earlier(self.digest, self.hashed_at)


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """A key and a record up to its lists of digests, as msgpack holds them."""

    host: str
    file_system: str
    path: bytes
    stamp: tuple[int, int, int, int]
    hashed_at: float
    segmentation: Segmentation
    digest: bytes
    sha256: bytes | None
    git_sha1: bytes | None
    earlier: tuple[bytes, float] | None


def encode(key: Key, record: Record) -> bytes:
    """The bytes of a record."""
    head = msgspec.msgpack.encode((*key, *record[:6], record.earlier))
    counts = len(head), len(record.segments) // WIDTH, len(record.leaves) // WIDTH
    prefix = _PREFIX.pack(MAGIC, _FORMAT, DIGEST_LAYOUT, *counts)
    body = b"".join((prefix, head, record.segments, record.leaves))
    return body + xxhash.xxh3_128_digest(body)


def decode(raw: bytes, key: Key) -> Record | Miss:
    """The record in these bytes, or why there is none for this file."""
    found = parse(raw)
    if isinstance(found, Miss):
        return found
    if found[0] != key:
        return Miss(MissReason.CORRUPT_RECORD, "written for another file")
    return found[1]


def parse(raw: bytes) -> tuple[Key, Record] | Miss:
    """The record in these bytes and whose it is, or why there is none."""
    body = memoryview(raw)[:-WIDTH]
    if len(body) < _PREFIX.size or xxhash.xxh3_128_digest(body) != raw[-WIDTH:]:
        return Miss(MissReason.CORRUPT_RECORD)
    magic, format_, layout, head_length, segments, leaves = _PREFIX.unpack_from(body)
    if (magic, format_, layout) != (MAGIC, _FORMAT, DIGEST_LAYOUT):
        return Miss(MissReason.OTHER_LAYOUT)
    at = _PREFIX.size + head_length
    middle = at + segments * WIDTH
    if len(body) != middle + leaves * WIDTH:
        return Miss(MissReason.CORRUPT_RECORD)
    try:
        head = msgspec.msgpack.decode(body[_PREFIX.size : at], type=_Head)
    except msgspec.MsgspecError:
        return Miss(MissReason.CORRUPT_RECORD)
    record = Record(
        stamp=Stamp(*head.stamp),
        hashed_at=head.hashed_at,
        segmentation=head.segmentation,
        digest=head.digest,
        sha256=head.sha256,
        git_sha1=head.git_sha1,
        segments=bytes(body[at:middle]),
        leaves=bytes(body[middle:]),
        earlier=Earlier(*head.earlier) if head.earlier else None,
    )
    return Key(head.host, head.file_system, head.path), record


class DigestCache:
    """The records of one host in one folder. Safe for any number of threads, processes and machines at once."""

    def __init__(self, folder: Path, host: str) -> None:
        label = re.sub(r"[^A-Za-z0-9.-]", "_", os.uname().nodename)[:40]
        #: This host's own folder.
        self.folder = folder / f"{label}-{xxhash.xxh3_128_hexdigest(host.encode())[:12]}"
        self._host = host
        #: The first failure to write, as one line for people.
        self.warning: str | None = None

    def key(self, file_system: str, path: bytes) -> Key:
        """The key of a file of this host."""
        return Key(self._host, file_system, path)

    def load(self, key: Key) -> Record | Miss:
        """What is remembered under a key, or why nothing is."""
        try:
            raw = _read(self.place(key))
        except (FileNotFoundError, NotADirectoryError):
            return Miss(MissReason.NEW)
        except OSError as error:
            return Miss(MissReason.CORRUPT_RECORD, error_text(error))
        return decode(raw, key)

    def save(self, key: Key, record: Record) -> None:
        """Remember; where that is not possible, note it once, and the scan goes on without."""
        self._write(self.place(key), encode(key, record))

    def load_logical(self, content: bytes) -> bytes | None:
        """The logical content that belongs to a content, which determines it: many tables need not be walked again."""
        return self._load_derived(content, Derived.LOGICAL)

    def save_logical(self, content: bytes, logical: bytes) -> None:
        """Remember which logical content belongs to a content."""
        self._save_derived(content, Derived.LOGICAL, logical)

    def load_outline(self, key: bytes) -> bytes | None:
        """What is remembered of an index (`checkpoint.outline`)."""
        return self._load_derived(key, Derived.OUTLINE)

    def save_outline(self, key: bytes, value: bytes) -> None:
        """Remember an index."""
        self._save_derived(key, Derived.OUTLINE, value)

    def _load_derived(self, key: bytes, kind: Derived) -> bytes | None:
        try:
            raw = _read(self.folder / f"{key.hex()}.{kind}")
        except OSError:
            return None
        return raw[:-WIDTH] if is_derived(key, raw) else None

    def _save_derived(self, key: bytes, kind: Derived, value: bytes) -> None:
        self._write(self.folder / f"{key.hex()}.{kind}", value + _bound(key, value))

    def _write(self, place: Path, raw: bytes) -> None:
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(place, raw)
        except OSError as error:
            self.warning = self.warning or f"the digest cache is not written: {error_text(error)}"

    def place(self, key: Key) -> Path:
        """Where the record of a file lies."""
        parts = (part if isinstance(part, bytes) else part.encode() for part in key)
        name = xxhash.xxh3_128_hexdigest(b"".join(len(part).to_bytes(8, "little") + part for part in parts))
        return self.folder / f"{name}.digest"


def _read(place: Path) -> bytes:
    """A small file whole. By descriptor, as a warm scan reads one for each file."""
    descriptor = open_regular(place)
    try:
        size, parts = os.fstat(descriptor).st_size, []
        while part := os.read(descriptor, max(size, 1) + 1):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def is_derived(key: bytes, raw: bytes) -> bool:
    """Whether a file holds what follows from this key."""
    return raw[-WIDTH:] == _bound(key, raw[:-WIDTH])


def _bound(key: bytes, value: bytes) -> bytes:
    return xxhash.xxh3_128_digest(MAGIC + bytes([_FORMAT, DIGEST_LAYOUT]) + key + value)


def write_whole(place: Path, raw: bytes) -> None:
    """Write a file that its readers see whole or not at all."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}.{os.urandom(6).hex()}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
            file.write(raw)
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
