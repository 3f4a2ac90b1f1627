"""`p` and `R`: what the screen wishes of its worker, and what it shows of it."""

from __future__ import annotations

import msgspec
import pytest

from ckpt_tui.facts.status import Phase
from ckpt_tui.stream.messages import Again, Message, Mode, Pause, RankRow
from ckpt_tui.stream.state import Ended
from tests.tui import streams
from tests.tui.screen import Driven, driven, run


def resting(messages: list[Message], rank: int = 0) -> list[Message]:
    """The same, with a rank that is paused."""
    return [
        RankRow(
            status=msgspec.structs.replace(
                row.status, paused=True, rate=0.0, doing="paused by its screen at 62 %", phase=Phase.CONTENT
            ),
            heard=row.heard,
        )
        for row in messages
        if isinstance(row, RankRow) and row.status.rank == rank
    ]


def test_p_pauses_and_goes_on_and_the_verdict_line_says_so() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("READING", "0.66 GiB/s", "left")
            await screen.press("p")
            await screen.until(lambda: screen.source.commands[-1:] == [Pause(on=True)])
            screen.source.feed(*resting(streams.scanning()))
            await screen.shows("PAUSED   129.2 of 190.4 GiB    67 %   p goes on", "1 shard truncated")
            assert " left" not in screen.lines[1]
            assert "GiB/s" not in screen.lines[1]
            rates = len(screen.app.desk.rates)
            screen.clock.forward(2)
            await screen.pilot.pause()
            assert len(screen.app.desk.rates) == rates, "a pause is no rate"
            await screen.press("p")
            await screen.until(lambda: screen.source.commands[-1:] == [Pause(on=False)])

    run(check())


def test_another_ranks_pause_is_told_and_no_time_is_foretold() -> None:
    async def check() -> None:
        session = streams.session(decided=False)
        async with driven(session, start_view="ranks", size=(140, 32)) as screen:
            await screen.shows("left")
            screen.source.feed(*resting(session, 2))
            await screen.shows("READING", "rank 2 is paused", "paused by its screen at 62 %")
            assert " left" not in screen.lines[1]

    run(check())


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (lambda: [streams.hello(Mode.ATTACH), *streams.session(decided=False)[1:]], "only the screen of the rank"),
        (lambda: streams.session(decided=True), "nothing is being read"),
        (streams.verified, "nothing is being read"),
    ],
)
def test_p_says_why_where_nothing_can_be_paused(messages: object, said: str) -> None:
    async def check() -> None:
        async with driven(messages()) as screen:  # type: ignore[operator]
            await screen.until(lambda: screen.app.desk.state.seq == len(messages()))  # type: ignore[operator]
            await screen.press("p")
            await screen.shows(said)
            assert not any(isinstance(command, Pause) for command in screen.source.commands)

    run(check())


def test_another_rank_is_asked_for_only_where_there_is_one() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("READING")
            await screen.press("right_square_bracket")
            await screen.shows("there is no other rank to watch")
            assert not screen.source.commands

    run(check())


def footer(screen: Driven) -> str:
    return screen.lines[-1]


def test_the_footer_offers_what_does_something_now() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("/ filter", "s sort", "p pause")
            assert "export" not in footer(screen), "there is no result yet"
            assert "rank" not in footer(screen)
            screen.source.feed(*resting(streams.scanning()))
            await screen.shows("p go on")
            screen.source.feed(*streams.scanned()[-3:])
            await screen.shows("e export")
            assert "p go on" not in footer(screen)
            assert "y copy" not in footer(screen), "of the truncated shard no digest is known"
            await screen.press("G")
            await screen.until(lambda: "y copy" not in footer(screen))
            await screen.press("up", "2")
            await screen.until(lambda: "filter" not in footer(screen))
            await screen.press("3")
            await screen.until(lambda: footer(screen).split() == ["esc", "back", "?", "help", "q", "quit"])
        async with driven(streams.session(decided=False), start_view="ranks") as screen:
            await screen.shows("[ ] rank", "p pause")
            assert "copy" not in footer(screen)
            screen.source.put(Ended(-9))
            await screen.shows("NO BEAT")
            assert footer(screen).split() == ["?", "help", "^p", "commands", "q", "quit"]

    run(check())


def test_reading_again_asks_first() -> None:
    async def check() -> None:
        async with driven(streams.verified()) as screen:
            await screen.shows("VERIFIED")
            await screen.press("R")
            await screen.shows("read again?", "190.4 GiB are read, whatever the cache remembers")
            await screen.press("escape")
            await screen.until(lambda: "read again?" not in screen.text)
            assert not any(isinstance(command, Again) for command in screen.source.commands)
            await screen.press("R", "R")
            await screen.until(lambda: screen.source.commands[-1:] == [Again()])
            assert "read again?" not in screen.text

    run(check())


def test_a_session_cannot_be_read_again_from_one_rank() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=False)) as screen:
            await screen.shows("on 4 ranks")
            await screen.press("R")
            await screen.shows("a session reads once, on all ranks", "--rehash")
            await screen.press("R", "escape")
            await screen.until(lambda: "read again?" not in screen.text)
            assert not any(isinstance(command, Again) for command in screen.source.commands)

    run(check())
