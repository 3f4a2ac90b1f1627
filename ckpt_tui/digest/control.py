"""What all hashing threads of a scan obey: the wish to stop or to pause, and the rate limit."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..facts.outcome import Interrupted
from .crew import Crew

if TYPE_CHECKING:
    from ..facts.clock import Clock

#: The longest sleep before the wish to stop is looked at again.
_NAP = 0.05
#: Seconds of reading that may be caught up with after a pause, so that late wake-ups do not add up.
_BURST = 0.1


class Control:
    """Looked at once a block. `cancel` only sets a flag, so that a signal handler may call it at any moment."""

    def __init__(self, clock: Clock, max_rate: float = 0.0) -> None:
        self._clock = clock
        self._max_rate = max_rate
        self._lock = threading.Lock()
        self._due = 0.0  # when the bytes that were spent are worth their time
        self.cancelled = False
        #: Whether reading rests for now; a plain flag, looked at once a block.
        self.paused = False
        #: Who helps whom.
        self.crew = Crew()

    def cancel(self) -> None:
        """Make every thread stop at its next block."""
        self.cancelled = True

    def check(self) -> None:
        """Raise `Interrupted` if the scan is to stop."""
        if self.cancelled:
            raise Interrupted("interrupted; the files that were finished are remembered")

    def wait_until(self, moment: float) -> None:
        """Sleep until a moment of the monotonic clock, unless the scan is to stop."""
        while True:
            self.check()
            left = moment - self._clock.monotonic()
            if left <= 0:
                return
            self._clock.sleep(min(left, _NAP))

    def pause(self, seconds: float) -> None:
        """Sleep for so long, unless the scan is to stop."""
        self.wait_until(self._clock.monotonic() + seconds)

    def spend(self, size: int) -> None:
        """Account for bytes that were read; return once they have taken the time that the rate limit gives them.

        While the scan is paused it does not return, unless the scan is to stop.
        """
        if self._max_rate:
            with self._lock:
                due = self._due = max(self._due, self._clock.monotonic() - _BURST) + size / self._max_rate
            self.wait_until(due)
        # Last, so that nobody whose time came during the pause reads on.
        while self.paused and not self.cancelled:
            self._clock.sleep(_NAP)
        self.check()
