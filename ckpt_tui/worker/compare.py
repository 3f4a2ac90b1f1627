"""The job of comparing copies on this machine: they take the places of ranks, and are asked what lies below."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from ..copies import Comparison
from ..digest.host import host_name
from ..facts.outcome import Interrupted, agreement_code
from ..facts.status import Phase, RankStatus
from ..present import units
from ..present.safe import escape
from ..ranks.status import StatusMaker
from ..stream import rows
from ..stream.messages import DrillRow, DrillState, Holding
from .answers import Answers
from .files import FileRows
from .outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..copies.copy import Copy
    from ..digest import Scanner
    from ..facts.agreement import Agreement
    from ..facts.clock import Clock
    from ..facts.settings import ScanSettings
    from ..stream.messages import Place
    from .post import Post


class CompareJob:
    """A comparison, and then its answers, until nobody asks any more."""

    def __init__(
        self, targets: Sequence[str], settings: ScanSettings, clock: Clock, *, drill_bytes: int, strict: bool
    ) -> None:
        """UsageError where a target names nothing."""
        self._settings = settings
        self._strict = strict
        self._clock = clock
        self._comparison = Comparison(targets, settings, clock, drill_bytes=drill_bytes)
        self._host = host_name()
        self._makers = {
            copy.place: StatusMaker(
                copy.scanner.progress,
                clock,
                rank=partial(int, copy.place),
                host=self._host,
                path=escape(copy.target),
                pid=os.getpid(),
            )
            for copy in self._comparison.copies
            if copy.scanner is not None
        }
        self._turn: int | None = None
        self._wanted = 0
        self._shown: int | None = None
        self._files: FileRows | None = None
        self._agreement: Agreement | None = None
        self._holding: Holding | None = None
        self._wishes: SimpleQueue[Place | None] = SimpleQueue()
        self._rows: dict[Place, DrillRow] = {}
        self._outcome = Outcome()
        self._answers = Answers()

    def work(self) -> None:
        """Hash, compare, look into what differs; then answer, until nobody asks any more."""
        self._agreement = self._comparison.run(self._taking_turns)
        self._turn = None
        if not self._agreement.differences:
            self._holding = Holding(ready=False, reason="there is nothing to ask: no file differs")
            return
        self._holding = Holding(ready=True)
        try:
            while (place := self._wishes.get()) is not None:
                self._put(self._comparison.answer(place))
        except Interrupted:
            pass  # the verdict stands
        finally:
            self._holding = Holding(ready=False, reason="nobody asks any more")

    def cancel(self) -> None:
        """Stop reading, and answering."""
        self._comparison.cancel()
        self.release()

    def watch(self, rank: int) -> None:
        """Send this copy's file rows from now on."""
        if 0 <= rank < len(self._comparison.copies):
            self._wanted = rank

    def descend(self, place: Place) -> None:
        """Look into a place, unless that is known."""
        known = self._rows.get(place)
        if self._holding is None or not self._holding.ready:
            why = self._holding.reason if self._holding else "there is no verdict yet"
            self._put(DrillRow(place=place, state=DrillState.FAILED, error=why))
        elif known is None or known.state is DrillState.FAILED:
            self._put(DrillRow(place=place, state=DrillState.PENDING))
            self._wishes.put(place)

    def release(self) -> None:
        """Nothing more will be asked."""
        self._wishes.put(None)

    def held(self) -> bool:
        """Nobody else waits for this process."""
        return False

    def code(self) -> int | None:
        """The comparison's, once there is a verdict."""
        return agreement_code(self._agreement, strict=self._strict) if self._agreement else None

    def publish(self, post: Post) -> None:
        """Every copy's summary, the watched one's files that changed, the verdict and the answers."""
        now = self._clock.time()
        statuses = {copy.place: self._status(copy) for copy in self._comparison.copies}
        for status in statuses.values():
            post.outbox.put(rows.rank_row(status, now))
        self._publish_files(post, statuses)
        self._outcome.publish(post, self._agreement, statuses.values(), now, strict=self._strict)
        if self._holding is not None:
            post.outbox.put(self._holding)
        self._answers.publish(post, self._rows)

    @contextmanager
    def _taking_turns(self, place: int, _scanner: Scanner) -> Iterator[None]:
        self._turn = place
        yield
        self._turn = None

    def _put(self, row: DrillRow) -> None:
        self._rows = {**self._rows, row.place: row}

    def _publish_files(self, post: Post, statuses: dict[int, RankStatus]) -> None:
        """The survey and the files of the watched copy; of a saved scan none are shown."""
        wanted = self._wanted
        scanner = self._comparison.copies[wanted].scanner
        if scanner is None or not scanner.progress.files:
            return
        if wanted != self._shown or self._files is None:
            self._shown, self._files = wanted, FileRows(scanner, wanted)
            post.rank = wanted
            post.findings(scanner.survey().checkpoint.findings)
        row = rows.survey_row(
            scanner.survey(),
            self._settings,
            host=self._host,
            threads=scanner.progress.threads,
            rank=wanted,
            world_size=len(statuses),
        )
        post.outbox.put(row)
        self._files.publish(post, statuses[wanted], self._clock.monotonic())

    def _status(self, copy: Copy) -> RankStatus:
        """Where one copy stands."""
        done = self._agreement is not None
        looking = self._comparison.looking
        if copy.error is not None:
            phase, doing = Phase.FAILED, ""
        elif done:
            phase, doing = Phase.DONE, ""
        elif copy.place == self._turn:
            phase, doing = Phase.CONTENT, "looking for digests"
        elif copy.saved is None and copy.result is None:
            phase, doing = Phase.IDENTITY, "waits for its turn"
        elif looking.started is not None:
            share = units.percent(looking.bytes_done, looking.bytes_total)
            phase, doing = Phase.COMPARING, f"reading again what differs ({share})"
        else:
            phase, doing = Phase.COMPARING, "waits for the others"
        maker = self._makers.get(copy.place)
        if maker is not None:
            return maker.make(phase, doing, copy.error)
        told = copy.fingerprint()
        return RankStatus(
            rank=copy.place,
            host=told.host,
            phase=phase,
            path=escape(copy.target),
            files_total=told.files,
            files_done=told.files,
            files_cached=told.files_cached,
            doing=doing,
            error=copy.error,
        )
