"""What a report says, before it is Markdown or HTML: headings, tables, lists and blocks of text that is not obeyed.

Text in here is plain. Each format escapes it on its own way out; names and digests are `Code`, so that they are set
apart and never read as markup.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Code(NamedTuple):
    """A name, digest or path: shown letter by letter."""

    text: str


Inline = str | Code
Line = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading below the title: level 2, 3 ..."""

    level: int
    line: Line


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A line of text; `tone` as in `present.glyphs`."""

    line: Line
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; `align` holds `<` or `>` a column. What was left out is counted in a last line."""

    head: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    align: str
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Items one below the other."""

    items: tuple[Line, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines as they are: a command to paste, bytes in hex."""

    text: str
    language: str = "text"


class Cell(NamedTuple):
    """One rank's hold of one file: a letter, a tone, and the words for it."""

    letter: str
    tone: str
    words: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """Ranks by files: a picture for formats that can draw, and nothing for the others."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    caption: str


Part = Heading | Paragraph | Table | Listing | Block | Matrix


@dataclass(frozen=True, slots=True)
class Document:
    """A report: its title, the one word and its tone, the sentence beside it, and all the rest in order."""

    title: str
    word: str
    tone: str
    sentence: str
    parts: tuple[Part, ...] = field(default=())


class Room(NamedTuple):
    """How many of a kind are written out before the rest is counted."""

    files: int = 2000
    segments: int = 64
    drills: int = 16
    ranks: int = 5000
    items: int = 2000
    #: Characters of a name or a sentence.
    characters: int = 100_000

    def cut(self, text: str) -> str:
        """A text that is too long without its middle, which is counted."""
        more = len(text) - self.characters
        if more <= 0:
            return text
        half = self.characters // 2
        return f"{text[:half]} … {more:,} more characters … {text[-half:]}"


def line(*parts: Inline) -> Line:
    """A line without its empty parts."""
    return tuple(part for part in parts if part not in {"", Code("")})
