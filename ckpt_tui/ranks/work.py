"""This rank's own scan, in a thread beside the session: begun at once, and asked at any moment what it knows."""

from __future__ import annotations

from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from ..digest import Scanner
from ..digest.host import host_name
from ..facts.outcome import Interrupted
from ..facts.version import TOOL
from ..present.safe import error_text, escape
from .calls import LOOK, Caller, nothing
from .patience import Patience
from .witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..digest import Survey
    from ..facts.clock import Clock
    from ..facts.drill import Reread
    from ..facts.scan import ScanResult
    from ..facts.settings import ScanSettings


class Work:
    """A survey, then a scan. Whatever goes wrong in it is this rank's answer to the others: it never stays away."""

    def __init__(
        self,
        target: str,
        settings: ScanSettings,
        *,
        rank: Callable[[], int],
        clock: Clock,
        given: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`rank` is asked when this rank is first to say something: its number may be handed out late."""
        self.scanner = Scanner(target, settings, clock=clock)
        self.path = escape(target)
        #: What kept this rank from knowing its checkpoint.
        self.error: str | None = None
        self._rank = rank
        self._given = given
        self._thread = Caller("scan")
        self._patience = Patience(self.scanner)
        self._watch = nothing
        self._survey: Future[Survey] = Future()
        self._result: Future[ScanResult] = Future()

    @property
    def waiting(self) -> str:
        """What this rank waits for before it says what it finds; '' where it does not."""
        return self._patience.waiting

    def begin(self) -> None:
        """Start with the survey."""
        self._survey = self._thread.submit(self._patience.survey)

    def surveyed(self, watch: Callable[[], None]) -> Witness:
        """Wait for the survey; `watch` raises what ends the wait."""
        self._settle(self._survey, watch)
        return self._witness()

    def read(self, watch: Callable[[], None]) -> Witness:
        """Read every byte, if there is a survey that says of which files."""
        self._watch = watch
        if self._survey.exception() is None:
            self._result = self._thread.submit(self.scanner.run)
            self._settle(self._result, watch)
        return self._witness()

    def stop(self, why: str, seconds: float) -> Witness:
        """Stop reading, and tell what is known by now; a survey that is not there yet gets `seconds`."""
        wait([self._survey], seconds)
        if not self._result.done():
            self.scanner.cancel()
        return self._witness(unfinished=f"not read to the end: {why}")

    def stay(self, watch: Callable[[], None]) -> Witness:
        """What is known, after the verdict; `watch` raises what ends the wait for bytes that are read again."""
        self._watch = watch
        return self._witness()

    def close(self) -> None:
        """Nothing more will be asked."""
        self.scanner.cancel()
        self._thread.close()

    def _again(self, name: str, offset: int, length: int) -> Reread:
        """Bytes read once more, as all reading in the scan's thread: a disk that hangs must not hold up the session."""
        read = self._thread.submit(lambda: self.scanner.read_again(name, offset, length))
        while not read.done():
            self._watch()
            wait([read], LOOK)
        return read.result()

    def _settle(self, future: Future[Any], watch: Callable[[], None]) -> None:
        while not future.done():
            watch()
            wait([future], LOOK)
        error = future.exception()
        if error is not None:
            watch()  # an interruption is no answer
            self.error = error_text(error)

    def _witness(self, unfinished: str | None = None) -> Witness:
        survey, failed = _outcome(self._survey)
        result, broke = _outcome(self._result)
        return Witness(
            rank=self._rank(),
            host=host_name(),
            path=self.path,
            tool=TOOL,
            segments=self.scanner.segments,
            leaves=self.scanner.leaves,
            again=self._again,
            survey=survey,
            result=result,
            error=failed or broke,
            given=self._given,
            doubt=self._patience.doubt,
            unfinished=None if result is not None else unfinished,
        )


def _outcome(future: Future[Any]) -> tuple[Any, str | None]:
    """What a part of the scan came to, and its error. One that was stopped, or is not there yet, has neither."""
    if not future.done():
        return None, None
    error = future.exception()
    if error is None:
        return future.result(), None
    return None, None if isinstance(error, Interrupted) else error_text(error)
