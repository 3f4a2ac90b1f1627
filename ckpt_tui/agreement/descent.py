"""From differing segments to differing bytes: what to look at, and what was found. Pure; reading is the caller's.

Ranks and folders descend alike, in three steps: `targets` says which segments are worth a look, and so whose leaves'
digests the sides need of each other; `plan` picks, from those digests, the leaves to read, within a budget a side
(`onward` does so for a place that was asked for); `examine` is given their bytes and tells how they differ. What it
found goes into `judge`, which names causes by it, or to whoever asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from ..facts.drill import DRILL_BYTES, LEAF, Drill
from ..facts.outcome import CkptError, Interrupted
from .bytes import Comparison
from .tables import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..facts.drill import Reread, SideDifference
    from ..facts.files import Segment

#: Bytes of a leaf's digest.
_DIGEST = 16
#: What was found, by file and by what tells a segment from others.
Drills = dict[tuple[str, Key], Drill]


@dataclass(frozen=True, slots=True)
class Target:
    """A segment to look into: the sides that can be held against the reference, and where it lies on each.

    `unlike` are sides on which it differs too, and of which no byte answers to a byte of the reference's. `ranks` says
    whom to ask for a side's bytes. Nothing before byte `at` of the segment, which begins an element, is looked at.
    """

    file: str
    key: Key
    reference: str
    others: tuple[str, ...]
    unlike: tuple[str, ...]
    places: Mapping[str, Segment]
    ranks: Mapping[str, int]
    at: int = 0

    @property
    def length(self) -> int:
        """As many bytes as all sides have of it."""
        return min(self.places[side].length for side in (self.reference, *self.others))

    def place(self, side: str) -> tuple[str, str, Key]:
        """What `Leaves` has it under."""
        return side, self.file, self.key

    @property
    def sides(self) -> tuple[str, ...]:
        """The reference first."""
        return self.reference, *self.others


class Window(NamedTuple):
    """One leaf to read, on the sides where it is not the reference's and on the reference's own."""

    target: Target
    leaf: int
    sides: tuple[str, ...]

    @property
    def start(self) -> int:
        """Bytes from the segment's start."""
        return self.leaf * LEAF

    @property
    def length(self) -> int:
        """Bytes to read."""
        return min(LEAF, self.target.length - self.start)

    @property
    def skip(self) -> int:
        """Bytes at its start that are not compared."""
        return max(self.target.at - self.start, 0)

    def whole(self, side: str) -> int:
        """Bytes that the leaf has on one side: what its digest is of."""
        return min(LEAF, self.target.places[side].length - self.start)

    def digest(self, leaves: bytes) -> bytes:
        """The digest of this leaf among those of a segment."""
        return leaves[self.leaf * _DIGEST : (self.leaf + 1) * _DIGEST]


class Look(NamedTuple):
    """The bytes of a window on one side, read once more. `same`: they have the digest that they had; or an error."""

    data: bytes = b""
    same: bool = True
    error: str | None = None
    #: As in `Reread`.
    doubt: str | None = None


def look(
    window: Window,
    side: str,
    digests: bytes,
    read: Callable[[str, int, int], Reread],
    has_digest: Callable[[bytes, bytes], bool],
) -> Look:
    """One leaf on one side, held against its digest. `read(file, offset, length)` raises CkptError where it cannot.

    `digests` are those of the segment's leaves on this side. Interrupted passes through.
    """
    whole = window.whole(side)
    try:
        data, doubt = read(window.target.file, window.target.places[side].offset + window.start, whole)
    except Interrupted:
        raise
    except CkptError as error:
        return Look(error=str(error))
    if len(data) < whole:
        return Look(error="it ended early when it was read again")
    return Look(data[: window.length], has_digest(data, window.digest(digests)), doubt=doubt)


#: The digests of a segment's leaves on one side, end to end.
Leaves = dict[tuple[str, str, Key], bytes]


def unstable_sides(drills: Drills) -> frozenset[str]:
    """The sides of which anything, read again, was not what its digests were made of."""
    return frozenset(side for drill in drills.values() for side, same in drill.read_again.items() if not same)


def plan(found: Sequence[Target], leaves: Leaves, budget: int = DRILL_BYTES) -> tuple[Window, ...]:
    """The leaves to read, in order of target and place.

    The first that differs of each target, then the last of each, which tells where a stretch ends, then the second.
    """
    chosen = list(_affordable([_ends_first(list(_differing(target, leaves))) for target in found], budget))
    return tuple(window for _, window in sorted(chosen, key=lambda one: (one[0], one[1].leaf)))


