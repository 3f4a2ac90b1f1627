"""Facts as JSON, one line each, and back with every type checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..facts.agreement import AGREEMENT_SCHEMA, Agreement
from ..facts.outcome import UsageError
from ..facts.scan import SCAN_SCHEMA, ScanResult
from ..present.safe import error_text

if TYPE_CHECKING:
    from ..facts.base import Fact

Result = ScanResult | Agreement
T = TypeVar("T", ScanResult, Agreement)

_TYPES: dict[str, type[Result]] = {SCAN_SCHEMA: ScanResult, AGREEMENT_SCHEMA: Agreement}


class _Head(msgspec.Struct):
    schema: str | None = None


def encode(fact: Fact) -> bytes:
    """The fact as one line with its end. What is not known and may be left out is left out; nothing else is."""
    return msgspec.json.encode(fact) + b"\n"


def decode(data: bytes, name: str) -> Result:
    """The scan or agreement that a file holds; `name` is the file's, as escaped text, for the error."""
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
        kind = _TYPES.get(schema or "")
        result = None if kind is None else msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{name}: holds no result of ckpt-tui ({error_text(error)})") from error
    if result is None:
        raise UsageError(f"{name}: holds no result of ckpt-tui; known are {' and '.join(_TYPES)}")
    if not _printable(msgspec.to_builtins(result)):
        raise UsageError(f"{name}: holds names with control characters, which no result of ckpt-tui has")
    return result


def decode_as(data: bytes, kind: type[T], name: str) -> T:
    """As `decode`, where only one kind will do."""
    result = decode(data, name)
    if not isinstance(result, kind):
        raise UsageError(f"{name}: holds {result.schema}, where another kind of result is needed")
    return result


def _printable(value: object) -> bool:
    """Whether no text in there could be obeyed by a terminal: a file may have been written by anybody."""
    if isinstance(value, str):
        return value.isprintable()
    if isinstance(value, dict):
        return all(key.isprintable() and _printable(held) for key, held in value.items())
    if isinstance(value, list | tuple):
        return all(map(_printable, value))
    return True
