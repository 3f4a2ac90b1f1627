"""Which ranks hold the same. Pure, and linear in the number of ranks.

Equality has to be an equivalence whatever mixture of digests the ranks bring: some without sha256 (`--fast`), some
whose files were cut into other segments. Two ranks hold the same weights where a chain of ranks between them proves
it, and differ only where a pair of digests proves that. What neither proves stays undecided and is never merged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..facts.agreement import Fingerprint, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(eq=False, slots=True)
class WeightClass:
    """Ranks whose weight files are proven equal: every content digest of theirs by how files were cut."""

    sha256: str | None = None
    contents: dict[str, str] = field(default_factory=dict)

    def differs(self, other: WeightClass) -> bool:
        """Whether the digests prove a difference: distinct classes with sha256, or cut the same way."""
        if self is other:
            return False
        both_whole = self.sha256 is not None and other.sha256 is not None
        return both_whole or not self.contents.keys().isdisjoint(other.contents)


@dataclass(frozen=True, slots=True)
class Members:
    """Ranks that hold the same, in order of rank.

    `whole`: all that the stage compares is known. Else the files are broken, and alike as far as they can be read.
    """

    fingerprints: tuple[Fingerprint, ...]
    whole: bool
    weights: WeightClass | None

    @property
    def first(self) -> Fingerprint:
        """The representative: the lowest rank."""
        return self.fingerprints[0]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks, ascending."""
        return tuple(member.rank for member in self.fingerprints)


@dataclass(frozen=True, slots=True)
class Partition:
    """The groups by lowest rank, and the ranks that belong to none, each with the reason in words."""

    groups: tuple[Members, ...]
    loose: dict[int, str]
    #: Ranks without a group that tell something which can be held beside the others' all the same.
    comparable: tuple[Fingerprint, ...]
    #: The class of proven equal weights of every rank that knows its weights, in a group or not.
    weights: dict[int, WeightClass]


def partition(fingerprints: Iterable[Fingerprint], stage: Stage) -> Partition:
    """Put every rank into the one group whose members hold what it holds, or say why it has no group."""
    everyone = sorted(fingerprints, key=lambda one: one.rank)
    layout = _layout(everyone)
    loose = {one.rank: why for one in everyone if (why := _reason(one, layout, stage)) is not None}
    weights: dict[int, WeightClass] = {}
    if stage is Stage.CONTENT:
        weights, unplaced = _weight_classes([one for one in everyone if one.layout == layout and _weighed(one)])
        loose = unplaced | loose
    members: defaultdict[tuple[object, ...], list[Fingerprint]] = defaultdict(list)
    for one in everyone:
        if one.rank not in loose:
            whole = _known(one, stage)
            members[whole, one.identity, one.sidecars, weights.get(one.rank) if whole else one.partial].append(one)
    groups = sorted(
        (Members(tuple(group), key[0] is True, weights.get(group[0].rank)) for key, group in members.items()),
        key=lambda group: group.first.rank,
    )
    comparable = [one for one in everyone if one.rank in loose and one.layout == layout and _tells(one)]
    return Partition(tuple(groups), loose, tuple(comparable), weights)


def groups_of(fingerprints: Sequence[Fingerprint], stage: Stage) -> tuple[tuple[int, ...], ...]:
    """Equivalence classes of ranks, by lowest rank; the lowest rank of each represents it in the exchange of tables.

    More than one class in the identity stage means that the identities differ. In the content stage a rank that could
    not read all of its files is a class of its own, so that its table can still prove a difference.
    """
    found = partition(fingerprints, stage)
    if stage is Stage.IDENTITY:
        # Sidecars that are no part of the identity are judged with the content: they do not stop a session.
        keys: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for group in found.groups:
            keys[group.first.identity, group.first.partial if group.first.identity is None else None] += group.ranks
        return tuple(sorted(tuple(sorted(ranks)) for ranks in keys.values()))
    classes = [group.ranks for group in found.groups]
    classes += [(one.rank,) for one in found.comparable if one.error is None]
    return tuple(sorted(classes))


def proven_different(one: Members, other: Members) -> bool:
    """Whether what two groups say cannot both be of the same bytes."""
    if _both_known_and_differ(one.first.identity, other.first.identity):
        return True
    if _both_known_and_differ(one.first.sidecars, other.first.sidecars):
        return True
    if not (one.whole and other.whole):
        # Broken beside whole, or broken in another way: the files' states, sizes or digests are not the same.
        return one.whole is not other.whole or one.first.partial != other.first.partial
    return one.weights is not None and other.weights is not None and one.weights.differs(other.weights)


