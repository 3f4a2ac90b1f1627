"""Layout 1: which bytes go into which digest. Pure, and a promise: records and peers hold these digests.

docs/digests.md says the same in words, with test vectors. A change in here is another layout with another version
number (`facts.scan.DIGEST_LAYOUT`), never an edit.

Names are escaped text everywhere else; in here they are the bytes that they stand for. Integers are 8 bytes
little-endian, byte strings stand behind their length as such an integer, lists behind their count.
"""

from __future__ import annotations

import hashlib
from itertools import chain
from struct import iter_unpack
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from .. import native
from ..facts.scan import DIGEST_LAYOUT
from ..native import pack_rows
from ..native.names import order_of, packed
from ..present.safe import unescape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .cut import Spans

#: A segment is hashed in leaves of this many bytes, counted from its own start.
LEAF = 1 << 20
#: Bytes of an xxh3-128 digest, in its canonical (big-endian) form.
WIDTH = 16


def integer(value: int) -> bytes:
    """An integer as it stands in a composite."""
    return value.to_bytes(8, "little")


def string(raw: bytes) -> bytes:
    """Bytes as they stand in a composite."""
    return len(raw).to_bytes(8, "little") + raw


def domain(kind: bytes) -> bytes:
    """What a composite of this kind begins with."""
    return string(b"ckpt-tui/%d/%s" % (DIGEST_LAYOUT, kind))


_SEGMENT_DOMAIN = domain(b"segment")


def name_bytes(name: str) -> bytes:
    """The bytes that a tensor's escaped name stands for: UTF-8, lone surrogates of a JSON escape included."""
    return (unescape(name) if "\\" in name else name).encode("utf-8", "surrogatepass")


def written_names(names: Sequence[str]) -> Sequence[str] | list[bytes]:
    """`name_bytes` of each, or where their UTF-8 is that the names themselves: all at once, as there may be very many.

    Either way they sort as their bytes do.
    """
    if packed(names) is not None:
        return names
    return [*map(name_bytes, names)] if "\\" in "".join(names) else [*names]


def split(digests: bytes) -> list[bytes]:
    """The digests one by one."""
    return [*chain.from_iterable(iter_unpack(f"{WIDTH}s", digests))]


def leaf_digest(piece: bytes | memoryview) -> bytes:
    """The digest of one leaf: plain xxh3-128 of at most `LEAF` bytes."""
    return xxhash.xxh3_128_digest(piece)


def segment_digest(length: int, leaves: Sequence[bytes]) -> bytes:
    """The digest of a segment of `length` bytes over its leaves' digests. An empty segment has no leaves."""
    return segment_digests([length], b"".join(leaves))


def segment_of(data: bytes | memoryview) -> bytes:
    """The digest of a segment whose bytes are at hand."""
    view = memoryview(data)
    return segment_digest(len(data), [leaf_digest(view[at : at + LEAF]) for at in range(0, len(data), LEAF)])


def segment_digests(lengths: Sequence[int], leaves: bytes) -> bytes:
    """The digests of consecutive segments of these lengths; `leaves` holds those of all their leaves in order."""
    return native.segment_digests(_SEGMENT_DOMAIN, [*lengths], LEAF, leaves)


def file_digest(spans: Spans, digests: bytes) -> bytes:
    """The digest of a file over its segments; `digests` holds theirs, `WIDTH` bytes each, in the order of the spans."""
    columns = [*spans.kinds], written_names(spans.names), [*spans.offsets], [*spans.lengths], digests
    rows = pack_rows("ssqqd", None, *columns)
    digest = xxhash.xxh3_128(domain(b"file") + integer(len(spans)))
    digest.update(rows)
    return digest.digest()


class Member(NamedTuple):
    """A file in a composite over files. `digest` is the digest that the composite asks for."""

    name: bytes
    size: int
    digest: bytes


def _listed(members: Iterable[Member]) -> bytes:
    """Files as a list in order of name."""
    items = [string(name) + integer(size) + string(digest) for name, size, digest in sorted(members)]
    return integer(len(items)) + b"".join(items)


def _sha256(kind: bytes, *fields: bytes) -> bytes:
    return hashlib.sha256(b"".join((domain(kind), *fields))).digest()


def content(weights: Sequence[Member]) -> bytes | None:
    """Digest of every weight file's bytes, over the file digests. No weight files have no content."""
    return _sha256(b"content", _listed(weights)) if weights else None


def content_sha256(weights: Sequence[Member]) -> bytes | None:
    """Digest of every weight file's bytes, over their SHA-256 (32 bytes each)."""
    return _sha256(b"content-sha256", _listed(weights)) if weights else None


def sidecars(members: Sequence[Member]) -> bytes:
    """Digest over the file digests of all sidecars; there may be none."""
    return _sha256(b"sidecars", _listed(members))


class TensorFacts(NamedTuple):
    """Tensors in the logical content, by column: their names (escaped text), dtypes as written, and shapes.

    `digests` holds those of their segments, `WIDTH` bytes each.
    """

    names: Sequence[str]
    dtypes: list[str]
    shapes: list[tuple[int, ...]]
    digests: bytes


def logical_content(tensors: TensorFacts) -> bytes:
    """Digest of the tensors wherever they lie: the same weights in other shards have the same."""
    written, rows = written_names(tensors.names), len(tensors.names)
    order = order_of(written)
    if order is None:  # tensors of one name
        digests = split(tensors.digests)
        keys = [*zip(written, map(str.encode, tensors.dtypes), tensors.shapes, digests, strict=True)]
        order = sorted(range(rows), key=keys.__getitem__)
    packed = pack_rows("sstd", order, written, tensors.dtypes, tensors.shapes, tensors.digests)
    digest = hashlib.sha256(domain(b"logical") + integer(rows))
    digest.update(packed)
    return digest.digest()


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
    headers = [
        string(name) + integer(size) + integer(length) + string(sha256)
        for name, size, length, sha256 in sorted(weights)
    ]
    return _sha256(b"identity", _listed(metadata), integer(len(headers)), *headers)


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
    items = [
        string(name) + string(where) + integer(device) + integer(inode) for name, where, device, inode in sorted(places)
    ]
    return _sha256(b"copy", integer(len(items)), *items)
