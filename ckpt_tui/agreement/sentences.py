"""The agreement in one sentence, and its warnings. Pure."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import TYPE_CHECKING

from ..facts.agreement import CauseCode, DifferenceKind, Stage, Standing, Verdict
from ..facts.files import Role, SegmentKind, Severity
from ..facts.ranksets import named
from .groups import listed, proven_different
from .rank_local import pattern
from .revisions import revisions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..facts.agreement import Difference, Fingerprint, Group
    from .groups import Partition


def summary(
    *,
    verdict: Verdict,
    stage: Stage,
    groups: Sequence[Group],
    differences: Sequence[Difference],
    errors: Mapping[int, str],
    missing: Mapping[int, str],
    fingerprints: Sequence[Fingerprint],
    weights_equal: bool | None,
) -> str:
    """One sentence for people, without the verdict's word."""
    hosts = {one.rank: one.host for one in fingerprints}
    if verdict is Verdict.AGREE:
        return f"{_all(len(hosts))} the same checkpoint"
    if len(set(hosts.values())) < 2:
        hosts = {}  # one machine's name tells nobody apart
    if verdict is Verdict.DIFFER:
        where = _where(differences, fingerprints, weights_equal=weights_equal)
        revisions = _revisions(differences)
        who = revisions or _who(groups, errors, hosts)
        joint = " " if where.startswith("in ") and not revisions else ": "
        return f"{who}{joint}{where}" if where else who
    if verdict is Verdict.DAMAGED:
        words = dict.fromkeys(entry for one in fingerprints for entry in (*one.broken, *one.claims_broken))
        alike = len(groups) == 1 and not missing and len(groups[0].ranks) == len(fingerprints) > 1
        return f"{'all alike, and broken' if alike else 'broken'}: {listed(list(words), 2)}"
    if verdict is Verdict.INCOMPLETE:
        first = next(iter(missing.items()))
        return f"rank {first[0]}: {first[1]}" if len(missing) == 1 else f"{named(missing)}: no answer"
    if errors:
        return listed([f"{_rank(rank, hosts)}: {text}" for rank, text in errors.items()], 2)
    suspicious = dict.fromkeys(entry for one in fingerprints for entry in one.broken)
    if suspicious:
        return f"alike, and not good: {listed(list(suspicious), 2)}"
    if stage is Stage.IDENTITY:
        return "the identities are equal; no tensor byte was read, so the contents are not compared"
    return "the digests of these copies cannot be compared with each other"


def warnings(
    found: Partition,
    letters: Sequence[str],
    fingerprints: Sequence[Fingerprint],
    differences: Sequence[Difference],
    *,
    sides_left_out: int,
) -> tuple[str, ...]:
    """What the ranks warn of, each once with its ranks; other revisions of equal bytes; what cannot be compared."""
    said: defaultdict[str, list[int]] = defaultdict(list)
    for one in fingerprints:
        for text in one.warnings:
            said[text].append(one.rank)
    lines = [f"{named(ranks)}: {text}" for text, ranks in said.items()]
    for group in found.groups:
        revisions = revisions_of(group.fingerprints)
        if revisions is not None:
            lines.append(f"{revisions}: other revisions, and all that is compared is equal")
    own = dict.fromkeys(
        glob for one in differences if one.kind is DifferenceKind.MISSING and (glob := pattern(one.file)) is not None
    )
    if own:
        words = " ".join(f"--rank-local {shlex.quote(glob)}" for glob in own)
        lines.append(f"files that not all have may be each rank's own by their names; {words} leaves them out")
    apart = [
        name
        for name, group in zip(letters[1:], found.groups[1:], strict=True)
        if not proven_different(found.groups[0], group)
    ]
    if apart:
        lines.append(
            f"groups {letters[0]} and {', '.join(apart)} cannot be compared: their files are cut in other ways and "
            "not all of them have sha256"
        )
    if sides_left_out > 0:
        lines.append(f"the tables of {sides_left_out:,} more groups are not laid beside the others")
    return tuple(lines)


def _all(ranks: int) -> str:
    return {1: "the one rank holds", 2: "both hold"}.get(ranks, f"all {ranks:,} hold")


def _rank(rank: int, hosts: Mapping[int, str]) -> str:
    return f"rank {rank} ({hosts[rank]})" if hosts.get(rank) else f"rank {rank}"


def _those(ranks: Sequence[int], hosts: Mapping[int, str]) -> str:
    return _rank(ranks[0], hosts) if len(ranks) == 1 else named(ranks)


def _who(groups: Sequence[Group], errors: Mapping[int, str], hosts: Mapping[int, str]) -> str:
    blamed = [group for group in groups if group.standing in {Standing.WRONG, Standing.MINORITY}]
    others = [group for group in groups if group not in blamed]
    if blamed and others:
        ranks = [rank for group in blamed for rank in group.ranks]
        verb = "differs" if len(ranks) == 1 else "differ"
        return f"{_those(ranks, hosts)} {verb} from {named(rank for group in others for rank in group.ranks)}"
    if len(groups) == 2:
        return f"{_those(groups[0].ranks, hosts)} and {_those(groups[1].ranks, hosts)} differ"
    if len(groups) > 2:
        return f"{len(groups):,} groups of ranks differ"
    return f"{named([*errors, *(rank for group in groups for rank in group.ranks)])} differ"


def _revisions(differences: Sequence[Difference]) -> str:
    """The revisions, where they are why all that differs does."""
    causes = [one.cause for one in differences]
    if not causes or any(cause.code is not CauseCode.OTHER_REVISION for cause in causes):
        return ""
    return causes[0].facts[0]


def _where(
    differences: Sequence[Difference], fingerprints: Sequence[Fingerprint], *, weights_equal: bool | None
) -> str:
    proven = [one for one in differences if one.severity is Severity.ERROR]
    weights = [one for one in proven if one.role is Role.WEIGHTS]
    if weights and weights_equal:
        resharded = next((one for one in weights if one.cause.code is CauseCode.RESHARDED), None)
        return resharded.cause.summary if resharded else "all tensors are equal, only headers differ"
    if not weights:
        names = listed([one.file for one in proven])
        return f"{'weights equal; ' * bool(weights_equal)}{names}" if names else ""
    total = max(one.files for one in fingerprints)
    share = f"{len(weights):,} of {total:,}" if len(weights) <= total else f"{len(weights):,}"
    where = f"in {share} weight files: {listed([one.file for one in weights], 2)}"
    tensors = [segment.name for one in weights for segment in one.segments if segment.kind is SegmentKind.TENSOR]
    causes = {one.cause.summary for one in weights}
    if len(causes) == 1 and weights[0].kind in {DifferenceKind.STATE, DifferenceKind.MISSING}:
        where += f" ({causes.pop()})"
    elif tensors:
        left_out = sum(one.segments_left_out for one in weights)
        more = len(tensors) - 1 + left_out
        where += f", tensor {tensors[0]}" + (f" and {more:,} more" if more else "")
    return where
