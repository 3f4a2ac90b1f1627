"""Every rank's bytes to every rank: one interface, through Gloo (`gloo.py`) or through the store (here)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .messages import BadMessage, Present, Step, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ..facts.clock import Clock
    from .store import Store

_LOOK = 0.02


class GatherBroken(Exception):
    """The exchange failed, and no rank may be blamed for it by this alone."""


class Gather(Protocol):
    """An exchange among ranks that have all arrived at the step."""

    @property
    def absent(self) -> Mapping[int, str]:
        """The ranks that have fallen out on the way, with what is known of them."""

    def gather(self, step: Step, payload: bytes) -> dict[int, bytes]:
        """What each rank gave, by rank; empty bytes are an answer too. All ranks get the same."""


class StoreGather:
    """Through the store, with a deadline: what stays out is decided once, so that all who stay see the same ranks."""

    def __init__(
        self,
        store: Store,
        *,
        base: str,
        rank: int,
        ranks: Iterable[int],
        seconds: float,
        clock: Clock,
        watch: Callable[[], None],
        gone: Callable[[], Mapping[int, str]],
    ) -> None:
        self._store = store
        self._base = base
        self._rank = rank
        self._ranks = sorted(ranks)
        self._seconds = seconds
        self._clock = clock
        self._watch = watch
        self._gone = gone
        self.absent: dict[int, str] = {}

    def gather(self, step: Step, payload: bytes) -> dict[int, bytes]:
        """Post, wait for all that are not gone until the deadline, and take what was decided."""
        base = f"{self._base}/{step.name.lower()}"
        if self._rank in self._ranks:
            self._store.post(f"{base}/{self._rank}", payload)
            self._store.add(f"{base}/count", 1)
        end = self._clock.monotonic() + self._seconds
        while self._store.add(f"{base}/count", 0) < len(self._ranks):
            self._watch()
            gone = self._gone()
            if self._clock.monotonic() >= end or (gone and not self._missing(base, gone)):
                break
            self._clock.sleep(_LOOK)
        present = self._decide(base)
        self.absent |= present.absent
        self._ranks = [rank for rank in self._ranks if rank in present.ranks]
        values = self._store.fetch([f"{base}/{rank}" for rank in present.ranks]) if present.ranks else []
        return dict(zip(present.ranks, values, strict=True))

    def _missing(self, base: str, gone: Collection[int] = ()) -> list[int]:
        """The ranks whose messages are not there, but for those that are gone."""
        return [rank for rank in self._ranks if rank not in gone and not self._store.has(f"{base}/{rank}")]

    def _decide(self, base: str) -> Present:
        """Whose messages count: the first to say so decides for all."""
        gone = self._gone()
        whole = self._store.add(f"{base}/count", 0) >= len(self._ranks)
        absent = {rank: gone.get(rank, "did not answer in time") for rank in ([] if whole else self._missing(base))}
        posted = tuple(rank for rank in self._ranks if rank not in absent)
        raw = self._store.decide(f"{base}/present", b"", encode(Present(ranks=posted, absent=absent)))
        try:
            return decode(raw, Present)
        except BadMessage as error:
            raise GatherBroken(f"the ranks that are present: {error}") from None
