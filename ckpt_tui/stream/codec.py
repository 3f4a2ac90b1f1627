"""Messages to lines and back. A line has at most 256 KiB, is valid UTF-8, and holds no NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..facts.agreement import Agreement
from ..facts.cached import CachedFile, CachedFolder, CacheReport
from ..facts.scan import ScanResult
from ..present.safe import is_all_safe, is_plain
from .messages import CachePart, Command, DrillRow, DrillState, Envelope, Message, Mode, ResultPart, Row, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..facts.agreement import DifferingSegment

R = TypeVar("R")

MAX_LINE = 256 * 1024
#: Characters of a result in one line: each takes at most four bytes once it is escaped.
_RESULT_CHARS = 60_000
#: Bytes of rows in one slice of a snapshot, well under a line.
_SLICE_BYTES = 128 * 1024

_encoder = msgspec.json.Encoder()
_envelopes = msgspec.json.Decoder(Envelope)
_commands = msgspec.json.Decoder(Command)


class _Numbered(msgspec.Struct):
    """An envelope whose message is not looked at."""

    seq: int


_numbers = msgspec.json.Decoder(_Numbered)


class BadLineError(ValueError):
    """A line that is no message of this protocol, or a message that may not become a line."""


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, msgspec.Struct):
        return all(_finite(getattr(value, field)) for field in value.__struct_fields__)
    if isinstance(value, tuple):
        return all(map(_finite, value))
    return True


def encode(seq: int, message: Message) -> bytes:
    """One line. Raises BadLineError for a number that JSON has not, and for a line that is too long."""
    if not _finite(message):
        raise BadLineError(f"{type(message).__name__} holds a number that is not finite")
    line = _encoder.encode(Envelope(seq, message)) + b"\n"
    if len(line) > MAX_LINE:
        raise BadLineError(f"{type(message).__name__} takes {len(line):,} bytes")
    return line


def decode(line: bytes) -> Envelope:
    """The message of a line; `message` is None where its type or shape is not known here."""
    try:
        return _envelopes.decode(line)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadLineError(str(error)) from error
    try:
        return Envelope(_numbers.decode(line).seq, None)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadLineError(str(error)) from error


def encode_command(command: Command) -> bytes:
    """A command as one line."""
    return _encoder.encode(command) + b"\n"


def decode_command(line: bytes) -> Command | None:
    """The command of a line, or None where it is not known."""
    try:
        return _commands.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def slices(rows: Iterable[Row]) -> Iterator[Snapshot]:
    """Everything known as slices of a snapshot; at least one, so that a reader knows that it has it all."""
    packs = list(_packs(rows))
    for part, pack in enumerate(packs):
        yield Snapshot(part=part, parts=len(packs), rows=tuple(pack))


def _packs(rows: Iterable[R]) -> Iterator[list[R]]:
    """Rows in packs that each fit a line; at least one, which may be empty."""
    pack: list[R] = []
    room = _SLICE_BYTES
    for row in rows:
        size = len(_encoder.encode(row))
        if size > room and pack:
            yield pack
            pack, room = [], _SLICE_BYTES
        pack.append(row)
        room -= size
    yield pack


def split_result(result: ScanResult | Agreement) -> Iterator[ResultPart]:
    """A result as parts that each fit a line."""
    mode = Mode.SCAN if isinstance(result, ScanResult) else Mode.RANKS
    text = _encoder.encode(result).decode()
    parts = -(-len(text) // _RESULT_CHARS)
    for part in range(parts):
        piece = text[part * _RESULT_CHARS : (part + 1) * _RESULT_CHARS]
        yield ResultPart(mode=mode, part=part, parts=parts, text=piece)


def split_report(report: CacheReport, edition: int) -> Iterator[CachePart]:
    """What the cache holds, as parts that each fit a line."""
    packs = list(_packs([*report.folders, *report.files]))
    head = msgspec.structs.replace(report, folders=(), files=())
    for part, pack in enumerate(packs):
        yield CachePart(
            edition=edition,
            part=part,
            parts=len(packs),
            head=None if part else head,
            folders=tuple(row for row in pack if isinstance(row, CachedFolder)),
            files=tuple(row for row in pack if isinstance(row, CachedFile)),
        )


def join_report(parts: Iterable[CachePart]) -> CacheReport | None:
    """The report that `split_report` was given; the parts in their order. None where its head is missing."""
    pieces = tuple(parts)
    if pieces[0].head is None:
        return None
    folders = tuple(folder for piece in pieces for folder in piece.folders)
    return msgspec.structs.replace(
        pieces[0].head, folders=folders, files=tuple(file for piece in pieces for file in piece.files)
    )


def split_drill(row: DrillRow) -> Iterator[DrillRow]:
    """An answer as slices that each fit a line; a segment whose name alone does not is counted in `more`."""
    if len(_encoder.encode(row.drill)) > _SLICE_BYTES:
        yield DrillRow(place=row.place, state=DrillState.FAILED, error="the answer is too long")
        return
    pieces: list[list[DifferingSegment]] = [[]]
    room, lost = _SLICE_BYTES, 0
    for segment in row.segments:
        size = len(_encoder.encode(segment))
        if size > _SLICE_BYTES:
            lost += 1
            continue
        if size > room:
            pieces.append([])
            room = _SLICE_BYTES
        pieces[-1].append(segment)
        room -= size
    for part, piece in enumerate(pieces):
        last = part == len(pieces) - 1
        yield msgspec.structs.replace(
            row,
            part=part,
            segments=tuple(piece),
            state=row.state if last else DrillState.PENDING,
            more=row.more + lost if last else 0,
        )


def join_drill(before: DrillRow | None, row: DrillRow) -> DrillRow | None:
    """What is known of a place with one more slice; None for a slice that does not follow what is there."""
    if row.part == 0:
        return row
    if before is None or before.part != row.part - 1:
        return None
    return msgspec.structs.replace(row, segments=before.segments + row.segments)


def join_result(parts: Iterable[ResultPart]) -> ScanResult | Agreement:
    """The result that `split_result` was given; the parts in their order. Raises BadLineError for what is none.

    That it holds nothing but text that may be shown can only be told of the whole, however its parts have come.
    """
    pieces = tuple(parts)
    if not pieces:
        raise BadLineError("a result of no parts")
    text = "".join(piece.text for piece in pieces)
    kind: type[ScanResult | Agreement] = ScanResult if pieces[0].mode is Mode.SCAN else Agreement
    try:
        result = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadLineError(str(error)) from error
    # JSON without a backslash stands for itself: then there is no need to look at every text.
    if not is_plain(text) and not is_all_safe(result):
        raise BadLineError("a result with text that may not be shown")
    return result
