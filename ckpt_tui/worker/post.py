"""What a job is, and its way to the screen: the outbox, and log lines with numbers."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..facts.files import Severity
from ..facts.outcome import CkptError, Exit, Interrupted
from ..present.safe import unexpected
from ..stream.codec import split_result
from ..stream.messages import Level, LogLine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.agreement import Agreement
    from ..facts.clock import Clock
    from ..facts.files import Finding
    from ..facts.scan import ScanResult
    from ..stream.messages import Place, VerdictRow
    from ..stream.outbox import Outbox

#: Findings that go into the log one by one, and characters of one line.
_FINDINGS, _CHARS = 200, 2000
_LEVELS = {Severity.ERROR: Level.ERROR, Severity.WARNING: Level.WARNING, Severity.NOTE: Level.INFO}


class Job(Protocol):
    """One piece of work and what can be seen of it."""

    def work(self) -> None:
        """Do it; called in a thread of its own. Raises CkptError for what a user can mend."""

    def publish(self, post: Post) -> None:
        """Put what is known now into the outbox; called ten times a second, and once at the end."""

    def cancel(self) -> None:
        """Stop soon; from any thread."""

    def watch(self, rank: int) -> None:
        """Send this rank's file rows from now on."""

    def code(self) -> int | None:
        """The exit code, once there is a verdict."""


@runtime_checkable
class Reading(Protocol):
    """A job that reads a checkpoint of this host. All from any thread."""

    def pause(self, wish: bool) -> None:
        """Rest from reading, or go on; the answer is the rank's status."""

    def again(self) -> None:
        """Start over, and read every byte; where that cannot be done it is said in the log."""

    def inventory(self) -> None:
        """Say what the digest cache holds; the answer is rows."""


@runtime_checkable
class Answering(Protocol):
    """A job that stays after its verdict, to be asked what lies below it."""

    def descend(self, place: Place) -> None:
        """Look into a place; the answer is a row. From any thread."""

    def release(self) -> None:
        """Nothing more will be asked. From any thread."""

    def held(self) -> bool:
        """Whether others stay until they are let go."""


class Post:
    """What a job publishes through. Texts are escaped by whoever brings them."""

    def __init__(self, outbox: Outbox, clock: Clock) -> None:
        self.outbox = outbox
        self._clock = clock
        #: Whose log it is.
        self.rank = 0
        self._numbers = count(1)

    def log(self, level: Level, text: str) -> None:
        """One line for the log."""
        line = LogLine(
            number=next(self._numbers), at=self._clock.time(), level=level, text=text[:_CHARS], rank=self.rank
        )
        self.outbox.put(line)

    def findings(self, findings: Iterable[Finding]) -> None:
        """What the audit has to say."""
        for finding in tuple(findings)[:_FINDINGS]:
            self.log(_LEVELS[finding.severity], finding.message)

    def warnings(self, texts: Iterable[str]) -> None:
        """What went wrong beside the files."""
        for text in texts:
            self.log(Level.WARNING, text)

    def result(self, result: Agreement | ScanResult, verdict: VerdictRow) -> None:
        """How it came out: what went wrong beside the files, the whole result, and its line."""
        self.warnings(result.warnings)
        for part in split_result(result):
            self.outbox.put(part)
        self.outbox.put(verdict)


def reason_of(error: BaseException) -> tuple[int, str]:
    """The exit code and the words for what ended a job."""
    if isinstance(error, Interrupted):
        return Exit.INTERRUPTED, str(error) or "stopped before a verdict"
    if isinstance(error, CkptError):
        return error.code, str(error)
    return Exit.UNDECIDED, unexpected(error)
