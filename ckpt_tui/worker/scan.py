"""The job of scanning one checkpoint on this machine."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import msgspec

from ..digest import Scanner
from ..digest.host import host_name
from ..facts.outcome import Interrupted
from ..facts.status import Phase
from ..present.safe import escape
from ..ranks.status import StatusMaker
from ..report import verdicts
from ..stream import rows
from ..stream.messages import Level
from .cached import Remembered
from .files import FileRows

if TYPE_CHECKING:
    from ..facts.clock import Clock
    from ..facts.scan import ScanResult
    from ..facts.settings import ScanSettings
    from .post import Post


class _Start:
    """One start of the scan, and what has been told of it."""

    def __init__(self, target: str, settings: ScanSettings, clock: Clock, host: str) -> None:
        self.settings = settings
        self.scanner = Scanner(target, settings, clock=clock)
        self.files = FileRows(self.scanner, 0)
        self.status = StatusMaker(
            self.scanner.progress, clock, rank=lambda: 0, host=host, path=escape(target), pid=os.getpid()
        )
        self.result: ScanResult | None = None
        self.surveyed = self.told = False


class ScanJob:
    """A scan of one checkpoint on this machine."""

    def __init__(self, target: str, settings: ScanSettings, clock: Clock, *, stay: bool = False) -> None:
        """`stay` after the verdict, until `cancel`: a screen may wish for more."""
        self._target = target
        self._clock = clock
        self._host = host_name()
        self._start = self._told = _Start(target, settings, clock, self._host)
        self._remembered = Remembered(settings, clock, busy=lambda: self._start.result is None)
        self._wake = threading.Event()
        self._leaving = self._again = False
        self._stay = stay

    def work(self) -> None:
        """Find and hash; and once more for as long as that is wished."""
        while not self._leaving:
            start = self._start
            try:
                start.result = start.scanner.run()
                if self._stay:
                    self._wake.wait()
            except Interrupted:
                if not self._again:
                    raise
            if not self._again:
                return
            self._wake.clear()
            self._again = False
            settings = msgspec.structs.replace(start.settings, rehash=True)
            self._start = _Start(self._target, settings, self._clock, self._host)

    def cancel(self) -> None:
        """Stop within a block."""
        self._leaving, self._again = True, False
        self._start.scanner.cancel()  # one that is begun in this moment is not even looked at
        self._wake.set()

    def pause(self, wish: bool) -> None:
        """Rest from reading, or go on."""
        self._start.scanner.pause(wish)

    def again(self) -> None:
        """Start over, and read every byte."""
        if not self._leaving:
            self._again = True
            self._start.scanner.cancel()
            self._wake.set()

    def inventory(self) -> None:
        """Say what the cache holds."""
        self._remembered.ask()

    def watch(self, rank: int) -> None:
        """There is only this one."""

    def code(self) -> int | None:
        """The scan's, once it is done."""
        result = self._start.result
        return verdicts.scan_verdict(result, 0.0).code if result else None

    def publish(self, post: Post) -> None:
        """Survey, rank 0's summary, the files that changed, the verdict, and what the cache holds."""
        start = self._start
        if start is not self._told:
            self._told = start
            post.outbox.start_over()
            post.log(Level.INFO, "reading every byte again, whatever is remembered")
        self._publish(start, post)
        self._remembered.publish(post)

    def _publish(self, start: _Start, post: Post) -> None:
        done = start.result
        progress = start.scanner.progress
        phase = Phase.DONE if done else Phase.CONTENT if progress.started is not None else Phase.IDENTITY
        status = start.status.make(phase, "", None)
        if progress.files:
            survey = start.scanner.survey()
            if not start.surveyed:
                start.surveyed = True
                post.findings(survey.checkpoint.findings)
            threads = progress.threads
            post.outbox.put(rows.survey_row(survey, start.settings, host=self._host, threads=threads))
            start.files.publish(post, status, self._clock.monotonic())
            trouble = verdicts.scan_trouble(start.files.rows.values(), survey.checkpoint.findings)
            if trouble is not None and done is None:
                post.outbox.put(trouble)
            post.outbox.put(rows.rank_row(status, self._clock.time()))
        if done is not None and not start.told:
            start.told = True
            known = start.scanner.survey().checkpoint.findings
            post.findings(finding for finding in done.findings if finding not in known)
            post.result(done, verdicts.scan_verdict(done, self._clock.time()))
