"""Facts that a user gave to be equal too: the engine's version, its flags. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..facts.agreement import GivenValue, Unequal
from ..facts.ranksets import named
from .groups import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts.agreement import Fingerprint


def unequal_facts(fingerprints: Sequence[Fingerprint]) -> tuple[Unequal, ...]:
    """What is not equal on all ranks that answered, by key. A rank whose answer is an error is told by that."""
    heard = sorted((one for one in fingerprints if one.error is None), key=lambda one: one.rank)
    found = []
    for key in sorted({key for one in heard for key in one.given}):
        ranks: defaultdict[str | None, list[int]] = defaultdict(list)
        for one in heard:
            ranks[one.given.get(key)].append(one.rank)
        if len(ranks) > 1:
            values = (GivenValue(value=value, ranks=tuple(those)) for value, those in ranks.items())
            found.append(Unequal(key=key, values=tuple(values)))
    return tuple(found)


def in_words(unequal: Sequence[Unequal]) -> str:
    """`engine is 0.8 on ranks [0,2], 0.9 on rank 1`; an empty string where all is equal."""
    return listed([f"{one.key} is {', '.join(map(_said, one.values))}" for one in unequal])


def _said(one: GivenValue) -> str:
    return f"{'not given' if one.value is None else one.value} on {named(one.ranks)}"
