"""Text with tones, measured in terminal cells. A tone is a word (`bad`, `dim`, ...) that the theme gives a colour."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

#: Every tone there is; `tui/app.tcss` gives each its colour.
TONES = (
    "plain", "strong", "dim", "faint", "active", "good", "warn", "bad", "head", "cached", "read",
    "run", "run-strong", "neutral", "neutral-strong", "well", "well-strong", "alarm", "alarm-strong", "caution",
    "caution-strong",
)  # fmt: skip

#: How wide labels are.
_LABEL = 11


class Span(NamedTuple):
    """A piece of text in one tone; the empty tone is the row's."""

    text: str
    tone: str = ""


Line = tuple[Span, ...]


def line(*parts: str | tuple[str, str]) -> Line:
    """A line of strings and (text, tone) pairs; empty ones are left out."""
    spans = (Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return tuple(span for span in spans if span.text)


def width(spans: Iterable[Span]) -> int:
    """How many cells these take."""
    return sum(cell_len(text) for text, _ in spans)


def clip(spans: Sequence[Span], size: int, ellipsis: str = "…") -> Line:
    """At most `size` cells: what is too long ends in an ellipsis."""
    if width(spans) <= size:
        return tuple(spans)
    kept: list[Span] = []
    room = size - cell_len(ellipsis)
    if room < 0:
        return ()
    for text, tone in spans:
        taken = cell_len(text)
        if taken > room:
            kept.append(Span(set_cell_size(text, room).rstrip() + ellipsis, tone))
            break
        kept.append(Span(text, tone))
        room -= taken
    return tuple(kept)


def fit(spans: Sequence[Span], size: int, *, right: bool = False, ellipsis: str = "…") -> Line:
    """Exactly `size` cells, padded at the end, or at the start where `right`."""
    clipped = clip(spans, size, ellipsis)
    blank = Span(" " * max(size - width(clipped), 0))
    if not blank.text:
        return clipped
    return (blank, *clipped) if right else (*clipped, blank)


def spread(left: Sequence[Span], right: Sequence[Span], size: int, *, gap: int = 3, ellipsis: str = "…") -> Line:
    """Left and right at the two ends of `size` cells. Where both do not fit, the left one gives way."""
    right = clip(right, size, ellipsis)
    if not right:
        return fit(left, size, ellipsis=ellipsis)
    room = size - width(right) - gap
    if room < 8:
        return fit(right, size, right=True, ellipsis=ellipsis)
    return (*fit(left, room, ellipsis=ellipsis), Span(" " * gap), *right)


def pieces(parts: Sequence[tuple[int, Line]], size: int, gap: int = 3) -> Line:
    """Parts side by side as far as they fit: those with the highest number leave first, the order stays."""
    kept = [(rank, part) for rank, part in parts if part]
    while len(kept) > 1 and sum(width(part) + gap for _, part in kept) - gap > size:
        kept.remove(max(reversed(kept), key=lambda pair: pair[0]))
    spans: list[Span] = []
    for _, part in kept:
        spans += [Span(" " * gap)] * bool(spans) + list(part)
    return tuple(spans)


def labelled(label: str, spans: Line, tone: str = "dim") -> Line:
    """A line under a label, as the facts below a table stand."""
    return (Span(f"  {label:<{_LABEL}}", tone), *spans)


def wrapped(label: str, text: str, room: int, tone: str = "") -> list[Line]:
    """A long text whole, on as many lines as it takes."""
    parts = wrap(text, max(room - _LABEL - 4, 12), break_on_hyphens=False)
    return [labelled("" if number else label, line((part, tone))) for number, part in enumerate(parts)]


def flow(spans: Sequence[Span], room: int) -> list[Line]:
    """Words on as many lines of `room` cells as they take; a word that is longer than a line is cut."""
    lines: list[list[Span]] = [[]]
    left = room
    for text, tone in spans:
        for word in re.findall(r" *[^ ]+| +$", text):
            if lines[-1] and cell_len(word) > left:
                lines.append([])
                left, word = room, word.lstrip()  # noqa: PLW2901 - the same word, at the beginning of a line
            for number, piece in enumerate(chop_cells(word, room)):
                if number:
                    lines.append([])
                    left = room
                lines[-1].append(Span(piece, tone))
                left -= cell_len(piece)
    return [tuple(one) for one in lines]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: a fixed width, or with `grow` a share of what is left. Gone where the screen is narrower
    than `needs`.
    """

    title: Line
    width: int
    right: bool = False
    grow: int = 0
    needs: int = 0
    gap: int = 2


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: `key` tells it from others for good; a row whose cells are equal draws the same."""

    key: Hashable
    cells: tuple[Line, ...]
    tone: str = "plain"
    #: The cursor passes over it.
    passed: bool = False


def layout(columns: Sequence[Column], size: int, screen: int) -> tuple[int, ...]:
    """The width of each column in a table of `size` cells, 0 for one that a screen of `screen` cells does not show."""
    shown = [column.needs <= screen for column in columns]
    taken = sum(column.width + column.gap for column, show in zip(columns, shown, strict=True) if show)
    spare = size - taken
    shares = sum(column.grow for column, show in zip(columns, shown, strict=True) if show)
    cuts = [0]
    for column, show in zip(columns, shown, strict=True):
        cuts.append(cuts[-1] + (column.grow if show else 0))
    grown = [spare * cut // shares if shares else 0 for cut in cuts]
    return tuple(
        max(column.width + after - before, 1) if show else 0
        for column, show, (before, after) in zip(columns, shown, pairwise(grown), strict=True)
    )


def compose(cells: Sequence[Line], columns: Sequence[Column], widths: Sequence[int], ellipsis: str = "…") -> Line:
    """The cells of a row, or the titles, side by side."""
    spans: list[Span] = []
    for cell, column, size in zip(cells, columns, widths, strict=True):
        if size:
            spans += fit(cell, size, right=column.right, ellipsis=ellipsis)
            spans.append(Span(" " * column.gap))
    return tuple(spans)
