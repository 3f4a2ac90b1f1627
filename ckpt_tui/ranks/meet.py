"""Ranks meet through the store, before Gloo is entered: who is here, do they fit, and what is the session called?

Every rank counts its calls in this scope, so that the second call of a job meets second calls. A meeting's outcome is
decided once, by whoever puts it into the store first, and is the same for all: a usage error, or a start with all
ranks, or a start without those that had not come in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.outcome import CkptError, Exit, UsageError
from ..facts.version import TOOL
from ..present.safe import escape
from ..present.units import duration
from .display import DIRECTORY
from .messages import PROTOCOL, BadMessage, Hello, Listed, Opening, Pulse, decode, encode, encode_line, pack, unpack
from .reminder import Reminder
from .roster import make_nonce, quarrel, read_roster, twice, waiting_words
from .telemetry import pulse_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..facts.clock import Clock
    from .store import Store
    from .telemetry import Telemetry

#: Seconds between two looks at whether it has been decided, and more for every rank; and between two at who has come.
_LOOK, _LOOK_PER_RANK, _READ_PER_RANK = 0.05, 1 / 2000, 1 / 100
#: For how long the beat of this rank's earlier process is watched before it counts as gone.
_STILL = 3.0
#: For how long the host of the store waits at most for the others to read why there is no session.
_SEE_OFF = 1.0


class GivenUp(CkptError):
    """This rank came after the others had stopped waiting for it."""

    code = Exit.INCOMPLETE


@dataclass(frozen=True, slots=True)
class Meeting:
    """The session's members, and what is known of the ranks that are not. `call`: where its meeting lies."""

    call: str
    nonce: str
    members: Mapping[int, Hello]
    absent: Mapping[int, str]


