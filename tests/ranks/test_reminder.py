"""How often those who wait say so."""

from __future__ import annotations

from ckpt_tui.ranks.reminder import Reminder


class Hands:
    """A clock that the test moves."""

    now = 0.0

    def time(self) -> float:
        """Never asked."""
        raise NotImplementedError

    def monotonic(self) -> float:
        """Where the hands are."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move them."""
        self.now += seconds


def test_it_is_said_soon_and_then_less_and_less_often() -> None:
    clock = Hands()
    reminder = Reminder(clock)
    said = []
    while clock.now < 200:
        if reminder.due():
            said.append(clock.now)
        clock.sleep(0.5)
    assert said == [1, 6, 16, 36, 66, 96, 126, 156, 186]
