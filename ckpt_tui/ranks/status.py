"""A rank's progress as the one value that travels: made from counters, many times a second."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from ..facts.status import ActiveFile, Cell, Phase, RankStatus
from ..present import units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..digest import ScanProgress
    from ..facts.clock import Clock

#: Seconds over which the rate is taken.
_WINDOW = 3.0
#: A checkpoint of more files than this sends no cell for each.
MAX_CELLS = 8192


class StatusMaker:
    """Makes this rank's status. It remembers a few seconds, for the rate. Any thread may ask."""

    def __init__(
        self, progress: ScanProgress, clock: Clock, *, rank: Callable[[], int], host: str, path: str, pid: int
    ) -> None:
        """`rank` is asked each time: its number may be handed out late."""
        self._progress = progress
        self._clock = clock
        self._number = rank
        self._host, self._path, self._pid = host, path, pid
        self._read: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()  # telemetry and a screen ask at the same time

    def make(self, phase: Phase, doing: str, error: str | None) -> RankStatus:
        """The present status. While content is read, `doing` is what is being read."""
        progress = self._progress
        files = progress.files
        done, cached = progress.bytes_done, progress.bytes_cached
        active = [number for number, file in enumerate(files) if file.cell is Cell.READING]
        if phase is Phase.CONTENT and active:
            longest = max((files[number] for number in active), key=lambda file: file.size)
            doing = f"reading {longest.name} ({units.percent(longest.done, longest.size)})"
        if progress.paused:
            doing = f"paused by its screen at {units.percent(done, progress.bytes_total)}"
            with self._lock:
                self._read.clear()  # the time of the pause is no part of any rate
        return RankStatus(
            rank=self._number(),
            host=self._host,
            phase=phase,
            pid=self._pid,
            path=self._path,
            bytes_done=done,
            bytes_total=progress.bytes_total,
            bytes_cached=cached,
            files_done=progress.files_done,
            files_total=len(files),
            files_cached=progress.files_cached,
            rate=0.0 if progress.paused else self._rate(done - cached),
            cells="".join(file.cell for file in files) if len(files) <= MAX_CELLS else "",
            active=tuple(ActiveFile(index=number, done=files[number].done) for number in active),
            error=error,
            doing=doing,
            paused=progress.paused,
        )

    def _rate(self, read: int) -> float:
        now = self._clock.monotonic()
        with self._lock:
            samples = self._read
            samples.append((now, read))
            while len(samples) > 2 and now - samples[1][0] >= _WINDOW:
                samples.popleft()
            (then, before) = samples[0]
        return max(read - before, 0) / (now - then) if now > then else 0.0


def as_known(
    heard: Mapping[int, RankStatus | None], hosts: Mapping[int, str], gone: Mapping[int, str]
) -> dict[int, RankStatus]:
    """Every rank's status as it was heard, or that it has not come; those that are gone with what is known of them.

    `hosts` are those of the ranks that have come: in a large world not every rank listens to all.
    """
    known = {}
    for rank, told in heard.items():
        come = rank in hosts
        phase, doing = (Phase.MEETING, "not heard here") if come else (Phase.ABSENT, "has not come")
        status = told or RankStatus(rank=rank, host=hosts.get(rank, ""), phase=phase, doing=doing)
        if rank in gone:
            phase = Phase.ABSENT if status.phase is Phase.ABSENT else Phase.LOST
            status = msgspec.structs.replace(status, phase=phase, error=gone[rank])
        known[rank] = status
    return known
