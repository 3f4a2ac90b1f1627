"""Who holds what of the files that differ, as a matrix of ranks by files. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..facts import ranksets
from ..facts.agreement import Between, Standing
from ..present import units
from ..present.sides import minority_first
from .document import Cell, Matrix, Room

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..facts.agreement import Agreement, Difference
    from ..present.sides import Sides

#: A picture of more would not be looked at.
_ROWS, _COLUMNS = 64, 48


def matrix(agreement: Agreement, sides: Sides, room: Room) -> Matrix | None:
    """A row for each rank, or where there are many for each group; a column for each file that differs."""
    if agreement.between is Between.REPLICAS:
        return None  # kinds of tensors are few, and a table says who holds what of them
    differences = agreement.differences[:_COLUMNS]
    if not differences or not agreement.ranks:
        return None
    usual = [_usual(one, agreement) for one in differences]
    rows = tuple(
        (
            room.cut(label),
            tuple(_cell(one, group, rank, common) for one, common in zip(differences, usual, strict=True)),
        )
        for label, group, rank in _rows(agreement, sides)
    )
    more = len(agreement.differences) - len(differences)
    equal = max((report.files for report in agreement.ranks), default=0) - sum(
        one.role.value == "weights" for one in agreement.differences
    )
    told = [units.count(len(agreement.differences), "file differs", "files differ")]
    if more > 0:
        told.append(f"{more:,} of them are not drawn")
    if equal > 0:
        told.append(f"{units.count(equal, 'other weight file is', 'other weight files are')} the same everywhere")
    return Matrix(tuple(room.cut(one.file) for one in differences), rows, "; ".join(told))


def _rows(agreement: Agreement, sides: Sides) -> Iterator[tuple[str, str | None, int]]:
    """Label, group and a rank for each row."""
    hosts = {report.rank: report.host for report in agreement.ranks}
    if len(agreement.ranks) + len(agreement.absent) <= _ROWS:
        several = len(set(hosts.values())) > 1
        for report in agreement.ranks:
            host = f" ({report.host})" if several else ""
            yield sides.told(f"rank {report.rank}") + host, report.group, report.rank
        for rank in agreement.absent:
            yield f"rank {rank}, absent", None, rank
        return
    for group in minority_first(agreement.groups)[:_ROWS]:
        yield f"{group.name}: {units.count(len(group.ranks), 'rank')}", group.name, group.ranks[0]
    loose = [report.rank for report in agreement.ranks if report.group is None]
    if loose:
        yield f"no group: {ranksets.named(loose[:8])}{' …' * (len(loose) > 8)}", None, loose[0]


def _usual(one: Difference, agreement: Agreement) -> str | None:
    """What the right or most copies hold of a file: drawn quietly. None where none stands out."""
    trusted = [group for group in agreement.groups if group.standing in {Standing.RIGHT, Standing.MAJORITY}]
    if trusted:
        return one.groups.get(trusted[0].name)
    held: Counter[str] = Counter()
    for group in agreement.groups:
        if group.name in one.groups:
            held[one.groups[group.name]] += len(group.ranks)
    ranked: Sequence[tuple[str, int]] = held.most_common(2)
    return ranked[0][0] if len(ranked) == 2 and ranked[0][1] > ranked[1][1] else None


def _cell(one: Difference, group: str | None, rank: int, usual: str | None) -> Cell:
    label = group if group is not None else f"rank {rank}"
    held = one.groups.get(label)
    if held is None:
        return Cell("?", "warn", "not known")
    if held in {"not there", "missing", "broken-link"}:
        return Cell("–", "bad", held)
    if held == usual:
        return Cell("·", "good", held)
    if held.startswith(("unreadable", "changed")):
        return Cell("?", "warn", held)
    return Cell(label[:2] if group is not None else "≠", "bad" if usual is not None else "plain", held)
