"""What was asked, what each rank holds in outline, and whose tables are needed to tell where they differ. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .messages import Outline


@dataclass(frozen=True, slots=True)
class Question:
    """Who is compared with whom, in which phase, and which kinds decide nothing."""

    phase: str
    step: int | None
    #: Ranks that are to be the same inside each set; every rank is in one.
    sets: tuple[tuple[int, ...], ...]
    apart: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Hearing:
    """What each rank says that it holds, and what is the matter with the ranks that could not say so."""

    question: Question
    outlines: Mapping[int, Outline]
    errors: Mapping[int, str]
    #: Whether all ranks asked the same question.
    called_alike: bool = True

    @property
    def spokesmen(self) -> frozenset[int]:
        """Whose tables are needed: of the ranks that failed, and of the first of each opinion where they differ."""
        if not self.called_alike:
            return frozenset(self.outlines)
        wanted = {rank for rank, outline in self.outlines.items() if outline.failed}
        for ranks in self.question.sets:
            first: dict[object, int] = {}
            for rank in self._holders(ranks):
                outline = self.outlines[rank]
                first.setdefault((outline.undecided, tuple(sorted(outline.roots.items()))), rank)
            if any(self.open(kind, tuple(first.values())) for kind in Kind):
                wanted |= set(first.values())
        return frozenset(wanted)

    def kinds_of(self, rank: int) -> frozenset[Kind]:
        """The kinds of which a spokesman shows its entries: those that its set does not all hold alike, and whole."""
        holders = self._holders(next(ranks for ranks in self.question.sets if rank in ranks))
        return frozenset(kind for kind in Kind if self.open(kind, holders))

    def open(self, kind: Kind, ranks: tuple[int, ...]) -> bool:
        """Whether these ranks do not hold a kind alike, or cannot say."""
        outlines = [self.outlines[rank] for rank in ranks]
        roots = {outline.roots.get(kind) for outline in outlines}
        return len(roots) > 1 or any(kind in outline.undecided for outline in outlines)

    def _holders(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(rank for rank in ranks if rank in self.outlines and not self.outlines[rank].failed)
