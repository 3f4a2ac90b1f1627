"""The Mismatch view: from the groups to the bit, each step asked of those that are held ready."""

from __future__ import annotations

import msgspec
import pytest

from ckpt_tui.facts.agreement import Agreement, Between
from ckpt_tui.present import safe
from ckpt_tui.stream.messages import Descend, DrillRow, DrillState, Holding, Mode, Place, Release
from ckpt_tui.tui.rows.charset import UNICODE
from ckpt_tui.tui.rows.mismatch import Kind, Known, Node
from ckpt_tui.tui.rows.mismatch_detail import Detail
from tests.tui import streams
from tests.tui.screen import driven, run
from tests.tui.streams import SHARD, TENSOR, place

FILE = Place(file=SHARD)
#: Two runs of bytes, in the leaves 28 and 40.
TWO = (29_590_683, 41_943_041)
#: Keys that open a box.
BOXES = {"question_mark", "e", "ctrl+p", "R"}


def test_the_view_opens_at_the_bit_that_was_found() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled()), size=(140, 45)) as screen:
            await screen.press("3")
            await screen.shows("✗ B  [2]  wrong", "✓ A  [0,1,3]  right", "1 file differs", f"▾ {SHARD}", "leaf 28")
            await screen.shows(TENSOR, "BF16 [4,096, 12,288]", "[1204, 77]", "bit 15, the sign", "bit-flip: 1 bit")
            mine, theirs = screen.line_with("0x3c4a"), screen.line_with("0xbc4a")
            assert "0.0123   0x3c4a   0 01111000 1001010" in mine
            assert "-0.0123   0xbc4a   1 01111000 1001010" in theirs
            lines = screen.lines
            below = lines[lines.index(theirs) + 1]
            assert below.index("▴") == theirs.index("1 01111000")
            dump = next(line for line in lines if "[4a bc]" in line)
            assert lines[lines.index(dump) + 1].index("▴▴") == dump.index("bc]")
            await screen.shows("hf download zai-org/GLM-5.3-Flash-EXL3", "y copies it", "4 ranks held ready")

    run(check())


def test_enter_goes_deeper_and_escape_comes_back_and_lets_them_go_at_the_top() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.agreement()), size=(120, 40), start_view="ranks") as screen:
            await screen.press("3")
            await screen.shows("enter asks for it", "esc back")
            await screen.press("enter")
            await screen.until(lambda: screen.source.commands == [Descend(place=place())])
            screen.source.feed(DrillRow(place=place(), state=DrillState.PENDING))
            await screen.shows("asking", "the ranks that hold it are asked")
            await screen.press("enter")
            screen.source.feed(DrillRow(place=place(), state=DrillState.DONE, drill=streams.drill()))
            await screen.shows("1 byte", "bit 15, the sign")
            await screen.press("enter", "enter")
            await screen.shows("leaf 28")
            await screen.until(lambda: screen.app.view.table.cursor_key.at == place().at + 29_590_683)
            await screen.press("escape", "escape")
            await screen.shows("esc let them go")
            assert screen.source.commands == [Descend(place=place())]  # what is known is not asked again
            await screen.press("escape")
            await screen.until(lambda: screen.source.commands[-1] == Release())
            await screen.shows("standing", "shard  ")
            screen.source.feed(Holding(ready=False, reason="the screen has let them go"))
            await screen.until(lambda: "held ready" not in screen.text)

    run(check())


def test_a_failed_question_is_told_and_may_be_asked_again() -> None:
    async def check() -> None:
        failed = DrillRow(place=place(), state=DrillState.FAILED, error="rank 2 has [/left] us")
        async with driven(streams.told(streams.agreement(), failed), size=(120, 40)) as screen:
            await screen.press("3")
            await screen.shows("no answer", "rank 2 has [/left] us")
            await screen.press("enter")
            await screen.until(lambda: screen.source.commands == [Descend(place=place())])

    run(check())


