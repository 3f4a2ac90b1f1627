"""How often those who wait say so."""

from __future__ import annotations

from ckpt_tui.ranks.reminder import Reminder
from tests.support.clocks import StillClock


def test_it_is_said_soon_and_then_less_and_less_often() -> None:
    clock = StillClock()
    begin = clock.mono
    reminder = Reminder(clock)
    said = []
    while clock.mono < begin + 200:
        if reminder.due():
            said.append(clock.mono - begin)
        clock.forward(0.5)
    assert said == [1, 6, 16, 36, 66, 96, 126, 156, 186]
