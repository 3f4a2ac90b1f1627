"""The Files view, fed by made-up streams."""

from __future__ import annotations

import re

import msgspec
import pytest

from ckpt_tui.facts.files import Role
from ckpt_tui.facts.status import Cell
from ckpt_tui.present.safe import escape
from ckpt_tui.stream.messages import FileRow, Level, LogLine, RankRow
from ckpt_tui.tui.views.files import FilesView
from ckpt_tui.tui.widgets.table import Table
from tests.tui import streams
from tests.tui.screen import driven, run

HOSTILE = [
    "model[/red]x.safetensors",
    "w[bold]eights.safetensors",
    "a\x1b[31mred.safetensors",
    "tfel\u202etxt.safetensors",
    "two\nlines.safetensors",
    "[link=x]a, 2.safetensors",
    "模型-00001.safetensors",
]


def names_of(screen: object) -> list[str]:
    """The short names in the order of their rows."""
    return [match[1] for match in re.finditer(r"^  [✗▸·=✓!?]  (\d{5}) ", screen.text, re.MULTILINE)]  # type: ignore[attr-defined]


def test_the_first_frame_is_up_before_the_worker_has_said_anything() -> None:
    async def check() -> None:
        async with driven() as screen:
            await screen.shows("GLM-5.3-Flash-EXL3", "STARTING", "the worker is starting", "1 Files")

    run(check())


def test_it_says_what_it_is_how_far_it_is_and_what_the_cache_saved() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows(
                "zai-org/GLM-5.3-Flash-EXL3",
                "hub rev 423acf37",
                "33 shards",
                "190.4 GiB",
                "READING",
                "129.2 of 190.4 GiB",
                "67 %",
                "0.66 GiB/s",
                "1 m 33 s left",
                "✗ 1 shard truncated",
                "12 of 33 cached, 69.2 GiB not read, about 1 m 45 s saved",
                "60.0 GiB read",
                "61.2 GiB to go",
                "8 threads, sha256",
                "model-*-of-00033.safetensors",
                "truncated: 12,345 bytes short",
                "cached, 3 d ago",
                "✓ hub",
            )
            assert names_of(screen)[:2] == ["00007", "00021"]

    run(check())


def test_rows_are_sorted_bad_reading_waiting_done() -> None:
    async def check() -> None:
        async with driven(streams.scanning(), size=(120, 60)) as screen:
            await screen.shows("00007", "4 sidecars")
            marks = [line[2] for line in screen.lines if re.match(r"  [✗▸·=✓]  \d{5} ", line)]
            assert "".join(marks) == "✗" + "▸" * 8 + "·" * 5 + "=" * 12 + "✓" * 7

    run(check())


def test_a_row_that_changes_is_drawn_again_and_sorted_within_a_second() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("00021")
            screen.source.feed(streams.shard(21, Cell.READING, done=0.995))
            await screen.shows("99 %")
            screen.source.feed(streams.shard(21, Cell.READ))
            screen.clock.forward(2)
            await screen.until(lambda: names_of(screen)[1] == "00022")

    run(check())


def test_sorting_rests_for_three_seconds_after_a_key_and_the_cursor_holds_its_row() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("00021")
            table = screen.app.query_one("#files-table", Table)
            await screen.press("down")
            assert table.cursor_key == 21
            screen.source.feed(streams.shard(21, Cell.READ))
            screen.clock.forward(2)
            await screen.until(lambda: "read " in screen.line_with(" 00021 "))
            assert names_of(screen)[1] == "00021"
            screen.clock.forward(2)
            await screen.until(lambda: names_of(screen)[1] == "00022")
            assert table.cursor_key == 21

    run(check())


@pytest.mark.parametrize("ascii_only", [False, True])
def test_hostile_names_are_shown_in_full_and_give_no_colour(ascii_only: bool) -> None:
    """Case U01, files."""

    async def check() -> None:
        escaped = [escape(name) for name in HOSTILE]
        files = [
            FileRow(rank=0, index=index, name=name, role=Role.WEIGHTS, size=streams.SHARD_BYTES, cell=Cell.WAITING)
            for index, name in enumerate(escaped)
        ]
        status = streams.status(host="node[/]a")
        rows = [streams.hello(), streams.survey(len(files)), RankRow(status=status, heard=streams.NOW), *files]
        async with driven(rows, size=(140, 40), ascii_only=ascii_only) as screen:
            wanted = [screen.app.desk.charset.name(name).removesuffix(".safetensors") for name in escaped]
            await screen.shows(*wanted, "node[/]a")
            rendered = screen.app.screen._compositor.render_strips()
            names = [segment for strip in rendered for segment in strip if any(name in segment.text for name in wanted)]
            assert len({str(segment.style and segment.style.color) for segment in names}) == 1
            assert all("\x1b" not in segment.text and "\u202e" not in segment.text for segment in names)
            await screen.press("enter")
            await screen.shows(screen.app.desk.charset.name(escaped[0]))

    run(check())


def test_details_show_digests_whole_and_y_copies_one() -> None:
    async def check() -> None:
        async with driven(streams.verified()) as screen:
            await screen.shows("VERIFIED", "33/33 cached, 0.0 GiB read")
            await screen.press("down", "enter")
            whole = streams.shard(2, Cell.CACHED).result
            assert whole is not None
            assert whole.sha256 is not None
            await screen.shows(whole.sha256, str(whole.digest), "412, safetensors", "53aa" * 16)
            await screen.press("y")
            await screen.until(lambda: screen.app.clipboard == whole.sha256)
            await screen.press("escape")
            await screen.until(lambda: whole.sha256 not in screen.text)

    run(check())