def test_segments_that_were_not_listed_are_asked_for_by_file() -> None:
    async def check() -> None:
        found = streams.drilled(segments_left_out=1)
        async with driven(streams.told(found), size=(120, 40)) as screen:
            await screen.press("3", "escape", "escape")
            await screen.shows("1 of them not listed")
            await screen.press("space", "enter")
            await screen.until(lambda: screen.source.commands == [Descend(place=FILE)])
            bare = msgspec.structs.replace(found.differences[0].segments[0], drill=None)
            other = msgspec.structs.replace(bare, name="model.norm.weight", offset=9)
            screen.source.feed(DrillRow(place=FILE, state=DrillState.DONE, segments=(other, bare)))
            await screen.shows("model.norm.weight", "2 segments differ")
            await screen.until(lambda: "not listed" not in screen.text)
            assert "1 byte" in screen.line_with("    ▸ model.layers.3"[2:])  # what was looked into is kept

    run(check())


def test_another_run_of_bytes_is_asked_for_by_its_place() -> None:
    async def check() -> None:
        found = streams.drilled(found=streams.drill(runs=TWO))
        async with driven(streams.told(found), size=(120, 40)) as screen:
            await screen.press("3", "down")
            await screen.shows("1 byte in leaf 40", "enter asks for it")
            await screen.press("enter")
            await screen.until(lambda: screen.source.commands == [Descend(place=place(at=TWO[1]))])
            deeper = streams.drill(at=TWO[1] - 1, runs=TWO[1:])
            screen.source.feed(DrillRow(place=place(at=TWO[1]), state=DrillState.DONE, drill=deeper))
            await screen.until(lambda: "bit 15, the sign" in screen.text and "enter asks" not in screen.text)

    run(check())


def test_what_was_left_out_of_a_first_look_is_asked_for_from_its_start() -> None:
    async def check() -> None:
        found = streams.drilled(found=streams.drill(not_read=5 << 20))
        async with driven(streams.told(found), size=(120, 40)) as screen:
            await screen.press("3", "G")
            await screen.shows("… more")
            await screen.press("enter")
            await screen.until(lambda: screen.source.commands == [Descend(place=place())])
            whole = streams.drill(runs=TWO)
            screen.source.feed(DrillRow(place=place(), state=DrillState.DONE, drill=whole))
            await screen.shows("leaf 40")
            await screen.until(lambda: "… more" not in screen.text)

    run(check())


def test_where_nobody_is_held_the_tree_ends_and_says_so() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.agreement(), held=False), size=(120, 40)) as screen:
            await screen.press("3")
            await screen.shows("nobody is held ready: nobody stayed. This is as deep as")
            await screen.press("enter", "escape", "escape", "q")
            await screen.until(lambda: not screen.app.is_running)
        assert screen.source.commands == []

    run(check())


def test_another_tab_lets_nobody_go_and_leaving_the_screen_does() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled())) as screen:
            await screen.press("3", "2", "6", "1")
            await screen.shows("4 ranks held ready")
            assert screen.source.commands == []
            screen.clock.forward(100)
            await screen.shows("4 ranks held ready, 1 m")
            await screen.press("q")
            await screen.until(lambda: not screen.app.is_running)
        assert screen.source.commands == [Release()]

    run(check())


def test_a_guest_at_another_session_lets_nobody_go() -> None:
    async def check() -> None:
        rows = [streams.hello(Mode.ATTACH), *streams.told(streams.drilled())[1:]]
        async with driven(rows) as screen:
            await screen.press("3", "escape", "escape", "escape", "q")
            await screen.until(lambda: not screen.app.is_running)
        assert screen.source.commands == []

    run(check())


def test_n_walks_the_differences_from_every_view() -> None:
    def several() -> Agreement:
        made = streams.drilled()
        first = made.differences[0]
        second = msgspec.structs.replace(first, file="model-00009-of-00033.safetensors")
        return msgspec.structs.replace(made, differences=(first, second))

    async def check(view: str, *keys: str) -> None:
        async with driven(streams.told(several()), size=(120, 40), start_view=view) as screen:
            await screen.shows("DIFFER", "held ready")
            await screen.press("n")
            await screen.until(lambda: screen.app.view.id == "mismatch")
            await screen.until(lambda: screen.app.view.table.cursor_key.place.file == SHARD)
            await screen.press("n")
            await screen.until(lambda: screen.app.view.table.cursor_key.place.file.startswith("model-00009"))
            await screen.press("n")
            await screen.shows("that was the last difference")
            await screen.press("N")
            await screen.until(lambda: screen.app.view.table.cursor_key.place.file == SHARD)

    run(check("files"))
    run(check("ranks"))


