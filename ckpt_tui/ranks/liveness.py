"""Which ranks are silent. Pure: the clock is passed in.

Only time in which this process was looking counts: if it was itself stopped for an hour, or the store did not answer,
nobody was silent meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The longest step between two looks that counts in full, in seconds.
MAX_STEP = 2.0


class Liveness:
    """Watches beats: a rank whose beat stands still for `timeout` seconds is lost, a slow one that beats is not."""

    def __init__(self, ranks: Iterable[int], timeout: float, now: float) -> None:
        self._timeout = timeout
        self._looked = now
        self._beats: dict[int, int] = {}
        self.silence: dict[int, float] = dict.fromkeys(ranks, 0.0)

    def observe(self, now: float, beats: Mapping[int, int]) -> None:
        """Take in one look at all beats; a rank that is not among them counts as standing still."""
        step = min(max(now - self._looked, 0.0), MAX_STEP)
        self._looked = now
        for rank, silent in self.silence.items():
            beat = beats.get(rank)
            if beat is not None and beat != self._beats.get(rank):
                self._beats[rank] = beat
                self.silence[rank] = 0.0
            else:
                self.silence[rank] = silent + step

    def silent(self) -> dict[int, float]:
        """The ranks that are lost, each with the seconds for which its beat has stood still."""
        return {rank: seconds for rank, seconds in self.silence.items() if seconds >= self._timeout}
