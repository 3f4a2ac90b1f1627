"""Python values beside the tensors (a learning rate, a step count, betas) as bytes that are equal for equal bits."""

from __future__ import annotations

import struct
from typing import Any

from ..digest.layout import integer, string
from ..present.safe import escape
from .digests import name_bytes

#: Characters of a value that are shown.
_SHOWN = 200
#: Lists and dicts may lie in one another this deep.
_DEEPEST = 32


class Unreadable(Exception):
    """What this is cannot be read, in words; it is undecided, and nothing else is."""


def encoded(value: object, depth: int = 0) -> bytes:
    """The type and bits of a value, unambiguously: 1 is not 1.0, 0.0 not -0.0, and NaN equals the same NaN.

    Numbers, text, bytes, None, and tuples, lists, sets and dicts of them; a dict's order does not count. Raises
    Unreadable for anything else.
    """
    if depth > _DEEPEST:
        raise Unreadable("a value of lists in lists without end")
    if value is None or isinstance(value, bool):
        return string(str(value).encode())
    if isinstance(value, int):
        return _tagged(b"int", f"{value:x}".encode())  # hexadecimal has no limit of digits
    if isinstance(value, float):
        return _tagged(b"float", struct.pack("<d", value))
    if isinstance(value, complex):
        return _tagged(b"complex", struct.pack("<dd", value.real, value.imag))
    if isinstance(value, str):
        return _tagged(b"str", name_bytes(value))
    if isinstance(value, bytes | bytearray):
        return _tagged(b"bytes", bytes(value))
    return _container(value, depth + 1)


def _container(value: object, depth: int) -> bytes:
    if isinstance(value, dict):
        pairs = sorted((encoded(key, depth), encoded(held, depth)) for key, held in value.items())
        return _tagged(b"dict", integer(len(pairs)) + b"".join(string(key) + string(held) for key, held in pairs))
    if isinstance(value, list | tuple | set | frozenset):
        items = [encoded(held, depth) for held in value]
        tag = b"list" if isinstance(value, list) else b"tuple" if isinstance(value, tuple) else b"set"
        if tag == b"set":
            items.sort()
        return _tagged(tag, integer(len(items)) + b"".join(map(string, items)))
    if _is_torch_word(value):
        return _tagged(b"torch", str(value).encode())
    raise Unreadable(f"a value of type {escape(type(value).__qualname__)}")


def _is_torch_word(value: object) -> bool:
    """Whether it is a dtype, device, layout or memory format, whose text is all there is to it."""
    kind: Any = type(value)
    return kind.__module__ == "torch" and kind.__name__ in {"dtype", "device", "layout", "memory_format"}


def _tagged(tag: bytes, raw: bytes) -> bytes:
    return string(tag) + string(raw)


def shown(value: object) -> str:
    """A value for people, as escaped text on one line."""
    try:
        text = escape(repr(value))
    except Exception:  # noqa: BLE001 - a repr is anybody's code, and too long an int has none
        text = escape(type(value).__qualname__)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} and {len(text) - _SHOWN // 2:,} more characters"
