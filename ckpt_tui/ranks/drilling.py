"""Below the segments, between ranks: which leaves differ, and their bytes read once more. Before anybody is blamed.

Every rank makes the same plan from the same messages, so an answer needs no names: it is a list in the plan's order.
What a peer sends is held to the plan's lengths, and left out where it does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..agreement.descent import Leaves, Look, Target, Window, examine, plan, targets
from ..agreement.tables import key_of
from ..digest.ranges import has_digest, is_zeros
from ..facts.drill import LEAF
from ..facts.outcome import CkptError, Interrupted
from ..present.safe import error_text
from .messages import Digests, Looks, Seen, Step, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..agreement import Testimony
    from ..agreement.descent import Drills
    from ..agreement.tables import Key
    from ..facts.agreement import Agreement
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
    if not found:
        return {}
    mine = Digests(leaves=tuple(_leaves(witness, target) for target, _ in _sides(found, witness.rank)))
    leaves: Leaves = {}
    for rank, told in ask(Step.LEAVES, Digests, encode(mine) if mine.leaves else b"").items():
        for (target, side), digests in _in_order(list(_sides(found, rank)), told.leaves):
            if len(digests) == -(-target.places[side].length // LEAF) * _DIGEST:
                leaves[side, target.file, target.key] = digests
    windows = plan(found, leaves, BYTES)
    seen = Looks(looks=tuple(_look(witness, *one, leaves) for one in _views(windows, witness.rank)))
    looks: dict[tuple[str, str, Key, int], Look] = {}
    for rank, answer in ask(Step.BYTES, Looks, encode(seen) if seen.looks else b"").items():
        for (window, side), look in _in_order(list(_views(windows, rank)), answer.looks):
            if look.error is None and len(look.data) != window.length:
                continue
            looks[_place(side, window)] = Look(look.data, look.same, look.error)

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
    tables = zip(witness.segments(target.file), witness.leaves(target.file), strict=False)
    return next((digests for segment, digests in tables if key_of(segment) == target.key), b"")


def _look(witness: Witness, window: Window, side: str, leaves: Leaves) -> Seen:
    """Read one leaf again, and hold it against its digest."""
    target = window.target
    whole = window.whole(side)
    try:
        data = witness.again(target.file, target.places[side].offset + window.start, whole)
    except Interrupted:
        raise
    except CkptError as error:
        return Seen(error=error_text(error))
    if len(data) < whole:
        return Seen(error="it ended early when it was read again")
    digest = window.digest(leaves[side, target.file, target.key])
    return Seen(data=data[: window.length], same=has_digest(data, digest))
