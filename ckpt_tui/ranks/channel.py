"""What a session's ranks arrange among themselves through the store: arrivals, the commit, and the parting."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..facts.outcome import CkptError
from .address import is_loopback
from .descriptors import for_gloo
from .display import see_off, show_verdict
from .gather import GatherBroken, StoreGather
from .gloo import GlooGather
from .messages import BadMessage, Break, decode, encode
from .pause import Pause
from .store import NobodyThere, Store, StoreLost, connect, local_address_towards
from .telemetry import COMMITTED, OPEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..facts.agreement import Agreement
    from ..facts.clock import Clock
    from .environment import Place
    from .gather import Gather
    from .joining import Joined

#: Above so many ranks all goes through the store: in a full mesh rank 0 needs up to 5 descriptors a rank, 1,024 is the
#: usual limit, and Gloo aborts the process that runs out of them (docs/scale.md).
MAX_GLOO_RANKS = 128
#: Seconds that Gloo may take to form, and more for every rank.
_FORM, _FORM_PER_RANK = 15.0, 0.25
#: Seconds for each rank that a step through the store may take, beside those.
_EXCHANGE_PER_RANK = 1 / 500
#: Seconds that viewers get to read the verdict before the ranks part.
_SEE_OFF = 1.0


class Broken(Exception):
    """The session cannot go on as it was: a rank is lost, or the exchange failed."""

    def __init__(self, why: Break) -> None:
        super().__init__(why.reason)
        self.why = why


class Channel:
    """One session's keys in the store, all of them behind its nonce."""

    def __init__(self, joined: Joined, *, clock: Clock, watch: Callable[[], None]) -> None:
        self._joined = joined
        self._clock = clock
        self._watch = watch
        self._store = joined.store
        self._size = len(joined.meeting.members)
        self._arrivals = 0
        self.unwritten = False
        self._shown = False
        self.base = f"{joined.scope}/session/{joined.meeting.nonce}"
        self.break_key = f"{self.base}/break"
        self._store.decide(self.break_key, b"", OPEN)
        joined.telemetry.guard(self.break_key)

    def form(self, place: Place, note: Callable[[str], None]) -> Gather:
        """Gloo among all ranks, or the store where Gloo does not form: the same for all of them."""
        unfit = self._unfit(place)
        if unfit is not None:
            if self._joined.me.rank == 0:
                note(unfit)
            return self.through_store("exchange", range(self._size), seconds=_FORM + self._size * _EXCHANGE_PER_RANK)
        gather: GlooGather | None = None
        try:
            gather = self._gloo(place)
        except (GatherBroken, NobodyThere) as error:
            note(f"{error}; the ranks compare through the store instead")
        self._store.add(f"{self.base}/gloo-failed", int(gather is None))
        self.arrive()
        failures = self._store.add(f"{self.base}/gloo-failed", 0)
        if gather is not None and not failures:
            return gather
        return self.through_store("exchange", range(self._size), seconds=_FORM + self._size * _EXCHANGE_PER_RANK)

    def _unfit(self, place: Place) -> str | None:
        """Why Gloo is not even tried, in words, the same on all ranks; None if it may be."""
        members = self._joined.meeting.members.values()
        if self._size > MAX_GLOO_RANKS:
            return f"{self._size} ranks: they compare through the store"
        for hello in members:
            needed = for_gloo(self._size, hosts_store=hello.rank == 0 and not place.agent_store)
            if hello.room is not None and hello.room < needed:
                return (
                    f"rank {hello.rank} ({hello.host}) may open {max(hello.room, 0):,} more files, and Gloo would need "
                    f"{needed:,}: the ranks compare through the store (ulimit -n raises that)"
                )
        if len({hello.space or hello.host for hello in members}) > 1 and all(
            is_loopback(hello.address) for hello in members
        ):
            return (
                "the ranks are on several hosts and reach the store through loopback: they compare through the store; "
                "GLOO_SOCKET_IFNAME would name an interface for Gloo"
            )
        return None

    def _gloo(self, place: Place) -> GlooGather:
        joined = self._joined
        seconds = _FORM + self._size * _FORM_PER_RANK
        own = connect(joined.torch, joined.address, seconds=seconds, patience=seconds, watch=self._watch)

        def forming() -> None:
            self._watch()
            if self._store.add(f"{self.base}/gloo-failed", 0):
                raise GatherBroken("Gloo did not form on another rank")

        return GlooGather.form(
            joined.torch,
            own,
            address=self._gloo_address(),
            interfaces=place.interfaces,
            rank=joined.me.rank,
            size=self._size,
            nonce=joined.meeting.nonce,
            seconds=seconds,
            forming=forming,
            watch=self._watch,
        )

    def _gloo_address(self) -> str:
        """Where Gloo is to listen here: on the way to the store, or where that is loopback, to a rank elsewhere."""
        own = self._joined.me.address
        if is_loopback(own):
            for hello in self._joined.meeting.members.values():
                if hello.address and not is_loopback(hello.address):
                    return local_address_towards(hello.address) or own
        return own

    def through_store(self, name: str, ranks: Iterable[int], *, seconds: float) -> StoreGather:
        """An exchange through the store; `name` keeps its keys apart from any other exchange's."""
        telemetry = self._joined.telemetry
        return StoreGather(
            self._store,
            base=f"{self.base}/{name}",
            rank=self._joined.me.rank,
            ranks=ranks,
            seconds=seconds,
            clock=self._clock,
            watch=self._watch,
            gone=lambda: telemetry.gone,
        )

    def arrive(self) -> None:
        """Wait until every rank has come to the same point. The watch ends it when one is lost."""
        self._arrivals += 1
        key = f"{self.base}/arrived/{self._arrivals}"
        here = self._store.add(key, 1)
        pause = Pause(self._clock, self._size)
        while here < self._size:
            self._watch()
            pause.sleep()
            here = self._store.add(key, 0)
        self._watch()

    def commit(self, digest: str) -> None:
        """Make the verdict stand: once every rank has come to it, and unless a rank was lost before.

        Without this the last message's loss would leave some ranks with a verdict and others without.
        """
        mine = self._store.add(f"{self.base}/verdict/{digest}", 1)
        if self._store.add(f"{self.base}/verdict/all", 1) == self._size:
            mine = self._store.add(f"{self.base}/verdict/{digest}", 0)
            outcome = COMMITTED if mine == self._size else encode(Break(reason="the ranks came to different verdicts"))
            self._take(self._store.decide(self.break_key, OPEN, outcome))
            return
        pause = Pause(self._clock, self._size)
        while not self._take(self._store.get([self.break_key])[0]):
            self._watch()
            pause.sleep()

    def declare(self, reason: str) -> None:
        """Break the session off for all; raises Broken with what was declared first."""
        self._take(self._store.decide(self.break_key, OPEN, encode(Break(reason=reason))))
        raise CkptError(f"the verdict stands, and yet: {reason}")

    def _take(self, raw: bytes) -> bool:
        if raw == OPEN:
            return False
        if raw == COMMITTED:
            return True
        try:
            raise Broken(decode(raw, Break))
        except BadMessage as error:
            raise Broken(Break(reason=f"the session was broken off with {error}")) from None

    def show(self, agreement: Agreement) -> None:
        """Let those see the verdict who watch from outside. Called on one rank, once the verdict stands."""
        with suppress(StoreLost):
            show_verdict(self._store, self._joined.meeting.call, agreement)
            self._shown = True

    def acknowledge(self, company: int, seconds: float, *, unwritten: bool = False) -> bool:
        """Wait until `company` ranks, this one among them, have written their results; whether all have.

        The answer is decided once: what some ranks go on to do on the strength of it, all do or none. `unwritten`: what
        this rank was to write could not be written; `self.unwritten` then says so on all ranks.
        """
        end = self._clock.monotonic() + seconds
        self.unwritten = unwritten
        try:
            if unwritten:
                self._store.add(f"{self.base}/unwritten", 1)
            if self._shown:
                see_off(self._store, self._joined.meeting.call, _SEE_OFF, self._clock)
            here = self._count(f"{self.base}/done", company, end) >= company
            together = self._store.decide(f"{self.base}/together", b"", b"yes" if here else b"no") == b"yes"
            self.unwritten = self._store.add(f"{self.base}/unwritten", 0) > 0
        except StoreLost:
            return False
        return together

    def see_off(self, company: int, seconds: float, *, hosts_store: bool, held: bool) -> None:
        """This rank asks nothing more; where the store goes with it, wait until `company` ranks have said the same.

        Those who were held (`held`) and those who left at once are counted apart.
        """
        end = self._clock.monotonic() + seconds
        key = f"{self.base}/{'let-go' if held else 'left'}"
        with suppress(StoreLost):
            self._store.add(key, 1)
            if hosts_store:
                self._count(key, company, end, step=0)

    def _count(self, key: str, company: int, end: float, *, step: int = 1) -> int:
        """Add to a counter, and wait until it has come to `company`; where it stands then, or at the end."""
        count = self._store.add(key, step)
        pause = Pause(self._clock, self._size)
        while count < company and self._clock.monotonic() < end:
            pause.sleep()
            count = self._store.add(key, 0)
        return count

    @property
    def store(self) -> Store:
        """The connection to the store, whose watch is the session's."""
        return self._store

    def close(self) -> None:
        """Nothing more will be asked of the store."""
        self._store.close()

    def linger(self, company: int, seconds: float) -> None:
        """The store goes with this process, which leaves early: let the others end their session first."""
        end = self._clock.monotonic() + seconds
        pause = Pause(self._clock, self._size)
        while self._clock.monotonic() < end and self._store.add(f"{self.base}/done", 0) < company:
            pause.sleep()
