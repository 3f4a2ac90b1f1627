"""What ranks say to each other: typed, versioned, of bounded length, and never a pickle.

Text from a peer must be what `present.safe` could have made, or the whole message is refused.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..facts.agreement import DifferingSegment, Fingerprint, SegmentTable, TableRow
from ..facts.base import Fact
from ..facts.drill import Drill
from ..facts.status import RankStatus
from ..present.safe import is_all_safe
from ..stream.messages import FileRow, Place, Survey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Rises whenever a message below changes in a way that an older reader would get wrong.
PROTOCOL = 3
#: No message may be longer than this.
MAX_BYTES = 64 << 20
#: No hello may be longer: it is quoted to people where ranks do not fit.
MAX_HELLO = 16 << 10

T = TypeVar("T")


class BadMessage(Exception):
    """A message that cannot be what this version of ours would send."""


class Hello(Fact, frozen=True, kw_only=True):
    """What a rank says when it comes. Fields may be added; those here must stay readable to every later version."""

    protocol: int
    layout: int
    tool: str
    rank: int
    world_size: int
    host: str
    pid: int
    #: Random, in hex: its part of the session's nonce, and the name of its own keys.
    token: str
    #: `processes.process_space()` and `processes.start_time()` of the rank.
    space: str = ""
    started: int = 0
    #: The address from which it reaches the store: where its Gloo will listen.
    address: str = ""
    #: Why it could not do at the end what it was started for: then no session is made.
    refusal: str = ""
    #: Whether it stays ready after the verdict, to be asked; and whether somebody sits there who may ask.
    holds: bool = False
    screen: bool = False
    #: Settings that change the course of a session, and so must be equal on all ranks.
    course: tuple[str, ...] = ()
    #: How many more files it may open; None where an older version did not say.
    room: int | None = None
    #: The store handed out its number.
    handed_out: bool = False


class Opening(Fact, frozen=True, kw_only=True):
    """How a meeting ended, decided once for all: a usage error, or a start without the ranks that had not come."""

    usage: str | None = None
    nonce: str = ""
    absent: dict[int, str] = msgspec.field(default_factory=dict)
    #: The hellos of the members, packed.
    roster: bytes = b""


class Pulse(Fact, frozen=True, kw_only=True):
    """One rank's heartbeat. `left`: why it is leaving, before there is a verdict."""

    status: RankStatus
    left: str | None = None


class Break(Fact, frozen=True, kw_only=True):
    """Why a session cannot go on as it was, decided once for all: the ranks that are lost, each with what is known."""

    absent: dict[int, str] = msgspec.field(default_factory=dict)
    reason: str = ""


class Present(Fact, frozen=True, kw_only=True):
    """Whose messages of one step count, decided once for all; of the others, what is known.

    `runs`: first and last rank of each unbroken run: every rank reads this, and they may be thousands.
    """

    runs: tuple[tuple[int, int], ...]
    absent: dict[int, str] = msgspec.field(default_factory=dict)


class Answer(Fact, frozen=True, kw_only=True):
    """A rank's fingerprint, and when it was given. `unfinished`: why it had to stop before it knew its content."""

    fingerprint: Fingerprint
    at: float
    unfinished: str | None = None


class Files(Fact, frozen=True, kw_only=True):
    """A rank's file table."""

    rows: tuple[TableRow, ...]


class Tables(Fact, frozen=True, kw_only=True):
    """The segment tables of those files of a rank that differ from another's."""

    tables: tuple[SegmentTable, ...]


class Digests(Fact, frozen=True, kw_only=True):
    """For each segment that is looked into, the digests of a rank's leaves, end to end; empty: not known."""

    leaves: tuple[bytes, ...]


class Seen(Fact, frozen=True, kw_only=True):
    """One leaf, read again, as `agreement.descent.Look` has it."""

    data: bytes = b""
    same: bool = True
    error: str | None = None
    doubt: str | None = None


