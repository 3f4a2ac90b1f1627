"""What may be said of each group: by evidence first, by distinct copies second, else nothing. Pure.

A hash that the hub recorded is evidence for and against copies of its own repository and revision. Votes are distinct
copies, not ranks: eight ranks on one disk are one vote. Nobody is accused by half of the votes or fewer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..facts.agreement import Standing
from ..facts.files import Role, State
from .groups import listed, proven_different

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..facts.agreement import Fingerprint, TableRow
    from .groups import Members

#: `broken` words that say nothing about the structure: the claims speak for themselves, a suspicion accuses nobody.
_NO_DAMAGE = frozenset({State.DIGEST_MISMATCH.value, State.SUSPECT.value})


@dataclass(frozen=True, slots=True)
class Judged:
    """A group's standing, the copies that it has for certain, and the phrases that say why."""

    standing: Standing
    copies: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for and against one group, on the files that differ."""

    keeps: bool
    breaks: tuple[str, ...]
    damaged: tuple[str, ...]
    #: (repository, revision) of the members that keep every recorded hash.
    sources: frozenset[tuple[str, str]]


def damage(one: Fingerprint) -> list[str]:
    """What of a rank's files is proven broken, as `name: word`; a broken claim counts, a suspicion does not."""
    shown = [entry for entry in one.broken if _word(entry) != State.SUSPECT]
    claims = (f"{name}: {State.DIGEST_MISMATCH}" for name in one.claims_broken)
    return shown + [entry for entry in claims if entry not in one.broken]


def weigh(group: Members, table: Mapping[str, TableRow] | None, differing: Collection[str] | None) -> Evidence:
    """The evidence of a group. `differing` are the names of the files in question, None when they are not known."""
    breaks: dict[str, None] = {}
    damaged: dict[str, None] = {}
    sources: set[tuple[str, str]] = set()
    keeps = False
    for member in group.fingerprints:
        breaks |= dict.fromkeys(name for name in member.claims_broken if differing is None or name in differing)
        if member.broken:
            damaged |= dict.fromkeys(_damage_of(member, differing))
        if not member.claims_broken and _keeps(member, table, differing, first=member is group.first):
            keeps = True
            if member.repo_id is not None and member.revision is not None:
                sources.add((member.repo_id, member.revision))
    return Evidence(keeps, tuple(breaks), tuple(damaged), frozenset(sources))


def _damage_of(member: Fingerprint, differing: Collection[str] | None) -> list[str]:
    return [
        entry
        for entry in member.broken
        if _word(entry) not in _NO_DAMAGE and (differing is None or entry.rpartition(": ")[0] in differing)
    ]


def _word(entry: str) -> str:
    return entry.rpartition(": ")[2]


def _keeps(
    member: Fingerprint, table: Mapping[str, TableRow] | None, differing: Collection[str] | None, *, first: bool
) -> bool:
    """Whether recorded hashes speak for every file in question."""
    if set(member.recorded) >= {Role.WEIGHTS, Role.SIDECAR}:
        return True
    if not first or table is None or not differing:
        return False
    rows = [table.get(name) for name in differing]
    return all(row is not None and row.recorded is True for row in rows)


def standings(groups: Sequence[Members], evidence: Sequence[Evidence]) -> tuple[Judged, ...]:
    """The standing of each group; one that is alone is judged alike."""
    votes, possible = _votes(groups)
    keepers = [place for place, one in enumerate(evidence) if one.keeps and not one.breaks]
    right = keepers[0] if len(keepers) == 1 else None
    wrong = [_is_wrong(place, groups, evidence, right) for place in range(len(groups))]
    majority = None
    if not keepers:
        total = sum(possible)
        majority = next((n for n, _ in enumerate(groups) if not wrong[n] and votes[n] > total - possible[n]), None)
    judged = []
    for place, one in enumerate(evidence):
        standing = Standing.UNDECIDED
        if wrong[place]:
            standing = Standing.WRONG
        elif place == right:
            standing = Standing.RIGHT
        elif majority == place:
            standing = Standing.MAJORITY
        elif majority is not None and proven_different(groups[majority], groups[place]):
            standing = Standing.MINORITY
        phrases = _phrases(groups[place], one) or (f"{votes[place]:,} of {sum(votes):,} copies, no recorded hash",)
        judged.append(Judged(standing, votes[place], phrases))
    return tuple(judged)


def unsettle(judged: Sequence[Judged], labels: Sequence[str], unstable: Collection[str]) -> tuple[Judged, ...]:
    """Take the standing of groups which, read again, gave other bytes: that accuses the machine, not the file.

    Where it is one that the others are held against, nobody keeps a standing.
    """
    held = {Standing.RIGHT, Standing.MAJORITY}
    shaken = any(one.standing in held and label in unstable for one, label in zip(judged, labels, strict=True))
    return tuple(
        replace(
            one,
            standing=Standing.UNDECIDED if shaken or label in unstable else one.standing,
            evidence=(*one.evidence, "read again, it gave other bytes") if label in unstable else one.evidence,
        )
        for one, label in zip(judged, labels, strict=True)
    )


def _is_wrong(place: int, groups: Sequence[Members], evidence: Sequence[Evidence], right: int | None) -> bool:
    one = evidence[place]
    if one.keeps:
        return False
    if one.breaks or one.damaged:
        return True
    if right is None or right == place or not proven_different(groups[place], groups[right]):
        return False
    # It names the very revision whose recorded hashes the right group keeps, and holds something else.
    named = {(member.repo_id, member.revision) for member in groups[place].fingerprints}
    return not named.isdisjoint(evidence[right].sources)


def _votes(groups: Sequence[Members]) -> tuple[list[int], list[int]]:
    """For each group the copies that it has for certain, and those that it may have.

    A copy that is seen in several groups (one disk read differently, or hard links beside another config) and a rank
    whose copy is not known vote for nobody and count against everybody.
    """
    of_group = [Counter(member.copy_id for member in group.fingerprints) for group in groups]
    seen = Counter(copy for copies in of_group for copy in copies if copy is not None)
    votes, possible = [], []
    for copies in of_group:
        known = [copy for copy in copies if copy is not None]
        votes.append(max(sum(seen[copy] == 1 for copy in known), 1))
        possible.append(max(len(known) + copies[None], 1))
    return votes, possible


def _phrases(group: Members, one: Evidence) -> tuple[str, ...]:
    phrases = []
    if one.keeps:
        kept = max(member.claims_kept for member in group.fingerprints)
        source = "".join(f" of {repo}@{revision[:12]}" for repo, revision in sorted(one.sources)[:1])
        phrases.append(f"keeps {kept:,} recorded {'hash' if kept == 1 else 'hashes'}{source}")
    if one.breaks:
        phrases.append(f"breaks the hub's recorded hash of {listed(one.breaks)}")
    if one.damaged:
        phrases.append(listed(one.damaged))
    return tuple(phrases)