def test_n_where_nothing_differs_says_so_and_the_tab_is_dim() -> None:
    async def check() -> None:
        async with driven(streams.verified()) as screen:
            await screen.press("n")
            await screen.shows("nothing differs, as far as is known")
            await screen.press("3")
            await screen.shows("one checkpoint alone has nothing to differ from")

    run(check())


def test_y_copies_the_mend_command_whole_and_of_a_group_its_content() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled())) as screen:
            await screen.press("3", "y")
            await screen.shows("mend command hf download")
            assert screen.app.clipboard == streams.agreement().differences[0].cause.mend
            await screen.press("g", "y")
            await screen.until(lambda: screen.app.clipboard == "bb22" * 16)

    run(check())


def test_the_filter_finds_tensors_and_escape_clears_it_first() -> None:
    async def check() -> None:
        found = streams.drilled()
        other = msgspec.structs.replace(found.differences[0].segments[0], name="model.norm.weight", offset=1)
        one = msgspec.structs.replace(found.differences[0], segments=(*found.differences[0].segments, other))
        async with driven(streams.told(msgspec.structs.replace(found, differences=(one,)))) as screen:
            await screen.press("3")
            await screen.shows("model.norm.weight")
            await screen.press("slash", *"down", "enter")
            await screen.until(lambda: "model.norm.weight" not in screen.text)
            await screen.press("escape")
            await screen.shows("model.norm.weight")
            assert screen.app.view.id == "mismatch"

    run(check())


def test_sort_and_fold_and_the_mouse() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled())) as screen:
            await screen.press("3", "s")
            await screen.shows("files sorted: name")
            row = screen.lines.index(screen.line_with(f"▾ {SHARD}"[:20]))
            await screen.pilot.click(offset=(8, row))
            await screen.shows("A [0,1,3]", "sha256 53aa51172d14")
            await screen.press("space")
            await screen.until(lambda: "leaf 28" not in screen.text)
            await screen.press("space")
            await screen.shows(f"▾ {TENSOR}"[:20])

    run(check())


@pytest.mark.parametrize("size", [(40, 12), (60, 14)])
def test_a_small_screen_shows_one_pane_at_a_time(size: tuple[int, int]) -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled()), size=size) as screen:
            await screen.press("3")
            await screen.shows("leaf 28", "groups")
            await screen.press("enter")
            await screen.shows("differs", "1 byte in leaf 28")
            await screen.until(lambda: "groups" not in screen.text)
            await screen.press("escape")
            await screen.shows("groups", "leaf 28")

    run(check())


def test_a_narrow_screen_stacks_the_panes_and_a_resize_loses_nothing() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled()), size=(80, 24)) as screen:
            await screen.press("3")
            await screen.shows("leaf 28", "bit 15, the sign", "▴")
            await screen.pilot.resize_terminal(140, 45)
            await screen.shows("leaf 28", "y copies it")
            await screen.pilot.resize_terminal(40, 12)
            await screen.shows("leaf 28")

    run(check())


