"""A result in the format that is wanted, and into the file that was named."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..facts.agreement import Agreement
from ..facts.outcome import UsageError
from ..present.safe import escape
from . import agreements, html, json, markdown, scans
from .document import Room
from .redact import redacted
from .write import write

if TYPE_CHECKING:
    from ..facts.scan import ScanResult
    from .document import Document

    Result = Agreement | ScanResult


class Format(StrEnum):
    """What a report is written as."""

    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


SUFFIXES = {
    ".json": Format.JSON,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".html": Format.HTML,
    ".htm": Format.HTML,
}
#: HTML is for reading: tens of thousands of rows are not, and the JSON has them.
_HTML_ROOM = Room(files=500, segments=64, drills=8, ranks=1000, items=1000, characters=2000)
#: Markdown is written with the first room in which it fits an issue tracker.
_MARKDOWN_ROOMS = tuple(
    Room(files, segments, drills, ranks, items, characters)
    for files, segments, drills, ranks, items, characters in (
        (200, 32, 8, 200, 200, 1000),
        (100, 16, 4, 100, 100, 500),
        (40, 8, 2, 60, 50, 300),
        (20, 5, 1, 30, 20, 200),
        (10, 3, 1, 20, 10, 160),
        (5, 2, 1, 10, 5, 120),
        (2, 1, 1, 5, 3, 80),
    )
)


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that a file's suffix asks for. UsageError for any other: to be asked before any work is done."""
    found = SUFFIXES.get(PurePath(path).suffix.lower())
    if found is None:
        known = ", ".join(SUFFIXES)
        raise UsageError(f"{escape(os.fspath(path))}: a report's name ends in one of {known}")
    return found


def render(result: Result, format_: Format) -> bytes:
    """The report's bytes."""
    if format_ is Format.JSON:
        return json.encode(result)
    make = partial(_document, result)
    if format_ is Format.HTML:
        return html.render(make(_HTML_ROOM)).encode()
    return markdown.render(make, _MARKDOWN_ROOMS).encode()


def preview(result: Result, *, redact: bool = False) -> tuple[Document, str]:
    """The Markdown report, as a document to be drawn and as the text that would be written."""
    told = redacted(result) if redact else result
    return markdown.fitting(partial(_document, told), _MARKDOWN_ROOMS)


def save(result: Result, path: str | os.PathLike[str], *, force: bool = False, redact: bool = False) -> None:
    """Write a report, whole or not at all; the format is the suffix's.

    A file that is there is replaced only with `force`. With `redact` the report names no host and no path.
    Raises UsageError and CkptError, in one line each.
    """
    format_ = format_of(path)
    write(path, render(redacted(result) if redact else result, format_), force=force)


def _document(result: Result, room: Room) -> Document:
    if isinstance(result, Agreement):
        return agreements.document(result, room)
    return scans.document(result, room)
