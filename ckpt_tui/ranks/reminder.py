"""When to say again that something is being waited for: soon at first, then less and less often."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..facts.clock import Clock

#: Seconds before the first time, between that and the second, and at most between two.
_FIRST, _THEN, _AT_MOST = 1.0, 5.0, 30.0


class Reminder:
    """Due after a second, then every 5, 10, 20 and 30 seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = clock.monotonic() + _FIRST
        self._pause = _THEN

    def due(self) -> bool:
        """Whether it is time to say it; if so, the next time is set."""
        now = self._clock.monotonic()
        if now < self._next:
            return False
        self._next = now + self._pause
        self._pause = min(self._pause * 2, _AT_MOST)
        return True
