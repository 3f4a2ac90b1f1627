"""What ranks tell each other of their replicas: a short vote, and more only where votes differ.

No pickle: votes and outlines are packed, tables are typed msgpack. Whatever does not read as one of these makes its
rank undecided.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import xxhash

from ..facts.base import Fact
from ..facts.scan import NotCompared
from ..present.safe import escape, is_safe
from .digests import name_bytes
from .kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Digest of the call, root of all that is compared, and whether nothing of it is undecided.
_VOTE = struct.Struct("<16s32s?")
#: Whether it failed, the kinds in which something is undecided (a bit each), entries, bytes, entries without data, wall
#: time in seconds, host; a root of 32 bytes for each kind follows.
_OUTLINE = struct.Struct("<?BQQQd64s")
_ROOT = 32
_NO_ROOT = bytes(_ROOT)
_OUTLINE_BYTES = _OUTLINE.size + _ROOT * len(Kind)


class BadMessage(Exception):
    """Bytes that no rank of this version sends, in words."""


class Vote(NamedTuple):
    """What every rank says first. Where calls and roots are equal, and nothing is undecided, the ranks agree."""

    #: What the call was given, and the digests' layout: 16 bytes.
    call: bytes
    root: bytes
    whole: bool

    def pack(self) -> bytes:
        """49 bytes, whatever is compared."""
        return _VOTE.pack(*self)

    @classmethod
    def unpack(cls, raw: bytes) -> Vote:
        """Raises BadMessage."""
        if len(raw) != _VOTE.size:
            raise BadMessage("sent no vote")
        return cls(*_VOTE.unpack(raw))


def settled(votes: Sequence[Vote]) -> bool:
    """Whether all were called alike, decided everything, and hold the same."""
    return all(vote.whole and vote == votes[0] for vote in votes)


@dataclass(frozen=True, slots=True)
class Outline:
    """What a rank holds, by kind: told where the votes do not settle it."""

    roots: Mapping[Kind, bytes]
    #: It could not make up its mind at all; its table says why.
    failed: bool
    #: Kinds with an entry that could not be read.
    undecided: frozenset[Kind]
    entries: int
    size: int
    #: Tensors that have no data to compare.
    without_data: int
    time: float
    host: str

    def pack(self) -> bytes:
        """A fixed number of bytes."""
        bits = sum(1 << place for place, kind in enumerate(Kind) if kind in self.undecided)
        host = self.host.encode("utf-8", "replace")[:64]
        head = _OUTLINE.pack(self.failed, bits, self.entries, self.size, self.without_data, self.time, host)
        return head + b"".join(self.roots.get(kind, _NO_ROOT) for kind in Kind)

    @classmethod
    def unpack(cls, raw: bytes) -> Outline:
        """Raises BadMessage."""
        if len(raw) != _OUTLINE_BYTES:
            raise BadMessage("sent no outline of what it holds")
        failed, undecided, count, size, without, time, host = _OUTLINE.unpack_from(raw)
        roots = {
            kind: raw[at : at + _ROOT] for kind, at in zip(Kind, range(_OUTLINE.size, len(raw), _ROOT), strict=True)
        }
        name = host.rstrip(b"\0").decode("utf-8", "ignore")
        return cls(
            roots={kind: root for kind, root in roots.items() if root != _NO_ROOT},
            failed=failed,
            undecided=frozenset(kind for place, kind in enumerate(Kind) if undecided >> place & 1),
            entries=count,
            size=size,
            without_data=without,
            time=time if 0 <= time < 1e12 else 0.0,
            host=name if is_safe(name) else "?",
        )


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One entry in a table. Without a digest it is undecided, and `note` says why; else `note` is a value's text."""

    name: str
    digest: bytes
    schema: str
    length: int
    note: str = ""


class Told(Fact, frozen=True, kw_only=True):
    """What a rank says where votes differ: how it was called, why it failed, and its entries by kind."""

    call: dict[str, str]
    error: str | None = None
    kinds: dict[Kind, tuple[Row, ...]] = msgspec.field(default_factory=dict)
    left_out: tuple[NotCompared, ...] = ()


class PartSide(Fact, frozen=True, kw_only=True):
    """One part of a tensor to be looked into: what it is made of, and the digests of its leaves end to end."""

    dtype: str
    shape: tuple[int, ...]
    length: int
    leaves: bytes


T = TypeVar("T")
#: Characters of a name that travel; a longer one is told by its beginning and its digest.
_NAME = 4096


def shown_name(name: str) -> str:
    """A name as it travels: escaped text."""
    text = escape(name)
    if len(text) <= _NAME:
        return text
    digest = xxhash.xxh3_128_hexdigest(name_bytes(name))
    return f"{text[:_NAME]}… {len(name):,} characters, xxh3 {digest}"


def encode(message: object) -> bytes:
    """A message in msgpack."""
    return msgspec.msgpack.encode(message)


def decode(raw: bytes, kind: type[T]) -> T:
    """A message of this type, every text in it fit to be shown. Raises BadMessage."""
    try:
        message = msgspec.msgpack.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise BadMessage("sent what cannot be read") from error
    if not _safe(msgspec.to_builtins(message, builtin_types=(bytes,))):
        raise BadMessage("sent names with control characters")
    return message


def _safe(value: object) -> bool:
    if isinstance(value, str):
        return is_safe(value)
    if isinstance(value, dict):
        return all(_safe(key) and _safe(held) for key, held in value.items())
    if isinstance(value, list | tuple):
        return all(map(_safe, value))
    return True
