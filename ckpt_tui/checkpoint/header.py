"""The safetensors header, parsed from bytes alone: where each tensor lies, and every way in which the layout lies.

What `safetensors` refuses is never `good` here, with one exception on purpose: a dtype that nobody knows yet is a
warning, because its bytes are covered by its offsets all the same. Stricter than the reference are only: a tensor's
name may not appear twice, an entry is an object, and nothing nests deeper than 64 levels.
"""

from __future__ import annotations

import re
import struct
from itertools import chain
from operator import attrgetter, sub
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..native import header_columns
from ..native.names import are_unique, packed
from ..present.safe import escape, is_plain
from ..present.units import count
from .columns import Table
from .geometry import DTYPE_BITS, Placed, Problem, entry_problems, is_sound, layout_problems, placed, unknown_dtypes
from .model import Header, Tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The reference library reads and writes no header beyond this.
REFERENCE_LIMIT = 100_000_000
#: Beyond this a header is not read at all.
HARD_LIMIT = 256 << 20
PREFIX = 8
_NESTING = 64


class HeaderError(ValueError):
    """The bytes are no safetensors header; the text says why."""


class Parsed(NamedTuple):
    """What a header's bytes say: its tensors when the layout holds, else every problem with it."""

    header: Header | None
    problems: tuple[Problem, ...] = ()
    #: Usable, but the user should know.
    warnings: tuple[Problem, ...] = ()


