"""A recording played: the events of a stream at the pace at which they came. Pause, and jumps by the snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .messages import Bye, Envelope, Holding, Pause, Seek, Snapshot
from .state import Ended, Restart

if TYPE_CHECKING:
    from ..facts.clock import Clock
    from .messages import Command, Mode
    from .recording import Recording
    from .state import Event

#: Lines handed over at once: a screen that is far behind still answers keys.
_BATCH = 5000
_NOBODY = Holding(ready=False, reason="this is a recording")


class Player:
    """A source of events, as a worker is; and the clock of who watches it: it tells the times of the recording."""

    def __init__(self, recording: Recording, clock: Clock, *, speed: float = 1.0) -> None:
        """`speed` 2 is twice as fast as it was; 0 is all at once."""
        self._recording = recording
        self._clock = clock
        self._speed = speed
        self._paused = False
        self._base = recording.begin
        self._since = clock.monotonic()
        self._jumped = 0.0
        self._next = 0
        self._first: list[Event] = []
        self._seen_bye = self._over = False

    @property
    def mode(self) -> Mode:
        """What the recorded worker did."""
        return self._recording.hello.mode

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self._paused

    @property
    def over(self) -> bool:
        """Whether everything was handed over."""
        return self._over

    def time(self) -> float:
        """Where in the recording it is, in seconds since the epoch."""
        if self._speed == 0:
            return self._recording.end
        passed = 0.0 if self._paused else (self._clock.monotonic() - self._since) * self._speed
        return min(self._base + passed, self._recording.end)

    def monotonic(self) -> float:
        """What was played so far: a recording that stands still is not silent, and no jump goes back."""
        return self.time() - self._jumped

    @property
    def passed(self) -> tuple[float, float]:
        """Seconds from the beginning to here, and to the end."""
        return self.time() - self._recording.begin, self._recording.end - self._recording.begin

    def sleep(self, seconds: float) -> None:
        """Wait, in the watcher's own time."""
        self._clock.sleep(seconds)

    def drain(self) -> list[Event]:
        """What has come by now."""
        events, self._first = self._first, []
        until = min(self._recording.until(self.time()), self._next + _BATCH)
        while self._next < until:
            event = _without_company(self._recording.read(self._next))
            self._next += 1
            self._seen_bye |= event is not None and isinstance(event.message, Bye)
            events.append(event)
        if self._next == len(self._recording) and not self._over:
            self._over = True
            if not self._seen_bye:
                events.append(Ended(None, "the recording ends here"))
        return events

    def send(self, command: Command) -> None:
        """Pause and jumps; nobody is there who could hear anything else."""
        match command:
            case Pause(on=on):
                self._move_to(self.time())
                self._paused = on
            case Seek(seconds=seconds):
                self._jump(self.time() + seconds)

    def close(self) -> None:
        """Read no more."""
        self._recording.close()

    def _move_to(self, at: float) -> None:
        self._base = min(max(at, self._recording.begin), self._recording.end)
        self._since = self._clock.monotonic()

    def _jump(self, at: float) -> None:
        """Begin anew with the last snapshot before that time."""
        before = self.time()
        self._move_to(at)
        self._jumped += self._base - before
        self._seen_bye = self._over = False
        self._next = self._recording.entry(self._base)
        # Whoever enters at a snapshot has missed nothing: the numbers go on from there.
        self._first = [Restart(), Envelope(1, self._recording.hello)]


def _without_company(event: Envelope | None) -> Envelope | None:
    """The event, but that nobody is held ready: whom could a recording ask?"""
    if event is None:
        return None
    match event.message:
        case Holding(ready=True):
            return Envelope(event.seq, _NOBODY)
        case Snapshot(rows=rows) as snapshot if any(isinstance(row, Holding) and row.ready for row in rows):
            alone = tuple(_NOBODY if isinstance(row, Holding) and row.ready else row for row in rows)
            return Envelope(event.seq, msgspec.structs.replace(snapshot, rows=alone))
        case _:
            return event
