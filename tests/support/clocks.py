"""Clocks for tests: no time passes unless a test, or who waits on one, moves it."""

from __future__ import annotations

#: Where the still clock's wall time begins: in September 2026.
NOW = 1_790_000_000.0


class StillClock:
    """A clock that moves only when it is told to; waiting on it takes no time."""

    def __init__(self) -> None:
        self.wall, self.mono = NOW, 1000.0

    def time(self) -> float:
        """Seconds since the epoch."""
        return self.wall

    def monotonic(self) -> float:
        """Seconds from an arbitrary point."""
        return self.mono

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.forward(seconds)

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self.wall += seconds
        self.mono += seconds
