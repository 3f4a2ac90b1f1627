"""Every rank's bytes to every rank: one interface, through Gloo (`gloo.py`) or through the store (here)."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Protocol

from .messages import BadMessage, Present, Step, decode, encode, pack, unpack
from .pause import Pause

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ..facts.clock import Clock
    from .store import Store

#: Above so many ranks one of them reads all messages, and the others read them of it: the store serves a few large
#: values far sooner than as many small ones for each rank (docs/scale.md).
_BUNDLE_ABOVE = 64


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
        self._posted: dict[str, int] = {}
        self.absent: dict[int, str] = {}

    def gather(self, step: Step, payload: bytes) -> dict[int, bytes]:
        """Post, wait for all that are not gone until the deadline, and take what was decided."""
        base = f"{self._base}/{step.name.lower()}"
        if self._rank in self._ranks:
            self._posted[f"{base}/{self._rank}"] = self._store.post(f"{base}/{self._rank}", payload)
            self._store.append(f"{base}/posted", b"%d " % self._rank)
            self._store.add(f"{base}/count", 1)
        end = self._clock.monotonic() + self._seconds
        pause = Pause(self._clock, len(self._ranks))
        while self._store.add(f"{base}/count", 0) < len(self._ranks):
            self._watch()
            gone = self._gone()
            if self._clock.monotonic() >= end or (gone and not self._missing(base, gone)):
                break
            pause.sleep()
        present = self._decide(base)
        self.absent |= present.absent
        self._ranks = _within(present.runs, self._ranks)
        values = self._read(base, self._ranks) if self._ranks else ()
        return dict(zip(self._ranks, values, strict=True))

    @property
    def used(self) -> bool:
        """Whether this rank has taken part in a step."""
        return bool(self._posted)

    def clear(self) -> None:
        """Take what this rank gave out of the store's memory, once no other needs it any more."""
        for key, pieces in self._posted.items():
            self._store.clear(key, pieces)

    def _read(self, base: str, ranks: Sequence[int]) -> Sequence[bytes]:
        """What these ranks posted: where they are many, as the lowest of them has put it together."""
        if len(ranks) <= _BUNDLE_ABOVE:
            return self._each(base, ranks)
        key = f"{base}/bundle"
        if self._rank == ranks[0]:
            values = self._each(base, ranks)
            self._store.post(key, pack(values))
            return values
        end = self._clock.monotonic() + self._seconds
        pause = Pause(self._clock, len(ranks))
        while not self._store.has(key):
            self._watch()
            if self._clock.monotonic() >= end:
                return self._each(base, ranks)
            pause.sleep()
        try:
            payloads = unpack(self._store.fetch([key])[0])
        except BadMessage:  # or too long for one message
            return self._each(base, ranks)
        return payloads if len(payloads) == len(ranks) else self._each(base, ranks)

    def _each(self, base: str, ranks: Sequence[int]) -> list[bytes]:
        return self._store.fetch([f"{base}/{rank}" for rank in ranks])

    def _missing(self, base: str, gone: Collection[int] = ()) -> list[int]:
        """The ranks whose messages are not there, but for those that are gone."""
        key = f"{base}/posted"
        posted = frozenset(self._store.get([key])[0].split()) if self._store.has(key) else frozenset[bytes]()
        return [rank for rank in self._ranks if rank not in gone and b"%d" % rank not in posted]

    def _decide(self, base: str) -> Present:
        """Whose messages count: the first to say so decides for all."""
        key = f"{base}/present"
        raw = self._store.get([key])[0] if self._store.has(key) else self._store.decide(key, b"", self._seen(base))
        try:
            return decode(raw, Present)
        except BadMessage as error:
            raise GatherBroken(f"the ranks that are present: {error}") from None

    def _seen(self, base: str) -> bytes:
        """Whose messages are there, as far as this rank sees now."""
        gone = self._gone()
        whole = self._store.add(f"{base}/count", 0) >= len(self._ranks)
        absent = {rank: gone.get(rank, "did not answer in time") for rank in ([] if whole else self._missing(base))}
        return encode(Present(runs=_runs(rank for rank in self._ranks if rank not in absent), absent=absent))


def _runs(ranks: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """First and last of each unbroken run of ascending ranks."""
    runs: list[tuple[int, int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], rank
        else:
            runs.append((rank, rank))
    return tuple(runs)


def _within(runs: Sequence[tuple[int, int]], ranks: Iterable[int]) -> list[int]:
    """Those of the ranks that lie in one of the runs."""
    firsts = [first for first, _ in runs]
    return [rank for rank in ranks if (place := bisect_right(firsts, rank)) and rank <= runs[place - 1][1]]
