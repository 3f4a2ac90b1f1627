"""From a place to a meeting: torch, the store, telemetry, and who else is there."""

from __future__ import annotations

import os
import secrets
from concurrent.futures import wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..digest.host import host_name
from ..facts.outcome import CkptError
from ..facts.scan import DIGEST_LAYOUT
from ..facts.version import TOOL
from ..present.safe import error_text
from ..present.units import duration
from .calls import LOOK, Caller
from .descriptors import for_gloo, room
from .door import Door
from .meet import Meet, Meeting
from .messages import PROTOCOL, Hello
from .native import load_torch
from .processes import process_space, start_time
from .telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from ..facts.clock import Clock
    from ..facts.settings import RankSettings
    from ..facts.status import RankStatus
    from .address import Address
    from .display import Display
    from .environment import Place
    from .store import Store

#: However short `--rank-timeout` is, the store gets this long to answer.
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Joined:
    """A rank that has met the others."""

    torch: ModuleType
    store: Store
    telemetry: Telemetry
    meeting: Meeting
    me: Hello
    #: Where this process finds the store.
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
        numbered: Callable[[Place], None],
        here: Callable[[Mapping[int, Hello]], None],
        display: Display,
        screen: bool = False,
    ) -> None:
        """`numbered` gets the place once it has a number, `here` who has come; `screen`: somebody sits here."""
        self._display = display
        self._screen = screen
        self._place = place
        self._settings = settings
        self._clock = clock
        self._status = status
        self._watch = watch
        self._note = note
        self._numbered = numbered
        self._here = here
        self._deadline = clock.monotonic() + settings.join_timeout
        self.scope = f"ckpt-tui/{place.scope}" if place.scope else "ckpt-tui"
        self.telemetry: Telemetry | None = None

    def run(self) -> Joined:
        """Join. NobodyThere where there is no store in time; UsageError where these ranks can never be a session."""
        place = self._place
        torch = self._importing()
        door = Door(
            torch=torch,
            place=place,
            scope=self.scope,
            patience=max(self._settings.rank_timeout, _PATIENCE),
            clock=self._clock,
            left=self._left,
            watch=self._watch,
            note=self._note,
        )
        store = door.open()
        handed_out, place = place.rank is None, door.place
        self._numbered(place)
        me = Hello(
            protocol=PROTOCOL,
            layout=DIGEST_LAYOUT,
            tool=TOOL,
            rank=place.number,
            world_size=place.world_size,
            host=host_name(),
            pid=os.getpid(),
            token=secrets.token_hex(16),
            space=process_space(),
            started=start_time(os.getpid()),
            address="" if place.interfaces else door.own_address,
            course=_course(self._settings),
            room=room(for_gloo(place.world_size, hosts_store=place.hosts_store)),
            refusal=self._settings.refusal,
            holds=self._settings.hold > 0,
            screen=self._screen,
            handed_out=handed_out,
        )
        telemetry = Telemetry(
            door.connect(),
            me,
            self._status,
            scope=self.scope,
            rank_timeout=self._settings.rank_timeout,
            clock=self._clock,
            display=self._display,
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
        return Joined(torch(), store, telemetry, meeting, me, door.address, self.scope)

    def _importing(self) -> Callable[[], ModuleType]:
        """Begin to import torch, which takes a second or more; what to call when it is needed."""
        caller = Caller("torch")
        imported = caller.submit(load_torch)
        caller.close()

        def torch() -> ModuleType:
            while not imported.done():
                self._watch()
                if not self._left():
                    raise CkptError(f"torch was not imported within {duration(self._settings.join_timeout)}")
                wait([imported], LOOK)
            error = imported.exception()
            if error is not None:
                raise CkptError(f"torch cannot be imported: {error_text(error)}")
            return imported.result()

        return torch

    def _left(self) -> float:
        return max(self._deadline - self._clock.monotonic(), 0.0)


def _course(settings: RankSettings) -> tuple[str, ...]:
    chosen = (
        ("--keep-going", settings.keep_going),
        ("--identity-only", settings.scan.identity_only),
        ("--strict", settings.strict),
        ("--fast", not settings.scan.sha256),
    )
    return tuple(flag for flag, on in chosen if on)
