"""The Report view: a report's document as lines to read, and the name of the file it goes to. No Markdown is parsed."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import chop_cells

from ...facts.agreement import Agreement
from ...report.document import Block, Code, Heading, Listing, Paragraph, Table
from ...report.saving import SUFFIXES, Format
from .spans import Line, Span, fit, flow, line, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...facts.scan import ScanResult
    from ...report.document import Document, Part
    from ...report.document import Line as Words
    from .charset import Charset

#: How formats are called, and the suffix that a name gets for them.
FORMATS = {Format.MARKDOWN: ("Markdown", ".md"), Format.HTML: ("HTML", ".html"), Format.JSON: ("JSON", ".json")}
_TONES = {"bad": "bad", "warn": "warn", "good": "good"}
#: The text stays as narrow as a page.
_PAGE = 116
#: A column of a table is not made narrower than this.
_NARROW = 6
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def file_name(result: Agreement | ScanResult, format_: Format = Format.MARKDOWN) -> str:
    """A name that says what the report is of: `GLM-5.3-Flash-EXL3-differ.md`."""
    if isinstance(result, Agreement):
        path, word = next((report.path for report in result.ranks if report.path), ""), result.verdict.value
    else:
        path, word = result.checkpoint.repo_id or result.checkpoint.path, "scan"
    base = _NAME.sub("-", path.rstrip("/").rpartition("/")[2]).strip("-.")[:60] or "checkpoint"
    return f"{base}-{word}{FORMATS[format_][1]}"


def format_named(name: str) -> Format | None:
    """The format that a name's suffix asks for."""
    return next((kind for suffix, kind in SUFFIXES.items() if name.lower().endswith(suffix)), None)


def with_format(name: str, format_: Format) -> str:
    """The name with the format's suffix in place of another's."""
    old = max((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), key=len, default="")
    return name[: len(name) - len(old)] + FORMATS[format_][1]


def next_format(format_: Format | None, by: int = 1) -> Format:
    """The format that a key turns to."""
    every = list(FORMATS)
    return every[(every.index(format_) + by) % len(every)] if format_ is not None else every[0]


def drawn(document: Document, charset: Charset, room: int) -> list[Line]:
    """A document on lines of at most `room` cells."""
    room = min(room, _PAGE)
    tone = _TONES.get(document.tone, "strong")
    said = line((charset.name(document.sentence), "strong"))
    lines = [line((charset.name(document.word), tone)), *flow(said, room)]
    above: Part | None = None
    for part in document.parts:
        made = list(_part(part, charset, room))
        if made:  # what follows a heading belongs to it
            lines += [*([] if isinstance(above, Heading) else [line()]), *made]
            above = part
    return lines


def _part(part: Part, charset: Charset, room: int) -> Iterator[Line]:
    match part:
        case Heading(level, words):
            title = tuple(Span(text, "strong") for text, _ in _spans(words, charset))
            yield from flow(title, room)
            if level <= 2:
                yield line((charset.rule * min(max(width(title), 3), room), "faint"))
        case Paragraph(words, tone):
            yield from flow(_spans(words, charset, _TONES.get(tone, "")), room)
        case Table():
            yield from _table(part, charset, room)
        case Listing(items, left_out):
            more = [line((charset.name(left_out), "dim"))] if left_out else []
            for item in [*(_spans(item, charset) for item in items), *more]:
                for number, piece in enumerate(flow(item, room - 2)):
                    yield (Span("  " if number else f"{charset.dot} ", "dim"), *piece)
        case Block(text):
            for raw in charset.name(text).split("\n"):
                for cut in chop_cells(raw, max(room - 2, 8)) or [""]:
                    yield line("  ", (cut, "active"))
        case _:  # a matrix is for formats that can draw
            return


def _spans(words: Words, charset: Charset, tone: str = "") -> Line:
    """Names and digests are set apart, as code is."""
    return tuple(
        Span(charset.name(part.text), "active") if isinstance(part, Code) else Span(charset.name(part), tone)
        for part in words
    )


def _table(table: Table, charset: Charset, room: int) -> Iterator[Line]:
    """A table whose widest columns give way until it fits; what a cell then lacks is in the file."""
    rows = [[_spans(cell, charset) for cell in row] for row in table.rows]
    heads = [line((charset.name(title), "head")) for title in table.head]
    sizes = [max(map(width, column)) for column in zip(heads, *rows, strict=True)]
    spare = room - 2 * (len(sizes) - 1)
    while sum(sizes) > spare and max(sizes) > _NARROW:
        widest = sizes.index(max(sizes))
        others = sorted((size for place, size in enumerate(sizes) if place != widest), reverse=True)
        sizes[widest] = max(sizes[widest] - (sum(sizes) - spare), others[0] - 1 if others else _NARROW, _NARROW)
    titled = any(heads)
    for cells in [heads, *rows] if titled else rows:
        if not titled:  # facts: a word, and its value
            cells = [tuple(Span(text, "dim") for text, _ in cells[0]), *cells[1:]]  # noqa: PLW2901
        yield _cells(cells, sizes, table.align, charset)
        if cells is heads:
            yield line((charset.rule * min(sum(sizes) + 2 * (len(sizes) - 1), room), "faint"))
    if table.left_out:
        yield line((charset.name(table.left_out), "dim"))


def _cells(cells: Sequence[Line], sizes: Sequence[int], align: str, charset: Charset) -> Line:
    spans: list[Span] = []
    for cell, size, side in zip(cells, sizes, align, strict=True):
        spans += [Span("  ")] * bool(spans) + list(fit(cell, size, right=side == ">", ellipsis=charset.ellipsis))
    return tuple(spans)


def coming(path: str) -> list[str]:
    """What the view says before there is a result."""
    said = (
        "the verdict and what it rests on, every file and what is on record of it, what differs and why, and its mend"
    )
    return [
        "The report is made when the verdict is there.",
        f"It will say of {path}: {said}.",
        "Then e writes it as Markdown for an issue tracker, as HTML to read, or as JSON for programs.",
    ]


def wrapped_texts(texts: Iterable[str], charset: Charset, room: int) -> list[Line]:
    """Paragraphs of plain text."""
    lines: list[Line] = []
    for text in texts:
        lines += [line((piece, "dim")) for piece in wrap(charset.name(text), max(min(room, _PAGE), 12))] + [line()]
    return lines
