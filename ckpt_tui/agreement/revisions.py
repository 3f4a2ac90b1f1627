"""Hub revisions: compared only between snapshots of one repository. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..facts.ranksets import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..facts.agreement import Fingerprint
    from .groups import Members


def revisions_of(fingerprints: Iterable[Fingerprint]) -> str | None:
    """`revision aaaaaaaaaaaa (rank 0) / bbbbbbbbbbbb (rank 1)` where one repository is there in several, else None."""
    by_repo: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in fingerprints:
        if one.repo_id is not None and one.revision is not None:
            by_repo[one.repo_id][one.revision].append(one.rank)
    for _, revisions in sorted(by_repo.items()):
        if len(revisions) > 1:
            by_rank = sorted(revisions.items(), key=lambda item: min(item[1]))
            return "revision " + " / ".join(f"{revision[:12]} ({named(ranks)})" for revision, ranks in by_rank)
    return None


def tell_groups_apart(groups: Sequence[Members]) -> bool:
    """Whether each revision is held by one group alone, so that the revisions may be why the groups differ."""
    holders: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    repos: defaultdict[str, set[str]] = defaultdict(set)
    for place, group in enumerate(groups):
        for one in group.fingerprints:
            if one.repo_id is not None and one.revision is not None:
                holders[one.repo_id, one.revision].add(place)
                repos[one.repo_id].add(one.revision)
    several = [(repo, revision) for repo, revisions in repos.items() if len(revisions) > 1 for revision in revisions]
    return bool(several) and all(len(holders[source]) == 1 for source in several)
