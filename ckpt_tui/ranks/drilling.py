"""Below the segments, between ranks: which leaves differ, and their bytes read once more. Before anybody is blamed.

Every rank that takes part makes the same plan from the same messages, so an answer needs no names: it is a list in the
plan's order. What a peer sends is held to the plan's lengths, and left out where it does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..agreement.descent import Leaves, Look, Target, Window, examine, look, onward, plan
from ..agreement.tables import key_of
from ..agreement.targets import targets
from ..digest.ranges import has_digest, is_zeros
from ..facts.drill import LEAF
from ..facts.outcome import CkptError
from .messages import Digests, Looks, Seen, Step, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..agreement import Testimony
    from ..agreement.descent import Drills
    from ..agreement.tables import Key
    from ..facts.agreement import Agreement
    from ..facts.drill import Drill
    from .exchange import Ask
    from .witness import Witness

A = TypeVar("A")
B = TypeVar("B")

#: So many bytes a side are read again and sent.
BYTES = 8 << 20
#: Bytes of a leaf's digest.
_DIGEST = 16


def drilled(agreement: Agreement, heard: Sequence[Testimony], witness: Witness, ask: Ask) -> Drills:
    """What the bytes tell of the differences. Collective: `ask` gathers one answer of each rank."""
    found = targets(agreement, heard, BYTES)
    return _drilled(found, lambda leaves: plan(found, leaves, BYTES), witness, ask) if found else {}


def look_into(target: Target, witness: Witness, ask: Ask) -> Drill:
    """What the bytes of one segment tell. Collective among those who speak for its sides."""
    (drill,) = _drilled((target,), lambda leaves: onward(target, leaves, BYTES), witness, ask).values()
    return drill


def _drilled(
    found: Sequence[Target], pick: Callable[[Leaves], tuple[Window, ...]], witness: Witness, ask: Ask
) -> Drills:
    mine = Digests(leaves=tuple(_leaves(witness, target) for target, _ in _sides(found, witness.rank)))
    leaves: Leaves = {}
    for rank, told in ask(Step.LEAVES, Digests, encode(mine) if mine.leaves else b"").items():
        for (target, side), digests in _in_order(list(_sides(found, rank)), told.leaves):
            if len(digests) == -(-target.places[side].length // LEAF) * _DIGEST:
                leaves[side, target.file, target.key] = digests
    windows = pick(leaves)
    seen = Looks(looks=tuple(_seen(witness, *one, leaves) for one in _views(windows, witness.rank)))
    looks: dict[tuple[str, str, Key, int], Look] = {}
    for rank, answer in ask(Step.BYTES, Looks, encode(seen) if seen.looks else b"").items():
        for (window, side), one in _in_order(list(_views(windows, rank)), answer.looks):
            if one.error is None and len(one.data) != window.length:
                continue
            looks[_place(side, window)] = Look(one.data, one.same, one.error, one.doubt)

    def read(side: str, window: Window) -> Look:
        return looks.get(_place(side, window), Look(error="its rank did not tell its bytes"))

    return examine(found, windows, leaves, read, is_zeros)


def _sides(found: Sequence[Target], rank: int) -> Iterator[tuple[Target, str]]:
    """What a rank speaks for."""
    return ((target, side) for target in found for side in target.sides if target.ranks[side] == rank)


def _views(windows: Sequence[Window], rank: int) -> Iterator[tuple[Window, str]]:
    """What a rank has to read."""
    return ((window, side) for window in windows for side in window.sides if window.target.ranks[side] == rank)


def _place(side: str, window: Window) -> tuple[str, str, Key, int]:
    return side, window.target.file, window.target.key, window.leaf


def _in_order(asked: Sequence[A], told: Sequence[B]) -> Iterator[tuple[A, B]]:
    return zip(asked, told, strict=True) if len(asked) == len(told) else iter(())


def _leaves(witness: Witness, target: Target) -> bytes:
    """The digests of a segment's leaves; none where they are not known here."""
    try:
        tables = zip(witness.segments(target.file), witness.leaves(target.file), strict=False)
    except CkptError:
        return b""
    return next((digests for segment, digests in tables if key_of(segment) == target.key), b"")


def _seen(witness: Witness, window: Window, side: str, leaves: Leaves) -> Seen:
    """One leaf, read again here."""
    found = look(window, side, leaves[window.target.place(side)], witness.again, has_digest)
    return Seen(data=found.data, same=found.same, error=found.error, doubt=found.doubt)
