"""`judge()`: from what the ranks say to the one verdict. Pure; the same on every rank, in whatever order they came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..facts.agreement import (
    AGREEMENT_SCHEMA,
    Agreement,
    Fingerprint,
    Group,
    RankError,
    RankReport,
    Stage,
    Standing,
    TableRow,
    Verdict,
)
from .descent import unstable_sides
from .differences import differences
from .given import in_words, unequal_facts
from .groups import Members, Partition, any_proven_different, listed, partition
from .revisions import revisions_of, tell_groups_apart
from .sentences import summary, warnings
from .shared import phrases, read_by_several
from .standing import Evidence, Judged, damage, standings, unsettle, weigh
from .tables import FileDifference, Side, file_differences, index_of
from .weights import weights_equal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..facts.agreement import Difference
    from ..facts.files import Segment
    from ..facts.scan import NotCompared
    from .descent import Drills
    from .shared import Readers

#: Tables of at most so many groups are laid beside each other; a session with more has one cause, not many.
SIDES_COMPARED = 16


@dataclass(frozen=True, slots=True)
class Testimony:
    """What one rank contributes: its fingerprint, and as a representative its tables."""

    fingerprint: Fingerprint
    table: tuple[TableRow, ...] | None = None
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    #: What this rank sent for the agreement.
    bytes_sent: int = 0


def judge(
    testimonies: Sequence[Testimony],
    *,
    world_size: int,
    stage: Stage,
    absent: Mapping[int, str] | None = None,
    created: float,
    tool: str,
    drills: Drills | None = None,
) -> Agreement:
    """The agreement over all ranks. `absent` maps ranks that did not answer to what is known of them.

    `drills`, from a descent into the differences of an earlier judgement of the same testimonies, tell causes apart.
    """
    case = _Case.of(testimonies, world_size, stage, absent or {})
    files = file_differences(case.sides)
    proven = [one for one in files if one.proven]
    evidence = case.weigh(proven)
    judged = unsettle(standings(case.found.groups, evidence), case.letters, unstable_sides(drills or {}))
    unequal = unequal_facts(case.fingerprints)
    apart = bool(proven) or any_proven_different(case.found)
    verdict = case.verdict(differ=apart or bool(unequal))
    against = phrases(case.shared, case.found.weights)
    groups = tuple(
        _group(name, members, one, against.get(name))
        for name, members, one in zip(case.letters, case.found.groups, judged, strict=True)
    )
    differing = case.differences(files, evidence, judged, drills)
    errors = case.errors()
    equal = weights_equal(case.found, stage, proven, absent=bool(case.missing))
    return Agreement(
        schema=AGREEMENT_SCHEMA,
        verdict=verdict,
        stage=stage,
        weights_equal=equal,
        world_size=world_size,
        ranks=_reports(case.heard, groups, errors),
        groups=groups,
        absent=tuple(case.missing),
        errors=tuple(RankError(rank=rank, message=message) for rank, message in errors.items()),
        differences=differing,
        warnings=warnings(case.found, case.letters, case.fingerprints, differing, sides_left_out=case.sides_left_out),
        not_compared=_not_compared(case.fingerprints),
        summary=in_words(unequal)
        if unequal and not apart
        else summary(
            verdict=verdict,
            stage=stage,
            groups=groups,
            differences=differing,
            errors=errors,
            missing=case.missing,
            fingerprints=case.fingerprints,
            weights_equal=equal,
        )
        + f"; {in_words(unequal)}" * bool(unequal),
        tool=tool,
        created=created,
        unequal=unequal,
        absent_detail=tuple(f"rank {rank}: {text}" for rank, text in case.missing.items()),
    )


def letter(place: int) -> str:
    """A, B ... Z, AA, AB ..."""
    name = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


@dataclass(frozen=True, slots=True)
class _Case:
    """What the ranks said, sorted and laid side by side."""

    stage: Stage
    heard: Sequence[Testimony]
    fingerprints: Sequence[Fingerprint]
    missing: Mapping[int, str]
    found: Partition
    letters: Sequence[str]
    sides: Sequence[Side]
    sides_left_out: int
    #: Copies that several groups have read.
    shared: tuple[Readers, ...]

    @classmethod
    def of(cls, testimonies: Sequence[Testimony], world_size: int, stage: Stage, absent: Mapping[int, str]) -> _Case:
        heard = sorted(testimonies, key=lambda one: one.fingerprint.rank)
        fingerprints = [one.fingerprint for one in heard]
        ranks = {one.rank for one in fingerprints}
        if len(ranks) < len(heard) or any(not 0 <= rank < world_size for rank in ranks):
            raise ValueError("each rank testifies once, and is one of the world's")
        found = partition(fingerprints, stage)
        letters = [letter(place) for place in range(len(found.groups))]
        sides = _sides(found, letters, heard)
        return cls(
            stage=stage,
            heard=heard,
            fingerprints=fingerprints,
            missing={rank: absent.get(rank, "no answer") for rank in range(world_size) if rank not in ranks},
            found=found,
            letters=letters,
            sides=sides[:SIDES_COMPARED],
            sides_left_out=max(len(sides) - SIDES_COMPARED, 0),
            shared=read_by_several(letters, found.groups),
        )

    def weigh(self, proven: Collection[FileDifference]) -> list[Evidence]:
        """The evidence on the files that differ; on all files where the tables do not tell which."""
        tables = {side.label: side.table for side in self.sides}
        names = {one.name for one in proven} or None
        groups = zip(self.letters, self.found.groups, strict=True)
        return [weigh(group, tables.get(name), names) for name, group in groups]

    def differences(
        self,
        files: Sequence[FileDifference],
        evidence: Sequence[Evidence],
        judged: Sequence[Judged],
        drills: Drills | None,
    ) -> tuple[Difference, ...]:
        """The files that differ, in words."""
        standing = zip(self.letters, judged, strict=True)
        return differences(
            files,
            self.sides,
            self.stage,
            blamed=frozenset(name for name, one in standing if one.standing in {Standing.WRONG, Standing.MINORITY}),
            revisions=revisions_of(self.fingerprints) if tell_groups_apart(self.found.groups) else None,
            shared=self.shared,
            revisions_kept=sum(one.keeps and not one.breaks for one in evidence) > 1,
            drills=drills,
        )

    def verdict(self, *, differ: bool) -> Verdict:
        """In the order of the exit codes, 1 before 4 before 3; `agree` only where nothing at all is open."""
        if differ:
            return Verdict.DIFFER
        if any(damage(one) for one in self.fingerprints):
            return Verdict.DAMAGED
        if self.missing:
            return Verdict.INCOMPLETE
        alike = not self.found.loose and len(self.found.groups) == 1 and self.found.groups[0].whole
        good = all(one.files > 0 and not one.broken and not one.undecided for one in self.fingerprints)
        return Verdict.AGREE if alike and good and self.stage is Stage.CONTENT else Verdict.UNDECIDED

    def errors(self) -> dict[int, str]:
        """Every rank that could not know its own content, and why."""
        errors = dict(self.found.loose)
        for group in self.found.groups:
            if not group.whole:
                errors |= {one.rank: "; ".join(one.reasons) or listed(damage(one)) for one in group.fingerprints}
        return dict(sorted(errors.items()))


def _sides(found: Partition, letters: Sequence[str], heard: Sequence[Testimony]) -> list[Side]:
    """The tables that there are: one for each group, and those of ranks that have no group."""
    by_rank = {one.fingerprint.rank: one for one in heard}
    holders = [(name, group.ranks) for name, group in zip(letters, found.groups, strict=True)]
    holders += [(f"rank {one.rank}", (one.rank,)) for one in found.comparable]
    sides = []
    for label, ranks in holders:
        shown = next((by_rank[rank] for rank in ranks if by_rank[rank].table is not None), None)
        if shown is not None and shown.table is not None:
            sides.append(Side(label, shown.fingerprint, index_of(shown.table), shown.segments))
    return sides


def _group(name: str, group: Members, judged: Judged, against: str | None) -> Group:
    return Group(
        name=name,
        ranks=group.ranks,
        copies=judged.copies,
        identity=group.first.identity,
        content=group.first.content,
        standing=judged.standing,
        evidence=judged.evidence + ((against,) if against else ()),
    )


def _not_compared(fingerprints: Sequence[Fingerprint]) -> tuple[NotCompared, ...]:
    left_out = {one for fingerprint in fingerprints for one in fingerprint.not_compared}
    return tuple(sorted(left_out, key=lambda one: (one.name, one.size)))


def _reports(heard: Sequence[Testimony], groups: Sequence[Group], errors: Mapping[int, str]) -> tuple[RankReport, ...]:
    group_of = {rank: group.name for group in groups for rank in group.ranks}
    return tuple(
        RankReport(
            rank=one.fingerprint.rank,
            host=one.fingerprint.host,
            path=one.fingerprint.path,
            file_system=one.fingerprint.file_system,
            group=group_of.get(one.fingerprint.rank),
            files_cached=one.fingerprint.files_cached,
            oldest_digest=one.fingerprint.oldest_digest,
            bytes_sent=one.bytes_sent,
            files=one.fingerprint.files,
            error=errors.get(one.fingerprint.rank),
        )
        for one in heard
    )