def any_proven_different(found: Partition) -> bool:
    """Whether any two ranks are proven different, without looking at every pair."""
    groups = found.groups
    everyone = [*(group.first for group in groups), *found.comparable]
    if len({one.identity for one in everyone} - {None}) > 1 or len({one.sidecars for one in everyone} - {None}) > 1:
        return True
    if len(groups) > 1 and not all(group.whole for group in groups):
        return True
    return any_differ(found.weights.values())


def any_differ(weights: Iterable[WeightClass]) -> bool:
    """Whether any two of these classes are proven different."""
    classes = set(weights)
    with_sha256 = sum(one.sha256 is not None for one in classes)
    cuts = Counter(cut for one in classes for cut in one.contents)
    return with_sha256 > 1 or any(count > 1 for count in cuts.values())


def _both_known_and_differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _layout(fingerprints: Sequence[Fingerprint]) -> int:
    """The digests' layout that most ranks speak; of equal numbers the newest."""
    counts = Counter(one.layout for one in fingerprints if _tells(one))
    return max(counts, key=lambda layout: (counts[layout], layout), default=0)


def _reason(one: Fingerprint, layout: int, stage: Stage) -> str | None:
    """Why a rank cannot be compared, in words; None when it can."""
    if one.error is not None:
        return one.error
    if one.layout != layout:
        return f"speaks digest layout {one.layout} ({one.tool}), the others {layout}: use one version everywhere"
    if one.undecided:
        return "; ".join(one.reasons) or listed(one.undecided)
    if _known(one, stage) or (one.broken and one.partial is not None):
        return None
    return "its identity is not known" if one.identity is None else "its content is not known"


def _tells(one: Fingerprint) -> bool:
    """Whether a rank says anything of its checkpoint beside an error."""
    return one.error is None or one.identity is not None


def _known(one: Fingerprint, stage: Stage) -> bool:
    if stage is Stage.IDENTITY:
        return one.identity is not None
    return None not in {one.identity, one.sidecars} and _weighed(one)


def _weighed(one: Fingerprint) -> bool:
    return one.content is not None and one.segmentation is not None


def listed(names: Sequence[str], limit: int = 3) -> str:
    """The first few, and how many more."""
    more = len(names) - limit
    return "; ".join(names[:limit]) + (f"; and {more:,} more" if more > 0 else "")


def _weight_classes(ranks: Sequence[Fingerprint]) -> tuple[dict[int, WeightClass], dict[int, str]]:
    """Each rank's class of proven equal weights, and the ranks that fit several classes which differ.

    Ranks with sha256 are told apart by it and then, cut the same way, by content; the others join the class that has
    their content, where there is exactly one.
    """
    by_sha256: defaultdict[str, list[Fingerprint]] = defaultdict(list)
    for one in ranks:
        if one.content_sha256 is not None:
            by_sha256[one.content_sha256].append(one)
    classes: dict[int, WeightClass] = {}
    of_content: defaultdict[tuple[str, str], set[WeightClass]] = defaultdict(set)
    for sha256, same in by_sha256.items():
        torn = _contradict(same)
        split: dict[object, WeightClass] = {}
        for one in same:
            cut, content = _content(one)
            found = split.setdefault((cut, content) if torn else None, WeightClass(sha256))
            found.contents[cut] = content
            of_content[cut, content].add(found)
            classes[one.rank] = found
    unplaced: dict[int, str] = {}
    for one in ranks:
        if one.content_sha256 is not None:
            continue
        cut, content = _content(one)
        fitting = of_content[cut, content]
        if len(fitting) > 1:
            unplaced[one.rank] = "has no sha256, and its content fits ranks that differ: run it without --fast"
            continue
        if not fitting:
            fitting.add(WeightClass(None, {cut: content}))
        classes[one.rank] = next(iter(fitting))
    return classes, unplaced


def _content(one: Fingerprint) -> tuple[str, str]:
    return one.segmentation or "", one.content or ""


def _contradict(same: Iterable[Fingerprint]) -> bool:
    """Whether ranks of one sha256, cut the same way, have several contents: one of them computes wrongly."""
    contents: defaultdict[str, set[str]] = defaultdict(set)
    for one in same:
        cut, content = _content(one)
        contents[cut].add(content)
    return any(len(found) > 1 for found in contents.values())
