"""The way to the store: rank 0 serves it, or the launcher's agent, or the job itself; all others knock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..facts.outcome import UsageError
from ..present.units import duration
from .address import Address
from .calls import nothing
from .descriptors import for_store, room
from .reminder import Reminder
from .store import NobodyThere, Store, connect, is_here, listen, reach, taken

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from types import ModuleType

    from ..facts.clock import Clock
    from .environment import Place

#: How long the holder of a port that is taken may need to show that it is a store. torch asks the resolver who it is
#: that it connects to: where a question gets lost, or the name server is gone, that alone takes 5 or 10 s.
_RECOGNISE = 12.0
#: How long the search for this machine's own address may take.
_REACH = 3.0
#: How long a rank without a number tries to reach the store before it looks again whether the store is its to serve.
_TURN = 2.0


@dataclass(kw_only=True)
class Door:
    """One rank's way to the store. `left` says how many seconds there are until it must have been found."""

    #: Waits for torch, which is imported meanwhile.
    torch: Callable[[], ModuleType]
    #: Has its number once the door is open.
    place: Place
    scope: str
    patience: float
    clock: Clock
    left: Callable[[], float]
    watch: Callable[[], None]
    note: Callable[[str], None]
    #: Where this process finds the store: known once it is open.
    address: Address = field(init=False)
    #: The address of this machine on the way there, under which other machines may find it; '' if it is not known.
    own_address: str = ""

    def open(self) -> Store:
        """The first connection. NobodyThere where there is no store in time."""
        named = self.place.store
        self.address = named
        if self.place.rank is None:
            return self._numbered()
        if not self.place.hosts_store:
            self.own_address = reach(named, self.left(), self.watch, self._waiting())
            return self.connect(watch=self.watch)
        listening = listen(named)
        if listening is None:
            return self._knock()
        return self._serve(listening)

    def _serve(self, listening: socket) -> Store:
        """The store is this process's. UsageError where it could not take all ranks in."""
        needed = for_store(self.place.world_size)
        if (open_ := room(needed)) < needed:
            listening.close()
            raise UsageError(
                f"this process serves the store for {self.place.world_size:,} ranks and needs {needed:,} more files "
                f"open for that; its limit leaves {max(open_, 0):,}: raise it with ulimit -n"
            )
        host, port = listening.getsockname()[:2]
        # By whatever name others find this machine: for its own rank loopback is the shortest way.
        self.address = Address("127.0.0.1" if host in {"::", "0.0.0.0"} else host, port)  # noqa: S104
        store = self.connect(watch=self.watch, listening=listening)
        self._find_own_address(Address(self.place.store.host, port))
        return store

    def _numbered(self) -> Store:
        """The first to listen on the master's host serves the store and is rank 0; the others get their numbers of it.

        It may have gone before anybody else came: each turn asks again whose the store is.
        """
        named = self.place.store
        self.torch()  # who listens must serve at once
        waiting = self._waiting()
        while True:
            here = is_here(named.host)
            listening = listen(named) if here else None
            if listening is not None:
                self.place = replace(self.place, rank=0)
                return self._serve(listening)
            try:
                self.own_address = reach(named, min(self.left(), _TURN), self.watch, waiting)
                break
            except NobodyThere as error:
                if not self.left():
                    raise NobodyThere(f"{error}; the first rank that runs there is to listen") from None
        seconds = min(self.left(), _RECOGNISE) if here else self.left()
        try:
            store = self._recognised(named, seconds)
        except NobodyThere:
            if not here:
                raise
            raise UsageError(f"{taken(named)}, and not by a store of ranks: take another port") from None
        number = store.add(f"{self.scope}/numbers", 1)
        if number >= self.place.world_size:
            raise UsageError(
                f"{number} ranks have come to {named} before this one, and the world size is {self.place.world_size}: "
                "this one is too many"
            )
        self.place = replace(self.place, rank=number)
        return store

    def connect(self, watch: Callable[[], None] = nothing, *, listening: socket | None = None) -> Store:
        """Another connection. Telemetry's has no watch: it is telemetry that is watched."""
        return connect(
            self.torch(), self.address, seconds=self.left(), patience=self.patience, watch=watch, listening=listening
        )

    def _knock(self) -> Store:
        """The port is taken: by the job's own store, by another process that says rank 0, or by a stranger."""
        complaint = UsageError(
            f"{taken(self.address)}: is another rank 0 or an older session running? Take another port"
        )
        try:
            store = self._recognised(self.address, _RECOGNISE)
        except NobodyThere:
            raise complaint from None
        if not self.place.job_store and not store.has(f"{self.scope}/calls/0"):
            raise complaint
        self._find_own_address(self.address)
        return store

    def _recognised(self, address: Address, seconds: float) -> Store:
        """A connection to what listens there, which may be no store."""
        reminder = Reminder(self.clock)

        def watch() -> None:
            self.watch()
            if reminder.due():
                self.note(f"waiting {duration(seconds)} at most for what listens at {address} to answer as a store")

        return connect(self.torch(), address, seconds=seconds, patience=self.patience, watch=watch)

    def _find_own_address(self, address: Address) -> None:
        try:
            self.own_address = reach(address, min(_REACH, self.left()), self.watch, lambda _why: None)
        except NobodyThere as error:
            self.note(f"rank 0 listens on port {address.port} of this machine, but {error}: is this the right machine?")

    def _waiting(self) -> Callable[[str], None]:
        """Says every now and then why there is no store yet."""
        reminder = Reminder(self.clock)

        def waiting(why: str) -> None:
            if reminder.due():
                self.note(f"waiting for the store: {why}; {duration(self.left())} left")

        return waiting
