"""From a place to a meeting: torch, the store, telemetry, and who else is there."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..digest.host import host_name
from ..facts.outcome import UsageError
from ..facts.scan import DIGEST_LAYOUT
from ..facts.version import TOOL
from ..present.units import duration
from .address import Address
from .calls import Caller, NoAnswer
from .meet import Meet, Meeting
from .messages import PROTOCOL, Hello
from .native import load_torch
from .processes import process_space, start_time
from .store import NobodyThere, Store, connect, listen, reach, taken
from .telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from ..facts.clock import Clock
    from ..facts.settings import RankSettings
    from ..facts.status import RankStatus
    from .environment import Place

#: How long the holder of a port that is taken may need to show that it is the store of a session.
_RECOGNISE = 3.0
#: Seconds between two lines for people who wait for the store, and before the first of them.
_SAY, _SAY_FIRST = 5.0, 1.0


@dataclass(frozen=True, slots=True)
class Joined:
    """A rank that has met the others."""

    torch: ModuleType
    store: Store
    telemetry: Telemetry
    meeting: Meeting
    me: Hello
    #: Where the store is, also where the port was the system's choice.
    address: Address
    scope: str


class Joining:
    """The steps. What is there already is in its fields, so that a rank which gives up half-way can still say so."""

    def __init__(
        self,
        place: Place,
        settings: RankSettings,
        *,
        clock: Clock,
        status: Callable[[], RankStatus],
        watch: Callable[[], None],
        note: Callable[[str], None],
        here: Callable[[Mapping[int, Hello]], None],
    ) -> None:
        self._place = place
        self._settings = settings
        self._clock = clock
        self._status = status
        self._watch = watch
        self._note = note
        self._here = here
        self._deadline = clock.monotonic() + settings.join_timeout
        self.scope = f"ckpt-tui/{place.scope}" if place.scope else "ckpt-tui"
        self.telemetry: Telemetry | None = None

    def run(self) -> Joined:
        """Join. NobodyThere where there is no store in time; UsageError where these ranks can never be a session."""
        place = self._place
        torch = self._import()
        store, address, own_address = self._open(torch)
        me = Hello(
            protocol=PROTOCOL,
            layout=DIGEST_LAYOUT,
            tool=TOOL,
            rank=place.rank,
            world_size=place.world_size,
            host=host_name(),
            pid=os.getpid(),
            token=secrets.token_hex(16),
            space=process_space(),
            started=start_time(os.getpid()),
            address="" if place.interfaces else own_address,
            course=_course(self._settings),
        )
        telemetry = Telemetry(
            self._connect(torch, address),
            me,
            self._status,
            scope=self.scope,
            rank_timeout=self._settings.rank_timeout,
            clock=self._clock,
        )
        telemetry.start()
        self.telemetry = telemetry
        meet = Meet(
            store=store,
            telemetry=telemetry,
            me=me,
            scope=self.scope,
            hosts_store=place.hosts_store,
            clock=self._clock,
            watch=self._watch,
            note=self._note,
            here=self._here,
        )
        meeting = meet.run(self._deadline, self._settings.join_timeout)
        return Joined(torch, store, telemetry, meeting, me, address, self.scope)

    def _import(self) -> ModuleType:
        caller = Caller("torch")
        try:
            torch: ModuleType = caller.call(load_torch, self._left(), self._watch)
        except NoAnswer:
            raise NobodyThere(f"torch was not imported within {duration(self._settings.join_timeout)}") from None
        caller.close()
        return torch

    def _left(self) -> float:
        return max(self._deadline - self._clock.monotonic(), 0.0)

    def _open(self, torch: ModuleType) -> tuple[Store, Address, str]:
        """The store, where it is, and the address of this machine from which it is reached."""
        address = self._place.store
        if self._place.hosts_store:
            listening = listen(address)
            if listening is None:
                return self._other_rank_0(torch, address), address, ""
            address = Address(address.host, listening.getsockname()[1])
            store = connect(
                torch,
                address,
                seconds=self._left(),
                patience=self._settings.rank_timeout,
                watch=self._watch,
                listening=listening,
            )
            return store, address, reach(address, self._left(), self._watch, self._waiting())
        own_address = reach(address, self._left(), self._watch, self._waiting())
        return self._connect(torch, address, watch=self._watch), address, own_address

    def _connect(self, torch: ModuleType, address: Address, watch: Callable[[], None] | None = None) -> Store:
        """A connection as a client. Telemetry's has no watch: it is telemetry that is watched."""
        return connect(
            torch,
            address,
            seconds=self._left(),
            patience=self._settings.rank_timeout,
            watch=watch or (lambda: None),
        )

    def _other_rank_0(self, torch: ModuleType, address: Address) -> Store:
        """The port is taken. If by the store of this session, then another process says rank 0: meet it, and say so."""
        complaint = UsageError(f"{taken(address)}: is another rank 0 or an older session running? Take another port")
        try:
            store = connect(torch, address, seconds=_RECOGNISE, patience=self._settings.rank_timeout, watch=self._watch)
        except NobodyThere:
            raise complaint from None
        if not store.has(f"{self.scope}/calls/0"):
            raise complaint
        return store

    def _waiting(self) -> Callable[[str], None]:
        """Says every few seconds what the store is being waited for."""
        said = self._clock.monotonic() - _SAY + _SAY_FIRST

        def waiting(why: str) -> None:
            nonlocal said
            now = self._clock.monotonic()
            if now - said >= _SAY:
                said = now
                self._note(f"waiting for the store of rank 0: {why}; {duration(self._left())} left")

        return waiting


def _course(settings: RankSettings) -> tuple[str, ...]:
    chosen = (("--keep-going", settings.keep_going), ("--identity-only", settings.scan.identity_only))
    return tuple(flag for flag, on in chosen if on)
