"""The job of scanning one checkpoint on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..digest import Scanner
from ..digest.host import host_name
from ..facts.status import Phase
from ..present.safe import escape
from ..ranks.status import StatusMaker
from ..stream import rows
from ..stream.codec import split_result
from . import verdicts
from .files import FileRows

if TYPE_CHECKING:
    from ..facts.clock import Clock
    from ..facts.scan import ScanResult
    from ..facts.settings import ScanSettings
    from .post import Post


class ScanJob:
    """A scan of one checkpoint on this machine."""

    def __init__(self, target: str, settings: ScanSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._scanner = Scanner(target, settings, clock=clock)
        self._files = FileRows(self._scanner, 0)
        self._host = host_name()
        self._status = StatusMaker(
            self._scanner.progress, clock, rank=lambda: 0, host=self._host, path=escape(target), pid=os.getpid()
        )
        self._result: ScanResult | None = None
        self._surveyed = self._told = False

    def work(self) -> None:
        """Find and hash."""
        self._result = self._scanner.run()

    def cancel(self) -> None:
        """Stop within a block."""
        self._scanner.cancel()

    def watch(self, rank: int) -> None:
        """There is only this one."""

    def code(self) -> int | None:
        """The scan's, once it is done."""
        return verdicts.scan_verdict(self._result, 0.0).code if self._result else None

    def publish(self, post: Post) -> None:
        """Survey, rank 0's summary, the files that changed, and the verdict."""
        done = self._result
        progress = self._scanner.progress
        phase = Phase.DONE if done else Phase.CONTENT if progress.started is not None else Phase.IDENTITY
        status = self._status.make(phase, "", None)
        if progress.files:
            survey = self._scanner.survey()
            if not self._surveyed:
                self._surveyed = True
                post.findings(survey.checkpoint.findings)
            threads = progress.threads
            post.outbox.put(rows.survey_row(survey, self._settings, host=self._host, threads=threads))
            self._files.publish(post, status, self._clock.monotonic())
            trouble = verdicts.scan_trouble(self._files.rows.values(), survey.checkpoint.findings)
            if trouble is not None and done is None:
                post.outbox.put(trouble)
            post.outbox.put(rows.rank_row(status, self._clock.time()))
        if done is not None and not self._told:
            self._told = True
            known = self._scanner.survey().checkpoint.findings
            post.findings(finding for finding in done.findings if finding not in known)
            post.warnings(done.warnings)
            for part in split_result(done):
                post.outbox.put(part)
            post.outbox.put(verdicts.scan_verdict(done, self._clock.time()))
