"""The job of being one rank of a session."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..digest.host import host_name
from ..facts.outcome import CkptError, agreement_code
from ..present.safe import escape
from ..ranks import Session
from ..report import json
from ..report.write import write
from ..stream import rows
from ..stream.messages import DrillRow, DrillState, Level
from .answers import Answers
from .cached import Remembered
from .files import FileRows
from .heard import Heard
from .outcome import Outcome

if TYPE_CHECKING:
    from ..facts.agreement import Agreement
    from ..facts.clock import Clock
    from ..facts.settings import RankSettings
    from ..ranks import Place as RankPlace
    from ..stream.messages import Place
    from .post import Post


class RanksJob:
    """One rank of a session."""

    def __init__(
        self,
        target: str,
        place: RankPlace,
        settings: RankSettings,
        clock: Clock,
        *,
        result: str | None = None,
        stay: bool = False,
    ) -> None:
        """`result` is a file for the agreement's JSON, which the lowest surviving rank writes.

        `stay`: when nothing is left to do, until `cancel`, for what a screen may still ask.
        """
        self._place, self._settings, self._clock, self._result = place, settings, clock, result
        self._host = host_name()
        self._heard = Heard()
        self._agreement: Agreement | None = None
        self._surveyed = False
        master, world_size = place.store, place.world_size
        self._join = (
            ""
            if place.agent_store or place.rank is None
            else f"ckpt-tui ranks {escape(target)} --hold --master {master} --world-size {world_size} --rank"
        )
        self._notes: list[str] = []
        self._leaving = threading.Event()
        if not stay:
            self._leaving.set()
        self._session = Session(target, place, settings, clock=clock, note=self._notes.append, screen=True)
        self._outcome = Outcome()
        self._answers = Answers()
        self._refused: dict[Place, DrillRow] = {}
        #: Made once this rank has its number.
        self._files: FileRows | None = None
        self._wanted: int | None = None
        self._remembered = Remembered(settings.scan, clock, busy=lambda: self._agreement is None)

    def work(self) -> None:
        """Meet, hash, compare; then stay until every rank has its result."""
        agreement = self._session.run()
        if self._result is not None and self._session.rank == agreement.speaker:
            try:
                write(self._result, json.encode(agreement), force=True)
            except CkptError as error:
                self._notes.append(str(error))
        self._agreement = agreement
        self._session.part()
        self._leaving.wait()  # the screen may still ask what the cache holds

    def cancel(self) -> None:
        """Leave before the verdict; the others are told. After it, let them go."""
        self._leaving.set()
        if self._session.held is None:
            self._session.cancel()
        else:
            self.release()

    def pause(self, wish: bool) -> None:
        """Rest from reading, or go on; the others see which, and that this rank lives."""
        self._session.scanner.pause(wish)

    def again(self) -> None:
        """No rank can alone."""
        self._notes.append("a session reads once: start all ranks anew, with --rehash")

    def inventory(self) -> None:
        """Say what the cache of this rank's host holds."""
        self._remembered.ask()

    def descend(self, place: Place) -> None:
        """Ask the ranks that are held ready."""
        held, holding = self._session.held, self._session.holding
        if held is not None and held.state.ready:
            held.ask(place)
        else:
            why = holding.reason if holding else "there is no verdict yet"
            failed = DrillRow(place=place, state=DrillState.FAILED, error=f"nobody can be asked: {why}")
            self._refused = {**self._refused, place: failed}

    def release(self) -> None:
        """Let all ranks go that are held ready."""
        if self._session.held is not None:
            self._session.held.release("the screen has let them go")

    def held(self) -> bool:
        """Whether ranks are held ready."""
        return self._session.held is not None and self._session.held.state.ready

    def watch(self, rank: int) -> None:
        """Send this rank's file rows from now on."""
        if 0 <= rank < self._place.world_size:
            self._wanted = rank

    def code(self) -> int | None:
        """The session's, once there is a verdict."""
        return agreement_code(self._agreement, strict=self._settings.strict) if self._agreement else None

    def publish(self, post: Post) -> None:
        """Every rank's summary, the watched one's files that changed, and the verdict."""
        own = self._session.rank
        post.rank = own or 0
        now = self._clock.time()
        self._remembered.publish(post)
        while self._notes:
            post.log(Level.INFO, escape(self._notes.pop(0)))
        if own is None:  # the store has yet to hand out a number
            return
        statuses = self._session.statuses()
        for rank, status in statuses.items():
            post.outbox.put(rows.rank_row(status, now if rank == own else self._heard.at(status, now)))
        scanner = self._session.scanner
        if scanner.progress.files:
            survey = scanner.survey()
            if not self._surveyed:
                self._surveyed = True
                post.findings(survey.checkpoint.findings)
            post.outbox.put(
                rows.survey_row(
                    survey,
                    self._settings.scan,
                    host=self._host,
                    threads=scanner.progress.threads,
                    rank=own,
                    world_size=self._place.world_size,
                    join=self._join,
                )
            )
            if self._files is None:
                self._files = FileRows(scanner, own)
            watched = own if self._wanted is None else self._wanted
            self._files.publish(post, statuses[watched], self._clock.monotonic())
        found = self._agreement
        self._outcome.publish(post, found, statuses.values(), now, strict=self._settings.strict)
        if found is not None and (holding := self._session.holding) is not None:
            post.outbox.put(holding)
        self._answers.publish(post, {**self._refused, **(self._session.held.rows if self._session.held else {})})