@dataclass(frozen=True, kw_only=True)
class Meet:
    """One rank's part in a meeting. `note` gets a line for people every now and then; `here` gets who has come."""

    store: Store
    telemetry: Telemetry
    me: Hello
    scope: str
    hosts_store: bool
    clock: Clock
    watch: Callable[[], None]
    note: Callable[[str], None]
    here: Callable[[Mapping[int, Hello]], None]

    def run(self, deadline: float, join_timeout: float) -> Meeting:
        """Come, and wait for the others until the clock says `deadline`.

        UsageError where the ranks can never make a session, GivenUp where the others no longer wait for this one.
        """
        call = self.store.add(f"{self.scope}/calls/{self.me.rank}", 1)
        if call > 1:
            self._look_for_myself(call - 1)
        base = f"{self.scope}/call/{call}"
        outcome = self.store.decide(f"{base}/outcome", b"", b"-")
        self.store.append(f"{base}/roster", encode_line(self.me))
        came = self.store.add(f"{base}/came", 1)
        if came == 1:
            world = self.me.world_size
            listed = Listed(protocol=PROTOCOL, tool=TOOL, scope=escape(self.scope), call=call, world_size=world)
            self.store.append(DIRECTORY, encode_line(listed))
        reminder = Reminder(self.clock)
        seen = b""
        hellos: list[Hello] = []
        last, due = came >= self.me.world_size, self.clock.monotonic() + self.me.world_size * _READ_PER_RANK
        while outcome == b"-":
            # Who comes last reads at once who is here. The others do so every now and then: thousands of lines.
            reads = last or self.clock.monotonic() >= min(due, deadline)
            (outcome, *news) = self.store.get([f"{base}/outcome", *[f"{base}/roster"] * reads])
            if reads:
                last, due = False, self.clock.monotonic() + self.me.world_size * _READ_PER_RANK
            if news and news[0] != seen:
                seen = news[0]
                hellos, strangers = read_roster(seen)
                complaint = quarrel(hellos, strangers)
                if complaint is not None:
                    outcome = self._decide(base, Opening(usage=complaint))
                    break
                self.telemetry.follow(hellos)
                self.here({hello.rank: hello for hello in hellos})
            now = self.clock.monotonic()
            members = {hello.rank: hello for hello in hellos}
            gone = {rank: why for rank, why in self.telemetry.gone.items() if rank in members}
            missing = [rank for rank in range(self.me.world_size) if rank not in members]
            if not missing and not gone:
                outcome = self._start(base, hellos, {})
            elif gone or now >= deadline:
                why = "had not come" if now < deadline else f"has not come within {duration(join_timeout)}"
                absent = {**dict.fromkeys(missing, why), **gone}
                outcome = self._start(base, hellos, absent)
            elif reminder.due():
                here = waiting_words({rank: hello.host for rank, hello in members.items()}, self.me.world_size)
                self.note(f"{here}; {duration(deadline - now)} left")
            self.watch()
            if outcome == b"-":
                self.clock.sleep(_LOOK + self.me.world_size * _LOOK_PER_RANK)
        return self._take(base, outcome)

    def _start(self, base: str, hellos: Iterable[Hello], absent: dict[int, str]) -> bytes:
        members = [hello for hello in hellos if hello.rank not in absent]
        roster = pack([encode_line(hello) for hello in members])
        return self._decide(base, Opening(nonce=make_nonce(hellos), absent=absent, roster=roster))

    def _decide(self, base: str, opening: Opening) -> bytes:
        return self.store.decide(f"{base}/outcome", b"-", encode(opening))

    def _take(self, base: str, outcome: bytes) -> Meeting:
        try:
            opening = decode(outcome, Opening)
            roster = b"".join(unpack(opening.roster)) if opening.usage is None else b""
        except BadMessage as error:
            raise UsageError(f"another version of ckpt-tui leads this session: its opening is {error}") from None
        taken = self.store.add(f"{base}/taken", 1)
        if opening.usage is not None:
            if self.hosts_store:
                self._see_off(base, taken)
            raise UsageError(opening.usage)
        if self.me.rank in opening.absent:
            raise GivenUp(f"the other ranks no longer wait for rank {self.me.rank}: {opening.absent[self.me.rank]}")
        members = {hello.rank: hello for hello in read_roster(roster)[0]}
        self.telemetry.follow(members.values())
        self.here(members)
        return Meeting(call=base, nonce=opening.nonce, members=members, absent=opening.absent)

    def _see_off(self, base: str, taken: int) -> None:
        """The store goes with this process: let the others, also those who are just coming, read first why."""
        end = self.clock.monotonic() + _SEE_OFF
        while taken < self.me.world_size and self.clock.monotonic() < end:
            self.clock.sleep(_LOOK)
            taken = self.store.add(f"{base}/taken", 0)

    def _look_for_myself(self, call: int) -> None:
        """This rank has been here before: is that process still alive? Then two processes say the same rank."""
        base = f"{self.scope}/call/{call}"
        if not self.store.has(f"{base}/roster"):
            return
        hellos, _ = read_roster(self.store.get([f"{base}/roster"])[0])
        other = next((hello for hello in hellos if hello.rank == self.me.rank), None)
        if other is None or not self._beats(other):
            return
        complaint = twice(other, self.me)
        self.store.add(f"{self.scope}/calls/{self.me.rank}", -1)  # this was no call of that rank's
        self._decide(base, Opening(usage=complaint))
        raise UsageError(complaint)

    def _beats(self, other: Hello) -> bool:
        key = pulse_key(self.scope, other)
        first: int | None = None
        end = self.clock.monotonic() + _STILL
        while self.store.has(key):
            try:
                pulse = decode(self.store.get([key])[0], Pulse)
            except BadMessage:
                return False
            if pulse.left is not None:
                return False
            if first is not None and pulse.status.beat != first:
                return True
            first = pulse.status.beat
            if self.clock.monotonic() >= end:
                return False
            self.watch()
            self.clock.sleep(_LOOK)
        return False