def test_y_with_nothing_to_copy_says_so() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("00007")
            await screen.press("y")
            await screen.shows("nothing to copy here yet")
            assert screen.app.clipboard == ""

    run(check())


def test_the_filter_keeps_what_contains_it_and_escape_clears_it() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("00007")
            await screen.press("slash", *"0003")
            await screen.shows("5 of 37 files contain 0003")
            assert sorted(names_of(screen)) == ["00003", "00030", "00031", "00032", "00033"]
            await screen.press("enter", "q")  # the keys go to the table again: this q is no letter
            await screen.until(lambda: not screen.app.is_running)

    async def clear() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.press("slash", *"0003", "escape")
            await screen.shows("12 of 33 cached")
            assert len(names_of(screen)) > 4

    run(check())
    run(clear())


def test_s_turns_the_order() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.shows("state ▾")
            await screen.press("s")
            await screen.shows(".safetensors ▾")
            assert names_of(screen)[:3] == ["00001", "00002", "00003"]
            await screen.press("s")
            await screen.shows("▾ size")

    run(check())


def test_space_unfolds_the_sidecars() -> None:
    async def check() -> None:
        async with driven(streams.scanning(), size=(120, 60)) as screen:
            await screen.shows("4 sidecars")
            await screen.press("space")
            await screen.shows("generation_config.json", "tokenizer_config.json")
            assert "4 sidecars" not in screen.text

    run(check())


def test_j_k_g_and_the_ends_move_the_cursor() -> None:
    async def check() -> None:
        async with driven(streams.verified()) as screen:
            await screen.shows("00001")
            table = screen.app.query_one("#files-table", Table)
            for key, expected in (
                ("j", 2),
                ("j", 3),
                ("k", 2),
                ("G", "sidecars"),
                ("up", 33),
                ("g", 1),
                ("end", "sidecars"),
                ("home", 1),
            ):
                await screen.press(key)
                assert table.cursor_key == expected
            await screen.press("pagedown")
            assert isinstance(table.cursor_key, int)
            assert table.cursor_key > 10

    run(check())


def test_the_mouse_moves_the_cursor_and_opens() -> None:
    async def check() -> None:
        async with driven(streams.verified()) as screen:
            await screen.shows("00005")
            await screen.pilot.click("#files-table", offset=(10, 5))
            assert screen.app.query_one("#files-table", Table).cursor_key == 5
            await screen.pilot.click("#tabs", offset=(14, 0))
            await screen.shows("heard")

    run(check())


@pytest.mark.parametrize("size", [(40, 12), (60, 16), (80, 24), (100, 24), (140, 45)])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_every_size_shows_the_verdict_the_worst_row_and_the_way_out(size: tuple[int, int], ascii_only: bool) -> None:
    async def check() -> None:
        async with driven(streams.scanning(), size=size, ascii_only=ascii_only) as screen:
            await screen.shows("READING", "67 %", "1 shard truncated", "00007", "5.8 GiB", "? help", "q quit")
            assert ("hub" in screen.line_with("00001 ")) == (size[0] >= 100) if size[1] > 30 else True
            assert ("1 Files" in screen.text) == (size[1] >= 20)
            assert ("cached, 69.2" in screen.text) == (size[1] >= 20)
            assert ("recorded" in screen.text) == (size[0] >= 100)
            assert all(len(line) == size[0] for line in screen.lines)
            if ascii_only:
                assert screen.text.isascii()

    run(check())


def test_a_resize_lays_out_again() -> None:
    async def check() -> None:
        async with driven(streams.scanning(), size=(120, 32)) as screen:
            await screen.shows("recorded")
            await screen.pilot.resize_terminal(60, 15)
            await screen.until(lambda: "recorded" not in screen.text and "1 Files" not in screen.text)
            await screen.pilot.resize_terminal(120, 32)
            await screen.shows("recorded", "1 Files")

    run(check())


def test_ten_thousand_files_answer_a_key_at_once() -> None:
    """Case U02, files."""

    async def check() -> None:
        rows = [streams.shard(number, Cell.WAITING, total=10_000) for number in range(1, 10_001)]
        async with driven([streams.hello(), streams.survey(10_000), *rows]) as screen:
            await screen.shows("00001")
            begun = screen.app.desk.clock.monotonic()
            await screen.press("G", "up")
            assert screen.app.query_one(FilesView).table.cursor_key == 9_999
            assert screen.app.desk.clock.monotonic() == begun
            await screen.shows("09999")

    run(check())


def test_the_log_shows_native_output_and_follows_its_end() -> None:
    async def check() -> None:
        logs = [LogLine(number=n, at=streams.NOW + n, level=Level.NATIVE, text=f"line [b]{n}[/b]") for n in range(80)]
        async with driven([streams.hello(), *logs]) as screen:
            await screen.press("6")
            await screen.shows("line [b]79[/b]", "native")
            screen.source.feed(LogLine(number=99, at=streams.NOW + 99, level=Level.ERROR, text="the last"))
            await screen.shows("the last")
            await screen.press("enter")
            await screen.shows("text", "the last", "esc back")

    run(check())


def test_a_warm_result_reads_as_the_field_does() -> None:
    async def check() -> None:
        rows = [msgspec.structs.replace(row) for row in streams.verified()]
        async with driven(rows) as screen:
            await screen.shows("33 of 33 cached, 190.4 GiB not read", "0.0 GiB read", "oldest digest 3 d")
            await screen.press("q")
        assert screen.app.return_code == 0

    run(check())
