"""Rank by shard in one look: a character a cell."""

from __future__ import annotations

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
_WEIGHT = {
    Cell.BAD: 5, Cell.UNREADABLE: 4, Cell.READING: 3, Cell.WAITING: 2, Cell.READ: 1, Cell.SHARED: 1, Cell.CACHED: 0,
}  # fmt: skip
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
    shards = [index for index, role in enumerate(roles) if role == "w"]
    size = room - _LABEL - 2
    if not shards or not bundles or size < 8 or rows < 2:
        return []
    each = -(-len(shards) // size)
    # A few shards stand apart, each under its number.
    pitch = _APART if len(shards) <= _FEW and len(shards) * _APART <= size else 1
    cuts = [shards[start : start + each] for start in range(0, len(shards), each)]
    differing = _differing(agreement, places)
    unit = "shard" if each == 1 else f"{each} shards"
    drawn = [line((f"  {unit:<{_LABEL}}", "dim"), (_scale(len(cuts), each, pitch), "dim"))]
    # A sane table of many ranks is cut, never the scale: what needs somebody comes first in `bundles`.
    for bundle in bundles[: rows - 1]:
        label = ranksets.fold(bundle.ranks)
        if len(label) > _LABEL - 1:
            label = label[: _LABEL - 1 - len(charset.ellipsis)] + charset.ellipsis
        # A letter marks whoever is not like the others; of equal votes that is everybody.
        odd = bundle.group is not None and bundle.group.standing not in {Standing.RIGHT, Standing.MAJORITY}
        letter = bundle.group.name if bundle.group is not None and odd else ""
        cells = bundle.rows[0].status.cells
        quiet = bundle.rows[0].status.phase in {Phase.LOST, Phase.ABSENT}
        spans = [Span(f"  {label:<{_LABEL}}", "strong" if letter else "")]
        for cut in cuts:
            text, tone = _cell(cut, cells, letter, differing, charset, quiet=quiet)
            spans.append(Span(text.ljust(pitch), tone))
        drawn.append(_joined(spans))
    return drawn


def _differing(agreement: Agreement | None, places: Mapping[str, int]) -> dict[int, set[str]] | None:
    """Which groups are not like the first one in which file; None before a verdict."""
    if agreement is None or len(agreement.groups) < 2:
        return None
    found: dict[int, set[str]] = {}
    for difference in agreement.differences:
        if difference.role is Role.WEIGHTS and difference.file in places:
            found[places[difference.file]] = set(difference.groups)
    return found


def _cell(
    cut: list[int],
    cells: str,
    letter: str,
    differing: dict[int, set[str]] | None,
    charset: Charset,
    *,
    quiet: bool,
) -> Span:
    if differing is not None and not quiet and cells:
        if any(letter in differing.get(index, ()) for index in cut):
            return Span(letter, "bad")
        return Span(charset.dot, "faint")
    known = [Cell(cells[index]) for index in cut if index < len(cells)]
    if not known:
        return Span(charset.dot, "faint")
    worst = max(known, key=_WEIGHT.__getitem__)
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