HOSTILE = {
    "markup": "[/red]x[bold]y",
    "escape": "a\x1b[31mb\x1b]0;t\x07",
    "newline": "a\nb\r\tc",
    "right-to-left": "a\u202eb\u2066c",
    "not utf-8": "a\udcffb",
    "wide": "日本語モデル" * 9,
    "long": "x" * (1 << 20),
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_are_shown_as_they_are_and_obeyed_nowhere(name: str) -> None:
    """Case U01, tensors and hosts."""
    text = safe.escape(name)

    async def check() -> None:
        found = streams.drilled()
        one = found.differences[0]
        segment = msgspec.structs.replace(one.segments[0], name=text)
        cause = msgspec.structs.replace(one.cause, summary=text, facts=(text,), mend=text)
        one = msgspec.structs.replace(one, file=text, segments=(segment,), cause=cause, groups={"A": text, "B": text})
        group = msgspec.structs.replace(found.groups[1], evidence=(text,))
        made = msgspec.structs.replace(found, differences=(one,), groups=(found.groups[0], group), summary=text)
        async with driven(streams.told(made), size=(140, 45)) as screen:
            await screen.press("3")
            await screen.shows("leaf 28", "bit 15, the sign", text[:24])
            for keys in (("escape",), ("escape",), ("up",), ("g",), ("y",)):
                await screen.press(*keys)
                await screen.shows(text[:24] if keys != ("y",) else "copied")
                assert all(char.isprintable() for line in screen.lines for char in line)

    run(check())


def test_plain_ascii_and_no_colours_keep_every_mark() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled()), ascii_only=True, plain=True, size=(140, 45)) as screen:
            await screen.press("3")
            await screen.shows("x B  [2]  wrong", "[4a bc]", "^^", "v model-00007", "leaf 28")
            assert screen.text.isascii()

    run(check())


def test_plain_ascii_is_all_that_is_drawn_in_every_view_and_box() -> None:
    async def check() -> None:
        async with driven(streams.told(streams.drilled()), ascii_only=True, size=(80, 24)) as screen:
            for key in ("1", "2", "3", "4", "5", "6", "question_mark", "e", "ctrl+p", "slash", "R", "n"):
                await screen.press(key)
                screens = 1 + (key in BOXES)
                await screen.until(lambda screens=screens: len(screen.app.screen_stack) == screens)  # type: ignore[misc]
                await screen.pilot.pause()
                assert screen.text.isascii(), screen.text
                await screen.press(*["escape"] * (key in {*BOXES, "slash"}))

    run(check())


@pytest.mark.parametrize("size", [(140, 45), (80, 24), (40, 20)])
def test_why_there_is_nothing_to_see_is_said_whole(size: tuple[int, int]) -> None:
    async def check() -> None:
        async with driven(streams.verified(), size=size) as screen:
            await screen.press("3")
            await screen.shows("one checkpoint alone")
            told = " ".join(screen.text.split())
            assert "nothing to differ from: ckpt-tui compare A B, or ckpt-tui ranks" in told
            assert "▏" not in screen.text

    run(check())


def detail(known: Known, node: Node, room: int) -> list[str]:
    return ["".join(span.text for span in one) for one in Detail(known, UNICODE, room).lines(node)]


@pytest.mark.parametrize("width", range(60, 120))
def test_bits_are_drawn_whole_or_on_lines_of_their_own(width: int) -> None:
    found = streams.drill()
    side = found.sides[0]
    assert side.first is not None
    sides = [
        msgspec.structs.replace(one, value="-8.50815835e+36", hex="fcccd393") for one in (side.first.reference,) * 2
    ]
    first = msgspec.structs.replace(side.first, reference=sides[0], other=sides[1], bits=(7,))
    side = msgspec.structs.replace(side, dtype="F32", first=first)
    known = Known(streams.drilled(found=msgspec.structs.replace(found, sides=(side,))))
    drawn = detail(known, Node(Kind.SEGMENT, next(iter(known.segments(SHARD)))), width)
    assert sum("1 11111001 10011001101001110010011" in one for one in drawn) == 2
    assert not any(one.endswith("…") for one in drawn)


def test_copies_are_named_in_their_group_and_not_counted_from_nought() -> None:
    found = streams.drilled()
    ranks = tuple(msgspec.structs.replace(one, path=f"/models/{'abcd'[one.rank]}") for one in found.ranks)
    known = Known(msgspec.structs.replace(found, between=Between.COPIES, ranks=ranks))
    drawn = detail(known, Node(Kind.GROUP, side="B"), 100)
    assert [one.split() for one in drawn if one.lstrip().startswith("copies")] == [["copies", "c"]]