def onward(target: Target, leaves: Leaves, budget: int = DRILL_BYTES) -> tuple[Window, ...]:
    """The leaves to read of one segment that was asked for: in their order, from its `at` on."""
    return tuple(window for _, window in _affordable([list(_ahead(target, leaves))], budget))


def _ends_first(windows: list[Window]) -> list[Window]:
    return windows if len(windows) < 3 else [windows[0], windows[-1], *windows[1:-1]]


def _affordable(queues: Sequence[Sequence[Window]], budget: int) -> Iterator[tuple[int, Window]]:
    """One of each queue in turn, with its queue's place, until one does not fit the budget any more."""
    for turn in zip_longest(*queues):
        for place, window in enumerate(turn):
            if window is not None:
                budget -= max(map(window.whole, window.sides))
                if budget < 0:
                    return
                yield place, window


def _differing(target: Target, leaves: Leaves) -> Iterator[Window]:
    """The leaves that are not the same, as far as their digests are known."""
    held = {side: leaves.get(target.place(side)) for side in target.sides}
    reference = held[target.reference]
    if reference is None:
        return
    for leaf in range(-(-target.length // LEAF)):
        window = Window(target, leaf, target.sides)
        sides = tuple(
            side
            for side in target.others
            if (one := held[side]) is not None and window.digest(one) != window.digest(reference)
        )
        if sides:
            yield window._replace(sides=(target.reference, *sides))


def _ahead(target: Target, leaves: Leaves) -> Iterator[Window]:
    """Those that differ and are not wholly before the target's `at`."""
    return (window for window in _differing(target, leaves) if window.skip < window.length)


def examine(
    found: Sequence[Target],
    windows: Sequence[Window],
    leaves: Leaves,
    read: Callable[[str, Window], Look],
    is_zeros: Callable[[bytes, int], bool],
) -> Drills:
    """What differs in each target. `read(side, window)` gives bytes; `is_zeros` knows the digest of so many zeros."""
    planned: dict[tuple[str, Key], list[Window]] = {(one.file, one.key): [] for one in found}
    for window in windows:
        planned[window.target.file, window.target.key].append(window)
    return {(one.file, one.key): _drill(one, planned[one.file, one.key], leaves, read, is_zeros) for one in found}


def _drill(
    target: Target,
    windows: Sequence[Window],
    leaves: Leaves,
    read: Callable[[str, Window], Look],
    is_zeros: Callable[[bytes, int], bool],
) -> Drill:
    one = target.places[target.reference]
    dtype = one.dtype
    comparisons = {side: Comparison(side, one.offset, dtype, one.shape or ()) for side in target.others}
    again: dict[str, bool] = {}
    not_proven: dict[str, str] = {}
    errors = {side: "its bytes are not at hand" for side in target.sides if target.place(side) not in leaves}
    errors |= dict.fromkeys(target.unlike, "not there, or of another dtype, shape or length")
    done: set[tuple[str, int]] = set()
    for window in windows:
        looks = {side: read(side, window) for side in window.sides if side not in errors}
        for side, look in looks.items():
            if look.error is not None:
                errors[side] = look.error
            else:
                again[side] = again.get(side, True) and look.same
                if look.doubt is not None:
                    not_proven.setdefault(side, look.doubt)
        reference = looks.get(target.reference)
        if reference is None or reference.error is not None:
            continue
        for side in window.sides[1:]:
            if side in looks and looks[side].error is None:
                skip = window.skip
                comparisons[side].add(window.start + skip, reference.data[skip:], looks[side].data[skip:])
                done.add((side, window.leaf))
    ahead = list(_ahead(target, leaves))
    return Drill(
        reference=target.reference,
        sides=tuple(
            _result(
                comparison,
                target,
                [w for w in ahead if side in w.sides and (side, w.leaf) not in done],
                leaves,
                is_zeros,
            )
            for side, comparison in comparisons.items()
            if comparison.compared or not {side, target.reference} & errors.keys()
        ),
        read_again=again,
        leaves=-(-target.length // LEAF),
        leaves_differing=sum(1 for _ in _differing(target, leaves)),
        errors=errors,
        not_proven=not_proven,
    )


def _result(
    comparison: Comparison,
    target: Target,
    left_out: Sequence[Window],
    leaves: Leaves,
    is_zeros: Callable[[bytes, int], bool],
) -> SideDifference:
    def zeros(side: str) -> int:
        digests = leaves[target.place(side)]
        return sum(w.length for w in left_out if is_zeros(w.digest(digests), w.whole(side)))

    return comparison.result(
        not_read=sum(window.length for window in left_out),
        reference_zeros_not_read=zeros(target.reference),
        zeros_not_read=zeros(comparison.side),
        lacking=abs(target.places[target.reference].length - target.places[comparison.side].length),
    )