class Looks(Fact, frozen=True, kw_only=True):
    """The leaves that a rank had to read again."""

    looks: tuple[Seen, ...]


class Listed(Fact, frozen=True, kw_only=True):
    """A session that has begun, as the store's directory names it. Must stay readable to every later version."""

    protocol: int
    tool: str
    scope: str
    call: int
    world_size: int


class Shelf(Fact, frozen=True, kw_only=True):
    """What a rank shows of its files to viewers: its survey, and the edition of each page of rows; 0: not put yet."""

    survey: Survey
    editions: tuple[int, ...]


class Page(Fact, frozen=True, kw_only=True):
    """Some of a rank's file rows."""

    rows: tuple[FileRow, ...]


class Question(Fact, frozen=True, kw_only=True):
    """What is asked of ranks that are held ready, or that they are let go.

    `token` makes it unlike any other. `rank` asks; null for a process that is none.
    """

    token: str
    rank: int | None = None
    place: Place | None = None
    release: str | None = None


class Party(Fact, frozen=True, kw_only=True):
    """Who answers one question, decided once for all: for each side one rank, and the one that tells the answer."""

    speakers: dict[str, int]
    lead: int


class Told(Fact, frozen=True, kw_only=True):
    """The answer to a question: a file's differing segments and how many more there are, or a drill; or an error."""

    segments: tuple[DifferingSegment, ...] = ()
    more: int = 0
    drill: Drill | None = None
    error: str = ""


class Step(IntEnum):
    """The exchanges of a session, in the order in which they may come: ENTRIES comes after HEADERS."""

    VOTE = 1
    IDENTITY = 2
    HEADERS = 3
    CONTENT = 4
    FILES = 5
    SEGMENTS = 6
    LEAVES = 7
    BYTES = 8
    ENTRIES = 9


_encoder = msgspec.msgpack.Encoder()


def encode(message: Fact) -> bytes:
    """The message as bytes."""
    return _encoder.encode(message)


def pack(messages: Sequence[bytes]) -> bytes:
    """Many messages as one, compressed: what ranks that agree say is nearly the same."""
    return zlib.compress(_encoder.encode(messages), 1)


def unpack(raw: bytes) -> tuple[bytes, ...]:
    """The messages in what `pack` made; BadMessage where it made none of it, or more than one message may hold."""
    inflate = zlib.decompressobj()
    try:
        plain = inflate.decompress(raw, MAX_BYTES)
        if not inflate.eof:
            raise BadMessage("too long, or cut short")
        return msgspec.msgpack.decode(plain, type=tuple[bytes, ...])
    except (zlib.error, msgspec.DecodeError) as error:
        raise BadMessage(type(error).__name__) from error


def decode(raw: bytes, kind: type[T]) -> T:
    """The message in the bytes; BadMessage if it is too long, of another shape, or holds text that may not be shown."""
    if len(raw) > MAX_BYTES:
        raise BadMessage(f"{len(raw)} bytes long")
    try:
        message = msgspec.msgpack.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadMessage(type(error).__name__) from error
    if not is_all_safe(message):
        raise BadMessage("text that may not be shown")
    return message


def decode_all(given: Mapping[int, bytes], kind: type[T]) -> dict[int, T]:
    """What those ranks told that told anything which can be read."""
    told: dict[int, T] = {}
    for rank, raw in given.items():
        if raw:
            try:
                told[rank] = decode(raw, kind)
            except BadMessage:
                continue
    return told


def encode_line(message: Hello | Listed) -> bytes:
    """A message as one line of JSON, which any version can read."""
    return msgspec.json.encode(message) + b"\n"


def decode_line(line: bytes, kind: type[T]) -> T:
    """The message in a line; BadMessage where it is none."""
    if len(line) > MAX_HELLO:
        raise BadMessage(f"{len(line)} bytes long")
    try:
        message = msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadMessage(type(error).__name__) from error
    if not is_all_safe(message):
        raise BadMessage("text that may not be shown")
    return message
