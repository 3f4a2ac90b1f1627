"""Leaving, themes, help, and what the screen says when the worker is silent or gone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ckpt_tui.stream.messages import Beat, Bye, Envelope, Hello, Resync
from ckpt_tui.stream.state import Ended, StreamState, apply
from ckpt_tui.tui.farewell import exit_code, farewell
from ckpt_tui.tui.theme import ANSI, DARK, LIGHT, SIXTEEN
from tests.tui import streams
from tests.tui.screen import PATH, driven, run


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
@pytest.mark.parametrize(
    ("messages", "code"),
    [(streams.scanning, 130), (streams.verified, 0), (lambda: streams.session(decided=True), 1), (list, 130)],
)
def test_leaving_gives_the_sessions_code_or_130(key: str, messages: object, code: int) -> None:
    async def check() -> None:
        async with driven(messages()) as screen:  # type: ignore[operator]
            await screen.shows("q quit")
            await screen.until(lambda: screen.app.desk.state.seq == len(messages()))  # type: ignore[operator]
            await screen.press(key)
            await screen.until(lambda: not screen.app.is_running)
        assert screen.app.return_code == code

    run(check())


def test_q_in_a_live_session_asks_since_the_others_would_miss_this_rank() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=False)) as screen:
            await screen.shows("on 4 ranks")
            await screen.press("q")
            await screen.shows("leave?", "this rank leaves; 3 others will report it missing")
            await screen.press("escape")
            await screen.until(lambda: "leave?" not in screen.text)
            await screen.press("q", "q")
            await screen.until(lambda: not screen.app.is_running)
        assert screen.app.return_code == 130

    run(check())


def test_ctrl_c_leaves_from_the_filter_and_from_a_box() -> None:
    async def check(*keys: str) -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("00007")
            await screen.press(*keys)
            await screen.press("ctrl+c")
            await screen.until(lambda: not screen.app.is_running)
        assert screen.app.return_code == 130

    run(check("slash", "a"))
    run(check("question_mark"))
    run(check("enter"))


def test_three_silent_seconds_are_said_and_taken_back() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("READING")
            screen.clock.forward(3.5)
            await screen.shows("NO BEAT", "no word from the worker for 3 s")
            screen.source.feed(Beat(at=1.0))
            await screen.shows("READING")

    run(check())


def test_a_worker_that_died_is_said_with_its_signal() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            screen.source.put(Ended(-9))
            await screen.shows("NO BEAT", "the worker died with signal 9", "00021")
            await screen.press("q")
        assert screen.app.return_code == 3

    run(check())


def test_a_verdict_stands_when_the_worker_is_gone() -> None:
    async def check() -> None:
        async with driven(streams.verified()) as screen:
            screen.source.put(Ended(0))
            screen.clock.forward(60)
            await screen.shows("VERIFIED")

    run(check())


def test_an_error_is_shown_with_its_reason() -> None:
    async def check() -> None:
        reason = "/models/x: no checkpoint[/b] here"
        async with driven([streams.hello(), Bye(code=3, reason=reason)]) as screen:
            await screen.shows("FAILED", reason)
            await screen.press("q")
        assert screen.app.return_code == 3

    run(check())


def test_where_there_is_nothing_to_watch_the_screen_closes_by_itself() -> None:
    async def check() -> None:
        async with driven([streams.hello(), Bye(code=2, reason="no checkpoint")]) as screen:
            await screen.until(lambda: not screen.app.is_running)
        assert screen.app.return_code == 2

    run(check())


def test_the_worker_runs_before_textual_is_imported() -> None:
    code = "import sys, ckpt_tui.tui, ckpt_tui.tui.sources, ckpt_tui.tui.desk;"
    code += "print(sorted({'textual', 'torch'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_a_gap_asks_for_a_snapshot_once_a_second() -> None:
    async def check() -> None:
        async with driven([streams.hello()]) as screen:
            screen.source.put(Envelope(9, None))
            screen.source.put(Envelope(20, None))
            await screen.until(lambda: screen.app.desk.state.seq == 20)
            screen.source.put(Envelope(30, None))
            await screen.until(lambda: screen.app.desk.state.seq == 30)
            assert screen.source.commands == [Resync()]
            # What was missed meanwhile is not forgotten.
            screen.clock.forward(1)
            await screen.until(lambda: screen.source.commands == [Resync(), Resync()])

    run(check())


def test_help_lists_every_key_from_the_bindings() -> None:
    async def check() -> None:
        async with driven(streams.scanning(), size=(120, 40)) as screen:
            await screen.press("question_mark")
            await screen.shows("keys", "Files view", "filter by name", "copy: a digest", "first row", "quit", "^c")
            await screen.press("escape")
            await screen.until(lambda: "filter by name" not in screen.text)

    run(check())


def test_the_palette_offers_the_same_by_name() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.press("ctrl+p")
            await screen.shows("Filter by name", "Light or dark")
            await screen.press(*"ranks", "enter")
            await screen.shows("heard")

    run(check())


def test_t_turns_light_and_dark_and_only_our_themes_are_there() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            assert set(screen.app.available_themes) == {DARK, LIGHT, ANSI, SIXTEEN}
            await screen.press("t")
            await screen.until(lambda: screen.app.theme == LIGHT)
            await screen.press("t")
            await screen.until(lambda: screen.app.theme == DARK)

    run(check())


def test_without_colours_none_is_sent_and_the_words_stay() -> None:
    async def check() -> None:
        async with driven(streams.scanning(), plain=True) as screen:
            await screen.shows("READING", "✗ 1 shard truncated", "truncated: 12,345")
            colours = {
                str(colour)
                for strip in screen.app.screen._compositor.render_strips()
                for segment in strip
                if segment.style
                for colour in (segment.style.color, segment.style.bgcolor)
                if colour is not None and colour.is_default is False and colour.number is None
            }
            assert colours == set()  # the terminal's own sixteen at most; the filter takes those too

    run(check())


def test_what_stays_on_the_terminal() -> None:
    def state(messages: list) -> StreamState:
        made = StreamState()
        apply(made, [Envelope(seq, message) for seq, message in enumerate(messages, 1)])
        return made

    assert farewell(state(streams.session(decided=True)), PATH) == [
        "DIFFER  rank 2 (node-c) differs in 1 of 33 shards: its bytes break the hub's recorded hash",
        "  model-00007-of-00033.safetensors: model.layers.3.mlp.down_proj.weight",
    ]
    assert farewell(state(streams.scanning()), PATH) == [f"STOPPED  before a verdict: {PATH}"]
    assert farewell(state([streams.hello(), Bye(code=2, reason="no such thing")]), PATH) == ["FAILED  no such thing"]
    dead = state([streams.hello()])
    apply(dead, [Ended(-6)])
    assert farewell(dead, PATH) == [f"UNDECIDED  the worker died with signal 6: {PATH}"]
    assert exit_code(dead) == 3
    assert isinstance(dead.hello, Hello)
