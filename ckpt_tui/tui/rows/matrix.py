"""Rank by shard in one look: a character a cell."""

from __future__ import annotations

from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING

from ...facts import ranksets
from ...facts.agreement import Standing
from ...facts.files import Role
from ...facts.status import Cell, Phase
from ...present.glyphs import CELLS
from .spans import Line, Span, line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...facts.agreement import Agreement
    from .charset import Charset
    from .ranks import Bundle

#: What a cell shows that stands for several shards: the one that matters most.
_WORST_FIRST = (Cell.BAD, Cell.UNREADABLE, Cell.READING, Cell.WAITING, Cell.READ, Cell.SHARED, Cell.CACHED)
_LABEL = 14
#: Up to so many shards stand so far apart.
_FEW, _APART = 16, 4


def matrix(
    bundles: Sequence[Bundle],
    agreement: Agreement | None,
    charset: Charset,
    *,
    roles: str,
    places: Mapping[str, int],
    room: int,
    rows: int,
) -> list[Line]:
    """The lines of the matrix: a scale, then a line a row of ranks. `places` has the index of each name.

    `roles` has one character a file; sidecars have no column. Before the verdict a cell shows the shard's progress;
    after it, the letter of the group whose bytes differ there.
    """
    shards = _shards(roles)
    size = room - _LABEL - 2
    if not shards or not bundles or size < 8 or rows < 2:
        return []
    each = -(-len(shards) // size)
    # A few shards stand apart, each under its number.
    pitch = _APART if len(shards) <= _FEW and len(shards) * _APART <= size else 1
    starts = range(0, len(shards), each)
    differing = _differing(agreement, shards, each, places)
    unit = "shard" if each == 1 else f"{each} shards"
    drawn = [line((f"  {unit:<{_LABEL}}", "dim"), (_scale(len(starts), each, pitch), "dim"))]
    # A sane table of many ranks is cut, never the scale: what needs somebody comes first in `bundles`.
    for bundle in bundles[: rows - 1]:
        label = ranksets.fold(bundle.ranks)
        if len(label) > _LABEL - 1:
            label = label[: _LABEL - 1 - len(charset.ellipsis)] + charset.ellipsis
        # A letter marks whoever is not like the others; of equal votes that is everybody.
        odd = bundle.group is not None and bundle.group.standing not in {Standing.RIGHT, Standing.MAJORITY}
        letter = bundle.group.name if bundle.group is not None and odd else ""
        cells = "".join(compress(bundle.rows[0].status.cells, _weights(roles)))
        quiet = bundle.rows[0].status.phase in {Phase.LOST, Phase.ABSENT}
        spans = [Span(f"  {label:<{_LABEL}}", "strong" if letter else "")]
        for place, start in enumerate(starts):
            if differing is not None and not quiet and cells:
                apart = letter in differing.get(place, ())
                text, tone = Span(letter, "bad") if apart else Span(charset.dot, "faint")
            else:
                text, tone = _cell(cells[start : start + each], charset, quiet=quiet)
            spans.append(Span(text.ljust(pitch), tone))
        drawn.append(_joined(spans))
    return drawn


@lru_cache(maxsize=4)
def _weights(roles: str) -> tuple[bool, ...]:
    return tuple(role == "w" for role in roles)


@lru_cache(maxsize=4)
def _shards(roles: str) -> tuple[int, ...]:
    """The places of the weight files among all files."""
    return tuple(compress(range(len(roles)), _weights(roles)))


def _differing(
    agreement: Agreement | None, shards: Sequence[int], each: int, places: Mapping[str, int]
) -> dict[int, set[str]] | None:
    """Which groups are not like the first one in which column; None before a verdict."""
    if agreement is None or len(agreement.groups) < 2:
        return None
    columns = {index: place // each for place, index in enumerate(shards)}
    found: dict[int, set[str]] = {}
    for difference in agreement.differences:
        column = columns.get(places.get(difference.file, -1))
        if difference.role is Role.WEIGHTS and column is not None:
            found.setdefault(column, set()).update(difference.groups)
    return found


def _cell(cells: str, charset: Charset, *, quiet: bool) -> Span:
    """The worst of some shards' states."""
    worst = next((cell for cell in _WORST_FIRST if cell in cells), None)
    if worst is None:
        return Span(charset.dot, "faint")
    mark = CELLS[worst]
    tone = "faint" if mark.tone == "plain" else mark.tone
    return Span(charset.mark(mark), "faint" if quiet else tone)


def _joined(spans: list[Span]) -> Line:
    """Neighbours of one tone as one span: a long line is then a few pieces to draw."""
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].tone == span.tone:
            merged[-1] = Span(merged[-1].text + span.text, span.tone)
        else:
            merged.append(span)
    return tuple(merged)


def _scale(cells: int, each: int, pitch: int) -> str:
    """`1         11        21`: the first shard of every tenth cell, or of every cell that stands apart."""
    scale = ""
    for place in range(0, cells, 10 if pitch == 1 else 1):
        scale = scale.ljust(place * pitch) + f"{place * each + 1} "
    return scale.rstrip()
