"""What the digest cache holds, for the screen: looked at in a thread of its own, which gives way to a scan."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from ..digest.upkeep import Upkeep
from ..stream.codec import split_report
from ..stream.messages import CachePart
from .post import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts.cached import CacheReport
    from ..facts.clock import Clock
    from ..facts.settings import ScanSettings
    from .post import Post

#: Records that are sent one by one, the newest; the sums are over all.
_MOST = 20_000
#: Seconds of rest before each record while a scan runs, so that no hashing thread waits for the interpreter.
_REST = 0.0002


class Remembered:
    """Answers to `Inventory`. `ask` is for any thread, `publish` for the worker's own."""

    def __init__(self, settings: ScanSettings, clock: Clock, *, busy: Callable[[], bool]) -> None:
        """`busy`: whether anything is read meanwhile."""
        self._settings, self._clock, self._busy = settings, clock, busy
        self._edition = 0
        self._thread: threading.Thread | None = None
        self._answer: tuple[CachePart, ...] = ()

    def ask(self) -> None:
        """Look at everything; a wish that comes while that is done is met by it."""
        if self._thread is None or not self._thread.is_alive():
            self._edition += 1
            self._thread = threading.Thread(target=self._look, args=(self._edition,), name="inventory", daemon=True)
            self._thread.start()

    def publish(self, post: Post) -> None:
        """Say that it is being looked at, and then what is there."""
        answer, self._answer = self._answer, ()
        if answer:
            post.outbox.forget("cache")
            for part in answer:
                post.outbox.put(part)
        elif self._thread is not None and self._thread.is_alive():
            post.outbox.put(CachePart(edition=self._edition))

    def _look(self, edition: int) -> None:
        try:
            upkeep = Upkeep(self._settings, self._clock, slim=True, rest=self._rest)
            report = _newest(upkeep.records((), each=True))
            self._answer = tuple(split_report(report, edition))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is said in the view and the scan goes on
            self._answer = (CachePart(edition=edition, error=reason_of(error)[1]),)

    def _rest(self) -> None:
        if self._busy():
            self._clock.sleep(_REST)


def _newest(report: CacheReport) -> CacheReport:
    left_out = len(report.files) - _MOST
    if left_out <= 0:
        return report
    said = f"{left_out:,} older records are not shown one by one"
    return msgspec.structs.replace(report, files=report.files[left_out:], warnings=(*report.warnings, said))
