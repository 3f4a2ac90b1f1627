"""What to call those who are compared: ranks of a job by their numbers, folders side by side by their names. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts import ranksets
from ..facts.agreement import Between, Standing
from . import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..facts.agreement import Agreement, Group

#: Names that are written out before the rest is counted.
_NAMED = 3
#: How sentences about an agreement speak of ranks (`facts.ranksets.named`).
_RANKS = re.compile(r"\branks? (?:(\d+)|\[([\d,-]+)\])(?![\w.])")
_SNAPSHOT = re.compile(r"/models--([^/]+)/snapshots/([0-9a-f]{40})/?$")


#: Whom a difference is about comes first, what it is held against last.
_ORDER = (Standing.WRONG, Standing.MINORITY, Standing.UNDECIDED, Standing.MAJORITY, Standing.RIGHT)


def minority_first(groups: Iterable[Group]) -> list[Group]:
    """Groups in the order in which they are listed: by standing, then the smaller before the larger."""
    return sorted(groups, key=lambda group: (_ORDER.index(group.standing), len(group.ranks), group.ranks))


class Sides:
    """Names for ranks. Without names of their own they are called by their numbers."""

    def __init__(self, names: Mapping[int, str] | None = None) -> None:
        self._names = dict(names or {})

    @classmethod
    def of(cls, agreement: Agreement) -> Sides:
        """Copies are called by the shortest ends of their paths that no other shares, ranks by their numbers."""
        if agreement.between is not Between.COPIES:
            return cls()
        paths = {report.rank: report.path for report in agreement.ranks}
        return cls(dict(zip(paths, _tails(list(paths.values())), strict=True)))

    @property
    def named(self) -> bool:
        """Whether they have names of their own."""
        return bool(self._names)

    def count(self, number: int) -> str:
        """`3 ranks`, or `3 copies`."""
        return units.count(number, "copy", "copies") if self._names else units.count(number, "rank")

    def holder(self, label: str, groups: Sequence[Group]) -> str:
        """A group with its ranks: `A [0,2]`; a rank that belongs to no group stands for itself."""
        ranks = next((group.ranks for group in groups if group.name == label), None)
        return self.told(label) if ranks is None else f"{label} {self.listed(ranks)}"

    def listed(self, ranks: Sequence[int]) -> str:
        """A column's cell: `[0,2]`, or the names."""
        if not self._names:
            return ranksets.fold(ranks)
        more = len(ranks) - _NAMED
        return ", ".join(map(self._name, ranks[:_NAMED])) + (f" and {more:,} more" if more > 0 else "")

    def told(self, sentence: str) -> str:
        """A sentence with the ranks called by their names."""
        if not self._names:
            return sentence
        return _RANKS.sub(lambda match: self._joined(_unfolded(match[1] or match[2])), sentence)

    def _joined(self, ranks: Sequence[int]) -> str:
        names = [self._name(rank) for rank in ranks[:_NAMED]]
        if len(ranks) > _NAMED:
            names.append(f"{len(ranks) - _NAMED:,} more")
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

    def _name(self, rank: int) -> str:
        return self._names.get(rank, f"rank {rank}")


def _unfolded(text: str) -> list[int]:
    """The ranks of a folded set: `0-3,5`."""
    ranks: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def _tails(paths: Sequence[str]) -> Iterable[str]:
    """The shortest ends of paths that tell them apart; the same path twice is numbered.

    A snapshot of the hub cache is called by what it is of: `org/name@423acf3770ff`.
    """
    parts = [
        [found[1].replace("--", "/") + f"@{found[2][:12]}"]
        if (found := _SNAPSHOT.search(path))
        else path.rstrip("/").split("/")
        for path in paths
    ]
    for length in range(1, max(map(len, parts), default=0) + 1):
        tails = ["/".join(part[-length:]) for part in parts]
        if len(set(tails)) == len(set(paths)):
            break
    else:
        tails = list(paths)
    return [f"{tail} (#{place})" if tails.count(tail) > 1 else tail for place, tail in enumerate(tails, 1)]