class _Entry(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


_ENTRIES = msgspec.json.Decoder(dict[str, _Entry])
_METADATA = msgspec.json.Decoder(dict[str, str])
#: Quotation marks of an entry: its name, three fields, and the dtype.
_QUOTES = 10
_SPACE = b" \t\n\r"
_METADATA_FIRST = re.compile(rb'[ \t\n\r]*\{[ \t\n\r]*"__metadata__"[ \t\n\r]*:[ \t\n\r]*(?=\{)')
_dtypes, _shapes, _ranges = attrgetter("dtype"), attrgetter("shape"), attrgetter("data_offsets")


def header_length(prefix: bytes, file_size: int) -> int:
    """How many bytes of JSON follow the length prefix; HeaderError where that cannot be."""
    if file_size == 0:
        raise HeaderError("empty file")
    if len(prefix) < PREFIX:
        raise HeaderError(f"{count(file_size, 'byte')}, too few for the 8-byte length of a header")
    length = int(struct.unpack("<Q", prefix[:PREFIX])[0])
    if length == 0:
        raise HeaderError("the header's length is 0")
    if length > file_size - PREFIX:
        raise HeaderError(
            f"the header is cut: its length says {count(length, 'byte')}, the file has {count(file_size, 'byte')}"
        )
    if length > HARD_LIMIT:
        raise HeaderError(f"a header of {count(length, 'byte')}: more than {HARD_LIMIT:,} are not read")
    return length


def parse_header(raw: bytes) -> Parsed:
    """Parse the length prefix and the JSON after it, as they lie in the file; HeaderError where they are no header."""
    if len(raw) != PREFIX + header_length(raw, len(raw)):
        raise HeaderError("the header is not as long as its length says")
    if header := _clean(raw):
        return Parsed(header, (), tuple(_over_limit(len(raw) - PREFIX)))
    body = raw[PREFIX:]
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise HeaderError(f"invalid UTF-8 at byte {PREFIX + error.start:,} of the header") from None
    written, metadata, problems = _fast(body) or _careful(text)
    if not problems and not is_sound(written):
        written, problems = _problems(written)
    warnings = (*_over_limit(len(raw) - PREFIX), *unknown_dtypes(written))
    if problems:
        return Parsed(None, tuple(problems), warnings)
    begins, ends, names, dtypes, shapes = written.columns
    if not is_plain("".join(chain(names, {*dtypes}))):  # one look at all instead of one at each
        names, dtypes = [*map(escape, names)], [*map(escape, dtypes)]
    offsets = [*map(len(raw).__add__, begins)]
    tensors = Tensors(names, dtypes, shapes, offsets, [*map(sub, ends, begins)])
    return Parsed(Header(raw, tensors, _escaped(metadata)), (), warnings)


def _clean(raw: bytes) -> Header | None:
    """A header with nothing odd or wrong in it, at the speed of compiled code; any other is None."""
    columns = header_columns(raw, PREFIX)
    if columns is None:
        return None
    names, dtypes, shapes, offsets, lengths, kinds, metadata = columns
    if any(dtype not in DTYPE_BITS for dtype, _, _ in kinds):
        return None
    if any(entry_problems(Placed(0, length, "", dtype, shape) for dtype, shape, length in kinds)):
        return None
    if not are_unique(names):
        return None
    try:
        told = _METADATA.decode(metadata)
    except msgspec.DecodeError:  # not UTF-8
        return None
    safe = [*map(escape, names)] if packed(names) is None else names
    return Header(raw, Tensors(safe, dtypes, shapes, offsets, lengths), _escaped(told))


def _escaped(metadata: dict[str, str]) -> dict[str, str]:
    return {escape(key): escape(value) for key, value in metadata.items()}


def _problems(written: Table[Placed]) -> tuple[Table[Placed], list[Problem]]:
    """The entries in the order of the layout, and what is wrong with them."""
    tensors = sorted(written)
    return placed(tensors), [*entry_problems(tensors)] or [*layout_problems(tensors)]


_Content = tuple[Table[Placed], dict[str, str], list[Problem]]

# A minus sign where a number may begin: `-0` is an integer to most parsers and none to the reference.
_NEGATIVE = (b"[-", b",-", b" -", b"\n-", b"\r-", b"\t-")


def _fast(body: bytes) -> _Content | None:
    """A header as every writer makes it, at native speed; None leaves anything odd to `_careful`.

    Without escapes an entry holds ten quotation marks, and more are there exactly when a name or a field appears
    twice: so a parser that keeps the last of two equal keys cannot hide one.
    """
    if b"\\" in body or (b"-" in body and any(mark in body for mark in _NEGATIVE)):
        return None
    try:
        metadata, table = _without_metadata(body)
        top = _ENTRIES.decode(table)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if table.count(b'"') != _QUOTES * len(top) or "__metadata__" in top:
        return None
    entries = top.values()
    begins, ends = zip(*map(_ranges, entries), strict=True) if top else ((), ())
    return Table(Placed, (begins, ends, [*top], [*map(_dtypes, entries)], [*map(_shapes, entries)])), metadata, []


def _without_metadata(body: bytes) -> tuple[dict[str, str], bytes]:
    """The metadata where they come first, as writers put them, and the header without; MsgspecError otherwise.

    No beginning of a JSON object is a whole one, so where one is found it is the metadata: a brace within one of its
    strings cannot end it.
    """
    first = _METADATA_FIRST.match(body)
    if first is None:
        return {}, body
    end = body.find(b"}", first.end()) + 1
    metadata = _METADATA.decode(body[first.end() : end])
    rest = body[end:].lstrip(_SPACE)
    if rest.startswith(b",") and rest[1:].lstrip(_SPACE).startswith(b'"'):
        return metadata, b"{" + rest[1:]
    if rest.startswith(b"}"):
        return metadata, b"{" + rest
    raise msgspec.DecodeError("no object")


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs, in order and with repetitions."""


def _careful(text: str) -> _Content:
    """Any header, with every key kept and every error placed."""
    top = _load(text)
    if not isinstance(top, _Object):
        raise HeaderError("the header is no JSON object")
    tensors: list[Placed] = []
    problems: list[Problem] = []
    metadata: dict[str, str] = {}
    seen: set[str] = set()
    for key, value in top:
        if key in seen:
            word = "__metadata__" if key == "__metadata__" else "tensor name"
            problems.append(Problem(escape(key), f"{word} appears twice: {escape(key)}"))
            continue
        seen.add(key)
        if key == "__metadata__":
            metadata = _metadata(value)
            continue
        entry = _entry(key, value)
        if isinstance(entry, Problem):
            problems.append(entry)
        else:
            tensors.append(entry)
    return placed(tensors), metadata, problems


def _load(text: str) -> Any:
    import json

    def integer(digits: str) -> int | float:
        # As the reference reads them: no integer is `-0`, and none has more digits than 64 bits hold.
        return number(digits) if digits == "-0" or len(digits) > 20 else int(digits)

    def number(digits: str) -> float:
        value = float(digits)
        if value in {float("inf"), float("-inf")}:
            raise HeaderError("a number in the header is out of range")
        return value

    def constant(word: str) -> float:
        raise HeaderError(f"invalid JSON in the header: {word}")

    try:
        loaded = json.loads(
            text, object_pairs_hook=_Object, parse_int=integer, parse_float=number, parse_constant=constant
        )
    except json.JSONDecodeError as error:
        at = PREFIX + len(text[: error.pos].encode())
        raise HeaderError(f"invalid JSON at byte {at:,} of the file: {error.msg}") from None
    except RecursionError:
        raise HeaderError("the header's JSON is nested too deep") from None
    _check_strings_and_nesting(loaded)
    return loaded


def _check_strings_and_nesting(loaded: Any) -> None:
    # Level by level, so that no nesting can exhaust the stack.
    level = [loaded]
    for _ in range(_NESTING):
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                try:
                    value.encode()
                except UnicodeEncodeError:
                    raise HeaderError(f"a string in the header holds half a surrogate pair: {escape(value)}") from None
            elif isinstance(value, _Object):
                for pair in value:
                    below.extend(pair)
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return
        level = below
    raise HeaderError(f"the header's JSON is nested deeper than {_NESTING} levels")


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, _Object) or not all(isinstance(word, str) for _, word in value):
        raise HeaderError("__metadata__ is no object of strings")
    return dict(value)


def _entry(name: str, value: Any) -> Placed | Problem:
    shown = escape(name)
    if not isinstance(value, _Object):
        return Problem(shown, f"the entry of {shown} is no object")
    fields = dict(value)
    for field in ("dtype", "shape", "data_offsets"):
        times = sum(key == field for key, _ in value)
        if times != 1:
            return Problem(shown, f"{shown} has {'no' if not times else 'two'} {field}")
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not isinstance(dtype, str):
        return Problem(shown, f"the dtype of {shown} is no string")
    if not _integers(shape):
        return Problem(shown, f"the shape of {shown} is no list of whole numbers")
    if not _integers(offsets) or len(offsets) != 2:
        return Problem(shown, f"the data_offsets of {shown} are not two whole numbers")
    return Placed(offsets[0], offsets[1], name, dtype, tuple(shape))


def _integers(value: Any) -> bool:
    return isinstance(value, list) and not isinstance(value, _Object) and all(type(item) is int for item in value)


def _over_limit(length: int) -> Iterator[Problem]:
    if length > REFERENCE_LIMIT:
        yield Problem(None, f"the reference library refuses this header ({length:,} > {REFERENCE_LIMIT:,} bytes)")
