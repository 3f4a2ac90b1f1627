"""The screen on a recording."""

from __future__ import annotations

from pathlib import Path

from ckpt_tui.stream.messages import Message, Mode
from ckpt_tui.stream.playback import Player
from ckpt_tui.stream.recording import Recording
from ckpt_tui.tui.replay import ReplayApp
from tests.stream.recordings import minute, record
from tests.support.clocks import StillClock
from tests.tui import streams
from tests.tui.screen import Driven, run


def on_screen(path: Path, check: object) -> None:
    """Run `check(screen)` on the recording's screen, whose clock stands still unless it is moved."""

    async def watched() -> None:
        clock = StillClock()
        player = Player(Recording(str(path)), clock)
        app = ReplayApp(player, path=str(path))
        async with app.run_test(size=(120, 32), notifications=True) as pilot:
            await check(Driven(app, player, clock, pilot))  # type: ignore[operator, arg-type]

    run(watched())


def test_it_plays_stands_still_and_jumps(tmp_path: Path) -> None:
    async def check(screen: Driven) -> None:
        screen.clock.forward(12)
        await screen.shows("READING", "replay 0:12 of 1:00", "p pause")
        await screen.press("p")
        screen.clock.forward(30)
        await screen.shows("paused 0:12 of 1:00", "p go on")
        assert screen.lines[-1].split("p go on")[1].split()[-5:-1] == ["help", "^p", "commands", "q"]
        await screen.press("right")
        await screen.shows("paused 0:22 of 1:00", "READING")
        await screen.press("left", "left", "p")
        await screen.shows("replay 0:02 of 1:00")
        screen.clock.forward(5)
        await screen.shows("replay 0:07 of 1:00")
        assert "NO BEAT" not in screen.text

    on_screen(record(tmp_path / "a.rec", minute()), check)


def test_where_a_recording_was_cut_the_screen_says_so_and_a_jump_goes_back(tmp_path: Path) -> None:
    async def check(screen: Driven) -> None:
        screen.clock.forward(100)
        await screen.shows("STOPPED", "the recording ends here", "ended 1:00 of 1:00")
        await screen.press("left")
        await screen.shows("READING", "replay 0:50 of 1:00")

    on_screen(record(tmp_path / "a.rec", minute(bye=False)), check)


def test_leaving_a_ranks_recording_asks_nothing_and_the_help_knows_its_keys(tmp_path: Path) -> None:
    messages: list[tuple[float, Message]] = [(0.0, streams.hello(Mode.RANKS)), *minute()[1:]]

    async def check(screen: Driven) -> None:
        screen.clock.forward(3)
        await screen.shows("READING")
        await screen.press("question_mark")
        await screen.shows("stand still, go on", "10 s back")
        await screen.press("escape", "left_square_bracket")
        await screen.shows("a recording shows the rank that was watched")
        await screen.press("q")
        await screen.until(lambda: screen.app.return_code == 130)

    on_screen(record(tmp_path / "a.rec", messages), check)
