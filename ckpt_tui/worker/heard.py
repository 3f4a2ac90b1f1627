"""When each rank was last heard: its beat moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..facts.status import RankStatus


class Heard:
    """Remembers each rank's last beat, and when it came."""

    def __init__(self) -> None:
        self._beats: dict[int, tuple[int, float]] = {}

    def at(self, status: RankStatus, now: float) -> float:
        """When this rank's beat last moved, in the seconds of `now`; 0 for one that was never heard."""
        beat, at = self._beats.get(status.rank, (0, 0.0))
        if status.beat != beat:
            beat, at = status.beat, now
        self._beats[status.rank] = (beat, at)
        return at
