"""From votes and tables to an agreement. Pure: every rank is given the same, and comes to the same, to the letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..agreement.judge import letter
from ..facts.agreement import (
    AGREEMENT_SCHEMA,
    Agreement,
    Between,
    Difference,
    Group,
    RankError,
    RankReport,
    Stage,
    Standing,
    Verdict,
)
from ..facts.files import Role, Severity
from ..facts.ranksets import named
from ..facts.version import TOOL
from . import sentences
from .digests import state_digest
from .kinds import Kind
from .tables import Laid, lay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..facts.drill import Drill
    from ..facts.scan import NotCompared
    from .hearing import Hearing
    from .messages import Row, Told

#: What was found in the bytes of a tensor, by the difference's `file` and the tensor's name.
Drills = dict[tuple[str, str], "Drill"]
#: The kinds that decide whether the weights are equal.
_WEIGHTS = frozenset({Kind.TENSORS, Kind.PARAMETERS})


class Side(NamedTuple):
    """Ranks that hold the same: their label, and themselves. The first of them shows the table."""

    label: str
    ranks: tuple[int, ...]


class Set(NamedTuple):
    """Ranks that are compared with each other: all, those that could say what they hold, and these in sides."""

    ranks: tuple[int, ...]
    holders: tuple[int, ...]
    sides: tuple[Side, ...]


class Found(NamedTuple):
    """A kind in which a set differs or is undecided: its name, the sides, and their tables laid beside each other."""

    file: str
    kind: Kind
    sides: tuple[Side, ...]
    laid: Laid


class Case:
    """All that was said, sorted out. `told` are the tables of the spokesmen, `bad` what kept one from being read."""

    def __init__(self, hearing: Hearing, told: Mapping[int, Told], bad: Mapping[int, str]) -> None:
        self.question = hearing.question
        self._hearing = hearing
        self._told = told
        errors = {**hearing.errors, **bad, **{rank: one.error for rank, one in told.items() if one.error}}
        if hearing.called_alike:
            errors |= self._nothing(frozenset(errors))
        else:
            errors |= sentences.other_calls({rank: one.call for rank, one in told.items() if rank not in errors})
            # Votes told other calls apart, so that this is no agreement whatever the tables say.
            errors = errors or dict.fromkeys(
                hearing.outlines, "was called with something else, and does not say with what"
            )
        self.errors = dict(sorted(errors.items()))
        self.sets = tuple(self._sets()) if hearing.called_alike else ()
        self.found = tuple(self._found())

    def _nothing(self, failed: frozenset[int]) -> dict[int, str]:
        """What to say of the ranks of a set in which none was given anything that decides: that is no agreement."""
        outlines = self._hearing.outlines
        errors: dict[int, str] = {}
        for ranks in self.question.sets:
            held = {kind for rank in ranks if rank in outlines for kind in outlines[rank].roots}
            if not failed & set(ranks) and held <= self.question.apart:
                errors |= dict.fromkeys(ranks, sentences.nothing(held))
        return errors

    def _sets(self) -> Iterator[Set]:
        place = 0
        outlines = self._hearing.outlines
        for ranks in self.question.sets:
            holders = tuple(rank for rank in ranks if rank in outlines and rank not in self.errors)
            judged = [kind for kind in Kind if kind not in self.question.apart]
            classes: dict[object, list[int]] = {}
            for rank in holders:
                classes.setdefault(tuple(outlines[rank].roots.get(kind) for kind in judged), []).append(rank)
            sides = tuple(Side(letter(place + at), tuple(members)) for at, members in enumerate(classes.values()))
            place += len(sides)
            yield Set(ranks, holders, sides)

    def _found(self) -> Iterator[Found]:
        for one in self.sets:
            for kind in Kind:
                if not self._hearing.open(kind, one.holders):
                    continue
                sides = self._apart(kind, one) if kind in self.question.apart else one.sides
                # A side whose spokesman could not be understood is not laid beside the others.
                shown = tuple(side for side in sides if side.ranks[0] in self._told)
                tables: dict[str, Sequence[Row]] = {
                    side.label: self._told[side.ranks[0]].kinds.get(kind, ()) for side in shown
                }
                file = kind.value if len(self.sets) == 1 else f"{kind.value} of {named(one.ranks)}"
                yield Found(file, kind, shown, lay(tables))

    def _apart(self, kind: Kind, one: Set) -> tuple[Side, ...]:
        """The sides of a kind that decides nothing: they have no letters, only their ranks."""
        classes: dict[object, list[int]] = {}
        for rank in one.holders:
            classes.setdefault(self._hearing.outlines[rank].roots.get(kind), []).append(rank)
        return tuple(Side(named(ranks), tuple(ranks)) for ranks in classes.values())

    def agreement(
        self, *, sent: Mapping[int, int], left_out: Sequence[NotCompared], drills: Drills | None = None
    ) -> Agreement:
        """The verdict. `sent` are bytes by rank; `left_out` what this rank, or any that told, did not compare."""
        question, outlines = self.question, self._hearing.outlines
        differences = tuple(one for found in self.found for one in self._differences(found, drills or {}))
        proven = tuple(one for one in differences if one.severity is Severity.ERROR)
        open_ = bool(self.errors) or any(one.severity is Severity.WARNING for one in differences)
        verdict = Verdict.DIFFER if proven else Verdict.UNDECIDED if open_ else Verdict.AGREE
        groups = tuple(self._groups())
        errors = [(rank, text) for rank, text in self.errors.items()]
        errors += [
            (side.ranks[0], f"{found.file} {one.name}: {one.reasons[side.label]}")
            for found in self.found
            for one in found.laid.undecided
            for side in found.sides
            if side.label in one.reasons
        ]
        agreement = Agreement(
            schema=AGREEMENT_SCHEMA,
            verdict=verdict,
            stage=Stage.CONTENT,
            weights_equal=self._weights_equal(proven),
            world_size=sum(map(len, question.sets)),
            ranks=tuple(self._reports(sent)),
            groups=groups,
            absent=(),
            errors=tuple(RankError(rank=rank, message=text) for rank, text in errors),
            differences=differences,
            warnings=sentences.warnings(outlines, question),
            not_compared=tuple(left_out),
            summary="",
            tool=TOOL,
            created=min((one.time for one in outlines.values()), default=0.0),
            between=Between.REPLICAS,
            phase=question.phase,
            step=question.step,
        )
        return sentences.summarized(agreement)

    def _differences(self, found: Found, drills: Drills) -> Iterator[Difference]:
        """What is proven to differ in a kind, and what could not be decided, apart."""
        apart = found.kind in self.question.apart
        groups = {side.label: self._holds(found, side) for side in found.sides}
        total = max((self._count(found, side) for side in found.sides), default=0)
        role = Role.WEIGHTS if found.kind in _WEIGHTS else Role.SIDECAR
        if found.laid.differing:
            severity = Severity.NOTE if apart else Severity.ERROR
            yield sentences.difference(
                found.file, found.laid.differing, groups, total=total, severity=severity, role=role, drills=drills
            )
        if found.laid.undecided and not apart:
            yield sentences.difference(
                found.file, found.laid.undecided, groups, total=total, severity=Severity.WARNING, role=role
            )

    def _count(self, found: Found, side: Side) -> int:
        return len(self._told[side.ranks[0]].kinds.get(found.kind, ()))

    def _holds(self, found: Found, side: Side) -> str:
        root = self._hearing.outlines[side.ranks[0]].roots.get(found.kind)
        return sentences.holds(self._count(found, side), root)

    def _weights_equal(self, proven: Sequence[Difference]) -> bool | None:
        """Whether all weights are the same; null where none were compared, or not all could be."""
        outlines = self._hearing.outlines.values()
        if any(one.role is Role.WEIGHTS for one in proven):
            return False
        compared = any(kind in one.roots for one in outlines for kind in _WEIGHTS - self.question.apart)
        undecided = any(found.laid.undecided for found in self.found if found.kind in _WEIGHTS)
        return None if self.errors or undecided or not compared else True

    def _reports(self, sent: Mapping[int, int]) -> Iterator[RankReport]:
        group_of = {rank: side.label for one in self.sets for side in one.sides for rank in side.ranks}
        for rank in sorted(rank for ranks in self.question.sets for rank in ranks):
            outline = self._hearing.outlines.get(rank)
            yield RankReport(
                rank=rank,
                host=outline.host if outline else "",
                path="",
                file_system="",
                group=group_of.get(rank),
                files_cached=0,
                oldest_digest=None,
                bytes_sent=sent.get(rank, 0),
                files=outline.entries if outline else 0,
                error=self.errors.get(rank),
                bytes=outline.size if outline else 0,
            )

    def _groups(self) -> Iterator[Group]:
        """Ranks that hold the same of all kinds that are judged. Every rank holds a copy of its own."""
        blurred = {side.label for found in self.found if found.laid.undecided for side in found.sides}
        for one in self.sets:
            most = max(one.sides, key=lambda side: len(side.ranks), default=None)
            clear = most is not None and 2 * len(most.ranks) > len(one.ranks)
            for side in one.sides:
                standing = Standing.UNDECIDED
                if clear and side is most:
                    standing = Standing.MAJORITY
                elif clear and side.label not in blurred:
                    standing = Standing.MINORITY
                yield Group(
                    name=side.label,
                    ranks=side.ranks,
                    copies=len(side.ranks),
                    identity=None,
                    content=self._content(self._hearing.outlines[side.ranks[0]].roots),
                    standing=standing,
                    evidence=(f"{len(side.ranks):,} of {len(one.ranks):,} ranks",),
                )

    def _content(self, roots: Mapping[Kind, bytes]) -> str:
        """One digest of all kinds that are judged."""
        return state_digest({kind: root for kind, root in roots.items() if kind not in self.question.apart}).hex()
