"""Layout 1: which bytes go into which digest. Pure, and a promise: records and peers hold these digests.

docs/digests.md says the same in words, with test vectors. A change in here is another layout with another version
number (`facts.scan.DIGEST_LAYOUT`), never an edit.

Names are escaped text everywhere else; in here they are the bytes that they stand for.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple, Protocol

import xxhash

from ..facts.scan import DIGEST_LAYOUT
from ..present.safe import unescape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .cut import Span

#: A segment is hashed in leaves of this many bytes, counted from its own start.
LEAF = 1 << 20
#: Bytes of an xxh3-128 digest, in its canonical (big-endian) form.
WIDTH = 16


class _Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


class _Composite:
    """A digest over fields: integers as 8 bytes little-endian, byte strings behind their length as such an integer."""

    def __init__(self, hasher: _Hasher, kind: bytes) -> None:
        self._hasher = hasher
        self.string(b"ckpt-tui/%d/%s" % (DIGEST_LAYOUT, kind))

    def integer(self, value: int) -> None:
        self._hasher.update(value.to_bytes(8, "little"))

    def string(self, raw: bytes) -> None:
        self._hasher.update(len(raw).to_bytes(8, "little") + raw)

    def digest(self) -> bytes:
        return self._hasher.digest()


def _string(raw: bytes) -> bytes:
    return len(raw).to_bytes(8, "little") + raw


_SEGMENT_DOMAIN = _string(b"ckpt-tui/%d/segment" % DIGEST_LAYOUT)
_DIGEST_PREFIX = WIDTH.to_bytes(8, "little")


def name_bytes(name: str) -> bytes:
    """The bytes that a tensor's escaped name stands for: UTF-8, lone surrogates of a JSON escape included."""
    return unescape(name).encode("utf-8", "surrogatepass")


def leaf_digest(piece: bytes | memoryview) -> bytes:
    """The digest of one leaf: plain xxh3-128 of at most `LEAF` bytes."""
    return xxhash.xxh3_128_digest(piece)


def segment_digest(length: int, leaves: Sequence[bytes]) -> bytes:
    """The digest of a segment of `length` bytes over its leaves' digests. An empty segment has no leaves."""
    fields = [_SEGMENT_DOMAIN, length.to_bytes(8, "little"), len(leaves).to_bytes(8, "little")]
    for leaf in leaves:
        fields += (_DIGEST_PREFIX, leaf)
    return xxhash.xxh3_128_digest(b"".join(fields))


def file_digest(spans: Sequence[Span], digests: bytes) -> bytes:
    """The digest of a file over its segments; `digests` holds theirs, `WIDTH` bytes each, in the order of the spans."""
    composite = _Composite(xxhash.xxh3_128(), b"file")
    composite.integer(len(spans))
    for place, span in enumerate(spans):
        composite.string(span.kind.value.encode())
        composite.string(name_bytes(span.name))
        composite.integer(span.offset)
        composite.integer(span.length)
        composite.string(digests[place * WIDTH : (place + 1) * WIDTH])
    return composite.digest()


class Member(NamedTuple):
    """A file in a composite over files. `digest` is the digest that the composite asks for."""

    name: bytes
    size: int
    digest: bytes


def _over_files(kind: bytes, members: Iterable[Member]) -> bytes:
    ordered = sorted(members)
    composite = _Composite(hashlib.sha256(), kind)
    composite.integer(len(ordered))
    for member in ordered:
        composite.string(member.name)
        composite.integer(member.size)
        composite.string(member.digest)
    return composite.digest()


def content(weights: Sequence[Member]) -> bytes | None:
    """Digest of every weight file's bytes, over the file digests. No weight files have no content."""
    return _over_files(b"content", weights) if weights else None


def content_sha256(weights: Sequence[Member]) -> bytes | None:
    """Digest of every weight file's bytes, over their SHA-256 (32 bytes each)."""
    return _over_files(b"content-sha256", weights) if weights else None


def sidecars(members: Sequence[Member]) -> bytes:
    """Digest over the file digests of all sidecars; there may be none."""
    return _over_files(b"sidecars", members)


class TensorFact(NamedTuple):
    """A tensor in the logical content: its name's bytes, dtype as written, shape, and its segment's digest."""

    name: bytes
    dtype: bytes
    shape: tuple[int, ...]
    digest: bytes


def logical_content(tensors: Iterable[TensorFact]) -> bytes:
    """Digest of the tensors wherever they lie: the same weights in other shards have the same."""
    ordered = sorted(tensors)
    composite = _Composite(hashlib.sha256(), b"logical")
    composite.integer(len(ordered))
    for tensor in ordered:
        composite.string(tensor.name)
        composite.string(tensor.dtype)
        composite.integer(len(tensor.shape))
        for dimension in tensor.shape:
            composite.integer(dimension)
        composite.string(tensor.digest)
    return composite.digest()


class HeaderFact(NamedTuple):
    """A weight file in the identity: its name's bytes, size, raw header's length (0 if opaque) and its SHA-256."""

    name: bytes
    size: int
    header_length: int
    header_sha256: bytes


def identity(metadata: Sequence[Member], weights: Sequence[HeaderFact]) -> bytes | None:
    """Digest of metadata alone: config and index files (their SHA-256), and each weight file's size and header."""
    if not weights:
        return None
    composite = _Composite(hashlib.sha256(), b"identity")
    composite.integer(len(metadata))
    for member in sorted(metadata):
        composite.string(member.name)
        composite.integer(member.size)
        composite.string(member.digest)
    composite.integer(len(weights))
    for header in sorted(weights):
        composite.string(header.name)
        composite.integer(header.size)
        composite.integer(header.header_length)
        composite.string(header.header_sha256)
    return composite.digest()


class Place(NamedTuple):
    """Where a weight file lies: `where` names the host, or the server of a network file system (then `device` is 0)."""

    name: bytes
    where: bytes
    device: int
    inode: int


def copy_id(places: Sequence[Place]) -> bytes | None:
    """Digest of where the weight files lie: ranks with one value share one copy."""
    if not places:
        return None
    composite = _Composite(hashlib.sha256(), b"copy")
    composite.integer(len(places))
    for place in sorted(places):
        composite.string(place.name)
        composite.string(place.where)
        composite.integer(place.device)
        composite.integer(place.inode)
    return composite.digest()
