"""How an untrusted name becomes text: one line, nothing invisible, and reversible.

The form is Python's own: `\\n`, `\\t`, `\\x1b`, `\\u202e`, `\\udcff` for a byte that is not UTF-8, and `\\\\` for a
backslash. It is injective, so that two names are equal exactly when their escaped forms are. It says nothing about
markup: Rich and Textual get names as `Text`, HTML and Markdown escape once more.
"""

from __future__ import annotations

import os
import re
import unicodedata

import msgspec

from ..facts.outcome import CkptError

# Other (Cc, Cf, Cs, Co, Cn) and separators that break or hide: line, paragraph, and every space but the plain one.
_UNSAFE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_ESCAPE = r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([\\nrt]))"
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LONG = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


def _escape_char(char: str) -> str:
    short = _SHORT.get(char)
    if short is not None:
        return short
    if char == " " or unicodedata.category(char) not in _UNSAFE_CATEGORIES:
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def is_plain(text: str) -> bool:
    """Whether nothing in a text needs escaping, told at native speed; false for some texts beyond ASCII too."""
    return text.isascii() and text.isprintable() and "\\" not in text


def escape(name: str) -> str:
    """The name as one line of safe text. `name` may hold surrogate escapes, as `os.fsdecode` gives them."""
    if is_plain(name):
        return name
    return "".join(map(_escape_char, name))


def unescape(text: str) -> str:
    """The name that `escape` was given."""

    def char(match: re.Match[str]) -> str:
        two, four, eight, short = match.groups()
        return _LONG[short] if short else chr(int(two or four or eight, 16))

    return re.sub(_ESCAPE, char, text) if "\\" in text else text


def is_safe(text: str) -> bool:
    """Whether text from a peer is what `escape` could have made, and so may be shown."""
    try:
        return escape(unescape(text)) == text
    except (ValueError, OverflowError):
        return False


def is_all_safe(value: object) -> bool:
    """Whether all text in a message is safe to show. A loop: a peer chooses how deep and long it is."""
    rest: list[object] = [msgspec.to_builtins(value, builtin_types=(bytes,))]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            if not is_safe(item):
                return False
        elif isinstance(item, dict):
            rest.extend(item.keys())
            rest.extend(item.values())
        elif isinstance(item, list | tuple):
            rest.extend(item)
    return True


def from_bytes(raw: bytes) -> str:
    """A file name's bytes as safe text."""
    return escape(os.fsdecode(raw))


def error_text(error: BaseException) -> str:
    """An exception as one safe line: errno's name and words for an OSError, with what was noted of it; else its text.

    What we raise ourselves names things as escaped text already, and is not escaped twice.
    """
    if isinstance(error, OSError) and error.errno is not None:
        import errno

        code = errno.errorcode.get(error.errno, str(error.errno))
        return ", ".join((f"{code}: {os.strerror(error.errno)}", *map(escape, getattr(error, "__notes__", ()))))
    text = str(error) or type(error).__name__
    return text if isinstance(error, CkptError) and is_safe(text) else escape(text)


def unexpected(error: BaseException) -> str:
    """What to say of an exception that nobody foresaw, with the place that a report of it should name."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code if trace is not None else None
    where = f" ({escape(code.co_filename.rpartition(os.sep)[2])}:{trace.tb_lineno})" if code and trace else ""
    return f"this should not have happened: {type(error).__name__}: {error_text(error)}{where}"
