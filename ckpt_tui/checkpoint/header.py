"""The safetensors header, parsed from bytes alone: where each tensor lies, and every way in which the layout lies.

What `safetensors` refuses is never `good` here, with one exception on purpose: a dtype that nobody knows yet is a
warning, because its bytes are covered by its offsets all the same. Stricter than the reference are only: a tensor's
name may not appear twice, an entry is an object, and nothing nests deeper than 64 levels.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from ..present.safe import escape, is_plain
from ..present.units import count
from .geometry import Placed, Problem, entry_problems, layout_problems, unknown_dtypes
from .model import Header, TensorEntry

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


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a header's bytes say: its tensors when the layout holds, else every problem with it."""

    header: Header | None
    problems: tuple[Problem, ...] = ()
    #: Usable, but the user should know.
    warnings: tuple[Problem, ...] = ()


class _Entry(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRIES = msgspec.json.Decoder(list[_Entry])
_METADATA = msgspec.json.Decoder(dict[str, str] | None)


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
    body = raw[PREFIX:]
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise HeaderError(f"invalid UTF-8 at byte {PREFIX + error.start:,} of the header") from None
    tensors, metadata, problems = _fast(body) or _careful(text)
    plain = is_plain(text)
    del text, body
    if not problems:
        tensors.sort()
        problems = [*entry_problems(tensors)] or [*layout_problems(tensors)]
    warnings = (*_over_limit(len(raw) - PREFIX), *unknown_dtypes(tensors))
    if problems:
        return Parsed(None, tuple(problems), warnings)
    start = len(raw)
    dtypes = {dtype: escape(dtype) for dtype in {tensor.dtype for tensor in tensors}}
    # Most headers hold nothing that needs escaping: one look at the whole instead of one at each name.
    safe_name = str if plain else escape
    entries = tuple(
        [
            TensorEntry(safe_name(name), dtypes[dtype], shape, start + begin, end - begin)
            for begin, end, name, dtype, shape in tensors
        ]
    )
    safe = {escape(key): escape(value) for key, value in metadata.items()}
    return Parsed(Header(raw, entries, safe), (), warnings)


_Content = tuple[list[Placed], dict[str, str], list[Problem]]

# A minus sign where a number may begin: `-0` is an integer to most parsers and none to the reference.
_NEGATIVE = (b"[-", b",-", b" -", b"\n-", b"\r-", b"\t-")


def _fast(body: bytes) -> _Content | None:
    """A header as every writer makes it, at native speed; None leaves anything odd to `_careful`.

    Without escapes, the count of each key's literal equals the number of entries exactly when no name and no field
    appears twice, so a parser that keeps the last of two equal keys cannot hide one.
    """
    if b"\\" in body or (b"-" in body and any(mark in body for mark in _NEGATIVE)):
        return None
    try:
        top = _TOP.decode(body)
        metadata = _METADATA.decode(top.pop("__metadata__", b"null")) or {}
        entries = _ENTRIES.decode(b"[" + b",".join(top.values()) + b"]")
    except (msgspec.MsgspecError, RecursionError):
        return None
    keys = (b'"dtype"', b'"shape"', b'"data_offsets"')
    if any(body.count(key) != len(entries) for key in keys) or body.count(b'"__metadata__"') > 1:
        return None
    tensors = [
        Placed(*entry.data_offsets, name, entry.dtype, entry.shape) for name, entry in zip(top, entries, strict=True)
    ]
    return tensors, metadata, []


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
    return tensors, metadata, problems


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
