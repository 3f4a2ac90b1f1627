"""Aligned columns and wrapped lines in plain text. Pure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What lines keep to where their words allow it.
WIDTH = 100
#: A cell that is wider than this pushes its own row aside and no other.
_WIDEST = 60


def width(text: str) -> int:
    """The columns that a terminal gives to a text."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in {"W", "F"} else 1 for char in text)


def table(rows: Sequence[Sequence[str]], align: str, indent: int = 2) -> list[str]:
    """Rows in columns; `align` holds `<` or `>` for each. Columns that are empty in all rows fall away."""
    used = [column for column in range(len(align)) if any(row[column] for row in rows)]
    widths = {column: max(min(width(row[column]), _WIDEST) for row in rows) for column in used}
    lines = []
    for row in rows:
        cells = []
        for column in used:
            pad = " " * (widths[column] - width(row[column]))
            cells.append(pad + row[column] if align[column] == ">" else row[column] + pad)
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return lines


def wrapped(label: str, text: str, indent: int = 2, hang: int | None = None) -> list[str]:
    """`label  text`, its further lines below the text. Words are never broken: a name stays one piece."""
    first = " " * indent + label
    further = " " * (hang if hang is not None else len(first))
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
