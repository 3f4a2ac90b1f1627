"""Which bytes go into the digests of live tensors. Pure, without torch, and a promise between ranks of one version.

docs/replicas.md says the same in words, with test vectors; framing and domains are those of docs/digests.md. With
xxh3-128 the digest of a plain tensor's bytes is that of the same tensor's segment in a checkpoint file.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from ..digest.layout import LEAF, domain, integer, string
from .kinds import Algorithm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .kinds import Kind

__all__ = ["LEAF", "EntryPart", "entry_digest", "hash_of", "kind_digest", "name_bytes", "part_digest"]

_SEGMENT = domain(b"segment")
_ENTRY = domain(b"replica-entry")
#: The lengths of names and digests, as they stand before them.
_length = lru_cache(maxsize=4096)(integer)


def _sha256(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


def hash_of(algorithm: Algorithm) -> Callable[[bytes | memoryview], bytes]:
    """The hash function; xxh3-128 with seed 0, in its canonical form."""
    return xxhash.xxh3_128_digest if algorithm is Algorithm.XXH3 else _sha256


def name_bytes(name: str) -> bytes:
    """A name as it goes into digests: UTF-8, lone surrogates included."""
    return name.encode("utf-8", "surrogatepass")


def part_digest(algorithm: Algorithm, length: int, leaves: Sequence[bytes]) -> bytes:
    """The digest of `length` bytes over the digests of their leaves of `LEAF` bytes. No bytes have no leaves."""
    framed = b"".join(map(string, leaves))
    return hash_of(algorithm)(_SEGMENT + integer(length) + integer(len(leaves)) + framed)


class EntryPart(NamedTuple):
    """A run of bytes in an entry: a plain tensor's elements, or one of the tensors that another kind is made of."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    digest: bytes


def entry_digest(
    algorithm: Algorithm,
    *,
    what: str,
    dtype: str,
    shape: Sequence[int],
    facts: Sequence[tuple[str, bytes]],
    parts: Sequence[EntryPart],
) -> bytes:
    """The digest of one entry: what it is, its dtype and shape, what else tells it apart, and its parts' bytes."""
    fields = [_ENTRY, string(what.encode()), string(dtype.encode()), _shape(shape), integer(len(facts))]
    fields += [string(key.encode()) + string(value) for key, value in facts]
    fields.append(integer(len(parts)))
    for part in parts:
        fields += (string(part.name.encode()), string(part.dtype.encode()), _shape(part.shape), string(part.digest))
    return hash_of(algorithm)(b"".join(fields))


def plain_heads(algorithm: Algorithm, dtype: str, shape: Sequence[int], length: int) -> tuple[bytes, bytes]:
    """What stands before the digest of the only leaf of a plain tensor's part, and before that part's in its entry.

    Equal for all tensors of a dtype and shape, so that where there are many it is made once.
    """
    width = integer(len(hash_of(algorithm)(b"")))
    form = string(dtype.encode()) + _shape(shape)
    entry = _ENTRY + string(b"tensor") + form + integer(0) + integer(1) + string(b"") + form + width
    return _SEGMENT + integer(length) + integer(1) + width, entry


def _shape(shape: Sequence[int]) -> bytes:
    return integer(len(shape)) + b"".join(map(integer, shape))


def kind_digest(kind: Kind, algorithm: Algorithm, names: Sequence[bytes], digests: Sequence[bytes]) -> bytes:
    """The root of one kind: SHA-256 over names and entries' digests, which are given in order of name.

    An entry that is undecided has an empty digest.
    """
    head = domain(b"replica-kind") + string(kind.value.encode()) + string(algorithm.value.encode())
    # By columns: there may be very many.
    rows = zip(map(_length, map(len, names)), names, map(_length, map(len, digests)), digests, strict=True)
    return _sha256(head + integer(len(names)) + b"".join(chain.from_iterable(rows)))


def state_digest(roots: Mapping[Kind, bytes]) -> bytes:
    """One digest over the roots of these kinds, in the order of their names: SHA-256."""
    fields = [string(kind.value.encode()) + string(root) for kind, root in sorted(roots.items())]
    return _sha256(domain(b"replica") + integer(len(fields)) + b"".join(fields))
