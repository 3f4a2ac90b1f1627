"""Looking at the store again and again: soon at first, and the more ranks do so the less often."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..facts.clock import Clock

#: Seconds before the second look and at most between two, and more for every rank: ten thousand look 2,000 times a
#: second together, a hundredth of what the store can answer.
_FIRST, _AT_MOST, _PER_RANK = 0.005, 0.1, 1 / 2000


class Pause:
    """The pauses of one wait."""

    def __init__(self, clock: Clock, world_size: int) -> None:
        self._clock = clock
        self._next = _FIRST
        self._longest = _AT_MOST + world_size * _PER_RANK

    def sleep(self) -> None:
        """One pause, half as long again as the last."""
        self._clock.sleep(self._next)
        self._next = min(self._next * 1.5, self._longest)
