"""One rank's session: meet, compare identities, hash, compare contents, and end alike on every rank."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from .. import agreement as judging
from ..digest.host import host_name
from ..facts.agreement import Stage, Verdict
from ..facts.clock import Clock, SystemClock
from ..facts.outcome import Interrupted, UsageError
from ..facts.ranksets import named
from ..facts.status import Phase, RankStatus
from ..facts.version import TOOL
from ..present.safe import error_text
from ..stream.messages import Holding
from .calls import LOOK
from .channel import Broken, Channel
from .display import Display
from .exchange import Exchange
from .gather import GatherBroken
from .holding import Held, why_not
from .joining import Joined, Joining
from .messages import Break
from .status import StatusMaker, as_known
from .store import NobodyThere, StoreLost
from .work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..digest import Scanner
    from ..facts.agreement import Agreement
    from ..facts.settings import RankSettings
    from .environment import Place
    from .messages import Hello
    from .telemetry import Telemetry

#: Seconds: how long the ranks wait for each other's results to be written, how long survivors wait for one another, how
#: long an unfinished survey may still take then, and how long a rank that leaves early stays to tell the others.
_PART, _SURVIVE, _SURVEY, _TELL = 5.0, 5.0, 2.0, 1.0


class Session:
    """One rank of a session. `run` once, in one thread; all else may be asked from any thread, at any time."""

    def __init__(
        self,
        target: str,
        place: Place,
        settings: RankSettings,
        *,
        clock: Clock | None = None,
        note: Callable[[str], None] = lambda _line: None,
        screen: bool = False,
    ) -> None:
        """`note` gets lines for people: who is being waited for, and what had to be done otherwise.

        `screen`: somebody sits at this rank; ranks that are held ready wait for his questions, while he is there.
        """
        self._clock = clock or SystemClock()
        self._place = place
        self._work = Work(target, settings.scan, rank=self._number, clock=self._clock, given=settings.given)
        self.scanner: Scanner = self._work.scanner
        self._settings = settings
        self._note = note
        self._leave_at: float | None = None
        self._parting = False
        self._phase = Phase.STARTING
        self._doing = "importing torch"
        self._error: str | None = None
        self._maker = StatusMaker(
            self.scanner.progress,
            self._clock,
            rank=self._number,
            host=host_name(),
            path=self._work.path,
            pid=os.getpid(),
        )
        self._display = Display(self.scanner, settings.scan, self._clock)
        self._members: Mapping[int, Hello] = {}
        self._absent: Mapping[int, str] = {}
        self._joining: Joining | None = None
        self._channel: Channel | None = None
        self._company = place.world_size
        self._exchange: Exchange | None = None
        #: Whether some rank could not write what it was to write, after `part`.
        self.unwritten = False
        self._screen = screen
        #: This rank as it is held ready after the verdict; why it is not, once there is one.
        self.held: Held | None = None
        self._is_held = False
        self._not_held = ""

    # --- for anybody

    @property
    def rank(self) -> int | None:
        """This rank's number; None until the store has handed one out, where that is its part."""
        return self._place.rank

    def cancel(self, grace: float = 0.0) -> None:
        """Leave before the verdict, and tell the others. Safe in a signal handler; idle once the verdict stands.

        A launcher ends all ranks as soon as one has died: within `grace` seconds this rank may still find that out, and
        come to a verdict that names it.
        """
        if self._leave_at is None or not grace:
            self._leave_at = self._clock.monotonic() + grace
        if not grace:
            self.scanner.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._leave_at is not None

    def statuses(self) -> dict[int, RankStatus]:
        """The newest known status of every rank, this one's included. Never blocks."""
        telemetry = self._telemetry
        heard = telemetry.heard if telemetry else {}
        gone: dict[int, str] = {}
        if telemetry and self._phase is not Phase.DONE:
            gone |= telemetry.gone
        elif telemetry and self._is_held:  # of those who stay, who has left has not been lost
            gone |= {rank: why for rank, why in telemetry.gone.items() if rank not in telemetry.left}
        gone |= self._absent
        known = {
            rank: self._status() if rank == self.rank else heard.get(rank) for rank in range(self._place.world_size)
        }
        return as_known(known, {rank: hello.host for rank, hello in self._members.items()}, gone)

    @property
    def holding(self) -> Holding | None:
        """Whether this rank stays ready to be asked; None before the verdict."""
        if self.held is not None:
            return self.held.state
        return Holding(ready=False, reason=self._not_held) if self._not_held else None

    # --- the session

    def run(self) -> Agreement:
        """The agreement, the same on every rank that is still there.

        Raises UsageError where the ranks can never make a session, Interrupted after `cancel`.
        Call `part` when the result is written.
        """
        try:
            agreement = self._run()
        except BaseException as error:
            self._parting = True
            self._phase = Phase.FAILED
            self._work.close()
            self._tell(error)
            raise
        self._parting = True
        self._phase, self._doing = Phase.DONE, ""
        self._prepare_to_stay(agreement)
        if self._telemetry:
            self._telemetry.hurry()
        if self._channel is not None and self._place.rank == agreement.speaker:
            self._channel.show(agreement)
        return agreement

    def part(self, *, unwritten: bool = False) -> bool:
        """The result is written: wait, 5 s at most, until every rank's is, so that nobody is cut short.

        Then stay ready to be asked, where that was wished and there is something to ask. Whether all ranks
        acknowledged: the same answer on each that can still ask. `unwritten`: what this rank was to write could not be
        written; the others learn it, and `self.unwritten` says so on all.
        """
        self.unwritten, acknowledged = unwritten, False
        if self._channel is not None:
            acknowledged = self._channel.acknowledge(self._company, _PART, unwritten=unwritten)
            self.unwritten = self._channel.unwritten
        if self.held is not None:
            self._stay(self.held)
        if self._channel is not None:
            self._channel.see_off(self._company, _PART, hosts_store=self._place.hosts_store, held=self.held is not None)
        if self._telemetry:
            self._telemetry.leave("has ended", _TELL)
        if self._channel is not None:
            self._channel.close()
        self._work.close()
        return acknowledged

    def _prepare_to_stay(self, agreement: Agreement) -> None:
        """Whether there is something to ask after the verdict, and who stays for it: the same on all who stay."""
        holders = {rank for rank, hello in self._members.items() if hello.holds} - self._absent.keys()
        self._not_held = why_not(agreement, self._settings, self._place, holders)
        if self._channel is None or self._exchange is None:
            self._not_held = self._not_held or "the other ranks cannot be reached any more"
        elif not self._not_held:
            self.held = Held(
                store=self._channel.store,
                session=self._channel.base,
                rank=self._number(),
                holders=holders,
                agreement=agreement,
                heard=self._exchange.heard,
                work=self._work,
                gone=lambda: self._telemetry.gone if self._telemetry else {},
                leaving=self._why_leave,
                limit=self._settings.hold,
                screens=[rank for rank in holders if self._members[rank].screen],
                serves=self._place.hosts_store,
                clock=self._clock,
                note=self._note,
            )

    def _stay(self, held: Held) -> None:
        """Be held, until all are let go or this rank has to leave."""
        self._doing, self._is_held = "held ready to be asked", True
        if not held.run():
            self._channel = None  # whom this rank leaves, or has lost, it does not wait for
        self._doing, self._is_held = "", False
        self._company = held.company

    def _why_leave(self) -> str | None:
        """Why a rank that is held cannot stay."""
        if self._leave_at is not None:
            return "interrupted"
        failure = self._telemetry.failure if self._telemetry else None
        return None if failure is None else str(failure)

    def _run(self) -> Agreement:
        self._work.begin()
        self._joining = Joining(
            self._place,
            self._settings,
            clock=self._clock,
            status=self._status,
            watch=self._watch,
            note=self._note,
            numbered=self._take_number,
            screen=self._screen,
            here=self._meet,
            display=self._display,
        )
        self._go(Phase.MEETING, "waiting for the other ranks")
        try:
            joined = self._joining.run()
            self._channel = Channel(joined, clock=self._clock, watch=self._watch)
            try:
                if joined.meeting.absent:
                    absent = dict(joined.meeting.absent)
                    missing = Break(absent=absent, reason=f"{named(absent)} did not come")
                    return self._go_on_without(joined, self._channel, missing)
                return self._compare(self._channel)
            except Broken as broken:
                return self._go_on_without(joined, self._channel, broken.why)
        except (StoreLost, GatherBroken) as lost:
            return self._alone(str(lost))
        except NobodyThere as nobody:
            if self.rank is None:  # who has no number has no place in an agreement
                raise
            return self._alone(str(nobody), rank_0=None if self._place.agent_store else f"has not come: {nobody}")

    def _compare(self, channel: Channel) -> Agreement:
        """The session as it should be: every rank stays until the verdict stands."""
        exchange = self._exchange = Exchange(
            channel.form(self._place, self._note),
            members=self._members,
            world_size=self._place.world_size,
            absent={},
            clock=self._clock,
            arrive=channel.arrive,
        )
        try:
            agreement = self._judge(exchange)
        except GatherBroken as error:
            # Liveness may name the rank that is behind it: the watch raises then.
            end = self._clock.monotonic() + self._settings.rank_timeout
            while self._clock.monotonic() < end:
                self._watch()
                self._clock.sleep(LOOK)
            channel.declare(str(error))
            raise
        channel.commit(hashlib.sha256(msgspec.msgpack.encode(agreement)).hexdigest())
        return agreement

    def _judge(self, exchange: Exchange) -> Agreement:
        self._go(Phase.IDENTITY, "reading headers")
        witness = self._work.surveyed(self._watch)
        same = exchange.same_identity(witness)
        if self._settings.scan.identity_only or not (same or self._settings.keep_going):
            self._go(Phase.COMPARING, "comparing headers")
            return exchange.identity(witness)
        self._go(Phase.CONTENT, "looking for digests")
        witness = self._work.read(self._watch)
        self._go(Phase.COMPARING, "waiting for the other ranks")
        return exchange.content(witness)

    def _go_on_without(self, joined: Joined, channel: Channel, why: Break) -> Agreement:
        """Ranks are lost: those that are left stop reading, put together what they have, and end alike."""
        self._absent = why.absent
        self._go(Phase.COMPARING, "comparing with the ranks that are left")
        self._parting = True  # another loss changes nothing now: what stays out is decided in the exchange
        reason = why.reason or f"{named(why.absent)} {'was' if len(why.absent) == 1 else 'were'} lost"
        ranks = [rank for rank in sorted(joined.meeting.members) if rank not in why.absent]
        gather = channel.through_store("rest", ranks, seconds=_SURVIVE)
        exchange = self._exchange = Exchange(
            gather,
            members=joined.meeting.members,
            world_size=self._place.world_size,
            absent=why.absent,
            clock=self._clock,
        )
        agreement = exchange.content(self._work.stop(reason, _SURVEY))
        self._absent = {**self._absent, **gather.absent}
        self._company = len(ranks) - len(gather.absent)
        if self._place.rank not in ranks:
            self._channel = None  # the others have given this rank up, and do not wait for it
        return agreement

    def _alone(self, reason: str, *, rank_0: str | None = None) -> Agreement:
        """The store is gone, and with it all knowledge of the others: nobody is accused."""
        self._parting = True
        self._note(reason)
        self._channel = None  # it has nobody to part from
        witness = self._work.stop(reason, _SURVEY)
        telemetry = self._telemetry
        known = {**(telemetry.gone if telemetry else {}), **self._absent}
        if rank_0 is not None:
            known[0] = rank_0
        others = (rank for rank in range(self._place.world_size) if rank != self._place.rank)
        stage = Stage.IDENTITY if witness.result is None else Stage.CONTENT
        agreement = judging.judge(
            [judging.Testimony(witness.fingerprint(stage))],
            world_size=self._place.world_size,
            stage=stage,
            absent={rank: known.get(rank, "not known") for rank in others},
            created=self._clock.time(),
            tool=TOOL,
        )
        summary = reason if agreement.verdict is Verdict.INCOMPLETE else agreement.summary
        return msgspec.structs.replace(agreement, summary=summary, warnings=(*agreement.warnings, reason))

    # --- the others

    def _watch(self) -> None:
        """Called while anything is waited for: raises what ends the session as it was."""
        if self._is_held and self.held is not None:
            self.held.watch()
        if self._parting:
            return
        telemetry = self._telemetry
        if telemetry is not None and telemetry.broken is not None:
            raise Broken(telemetry.broken)
        if self._leave_at is not None and self._clock.monotonic() >= self._leave_at:
            raise Interrupted("interrupted; the other ranks were told" if telemetry else "interrupted")
        if telemetry is not None and telemetry.failure is not None:
            raise telemetry.failure

    @property
    def _telemetry(self) -> Telemetry | None:
        return self._joining.telemetry if self._joining else None

    def _number(self) -> int:
        return self._place.number

    def _take_number(self, place: Place) -> None:
        self._place = place

    def _meet(self, members: Mapping[int, Hello]) -> None:
        self._members = members

    def _status(self) -> RankStatus:
        return self._maker.make(self._phase, self._work.waiting or self._doing, self._error or self._work.error)

    def _go(self, phase: Phase, doing: str) -> None:
        self._phase, self._doing = phase, doing
        if self._telemetry:
            self._telemetry.hurry()

    def _tell(self, error: BaseException) -> None:
        """Say why this rank leaves; where the store goes with it, stay for a moment, so that the others hear it."""
        telemetry = self._telemetry
        if telemetry is None or telemetry.failure is not None:
            return
        self._error = "interrupted" if isinstance(error, Interrupted) else error_text(error)
        telemetry.leave(self._error, _TELL)
        if not self._place.hosts_store or len(self._members) < 2 or isinstance(error, UsageError):
            return
        if self._channel is None:
            self._clock.sleep(_TELL)
            return
        with suppress(StoreLost):
            self._channel.linger(len(self._members) - 1, _TELL)
