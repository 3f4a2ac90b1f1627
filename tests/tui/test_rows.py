"""What is drawn, as text with tones: measured in cells, cut with an ellipsis, never wider than there is room."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.facts.files import State
from ckpt_tui.facts.status import Cell, Phase
from ckpt_tui.present.safe import escape
from ckpt_tui.stream.messages import RankRow
from ckpt_tui.tui.keys import TABS
from ckpt_tui.tui.rows import files, lines, ranks
from ckpt_tui.tui.rows.charset import ASCII, UNICODE, charset
from ckpt_tui.tui.rows.differences import differences
from ckpt_tui.tui.rows.matrix import matrix
from ckpt_tui.tui.rows.names import fold
from ckpt_tui.tui.rows.spans import Column, Span, clip, compose, fit, flow, layout, line, pieces, spread, width
from tests.tui import streams

names = st.text(min_size=1, max_size=12).map(escape)
spans = st.lists(st.builds(Span, st.text(max_size=12).map(escape), st.sampled_from(["", "bad"])), max_size=4)


def said(drawn: tuple[Span, ...]) -> str:
    return "".join(text for text, _ in drawn)


@given(spans=spans, size=st.integers(0, 30), right=st.booleans())
def test_fit_takes_exactly_its_cells_and_clip_at_most(spans: list[Span], size: int, right: bool) -> None:
    assert width(fit(spans, size, right=right)) == size
    assert width(clip(spans, size)) <= size


@given(left=spans, right=spans, size=st.integers(10, 60))
def test_spread_takes_exactly_its_cells(left: list[Span], right: list[Span], size: int) -> None:
    assert width(spread(left, right, size)) == size


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6), room=st.integers(12, 60))
def test_pieces_fit_their_room_and_the_last_to_leave_stays(sizes: list[int], room: int) -> None:
    parts = [(rank, line(str(rank) * size)) for rank, size in enumerate(sizes)]
    drawn = pieces(parts, room)
    assert width(drawn) <= room
    assert said(drawn).startswith("0")


@given(
    columns=st.lists(
        st.builds(Column, st.just(()), st.integers(1, 12), grow=st.integers(0, 2)), min_size=1, max_size=6
    ),
    size=st.integers(90, 200),
)
def test_columns_fill_the_table_where_one_grows(columns: list[Column], size: int) -> None:
    widths = layout(columns, size, size)
    row = compose([line("x" * 40)] * len(columns), columns, widths)
    if any(column.grow for column in columns):
        assert width(row) == size
    assert width(row) <= size


@given(middles=st.lists(names, min_size=2, max_size=6, unique=True), prefix=names, suffix=names)
def test_a_folded_name_and_its_pattern_give_the_name_again(middles: list[str], prefix: str, suffix: str) -> None:
    whole = [f"{prefix}{middle}{suffix}" for middle in middles]
    common = fold(whole)
    shorts = [common.short(name) for name in whole]
    assert [f"{common.prefix}{short}{common.suffix}" for short in shorts] == whole
    assert len(set(shorts)) == len(shorts)


def test_numbers_and_escapes_are_not_torn_apart() -> None:
    shards = [f"model-{number:05}-of-00033.safetensors" for number in (1, 2, 12)]
    assert fold(shards).pattern == "model-*-of-00033.safetensors"
    assert [fold(shards).short(name) for name in shards] == ["00001", "00002", "00012"]
    assert fold(["a-\\x1b1.safetensors", "a-\\x1b2.safetensors"]).prefix == "a-"
    assert fold(["x.safetensors"]).pattern == ""
    assert fold(["a.bin", "b.pt"]).pattern == ""


def test_a_filter_does_not_match_what_all_names_share() -> None:
    common = fold([f"model-{number:05}-of-00033.safetensors" for number in range(1, 34)])
    assert common.contains("model-00003-of-00033.safetensors", "0003")
    assert common.contains("model-00003-of-00033.safetensors", "MODEL-00003")
    assert not common.contains("model-00012-of-00033.safetensors", "0003")
    assert common.contains("model-00012-of-00033.safetensors", "")


@pytest.mark.parametrize("charset", [UNICODE, ASCII])
@given(part=st.integers(-5, 120), size=st.integers(1, 40))
def test_a_bar_takes_its_cells_and_is_full_only_at_the_end(charset: object, part: int, size: int) -> None:
    bar = charset.progress(part, 100, size)  # type: ignore[attr-defined]
    assert width(bar) == size
    assert (said(bar) == charset.bar[0] * size) == (part >= 100)  # type: ignore[attr-defined]


def test_a_spark_ends_with_the_newest_and_pads_at_the_left() -> None:
    assert UNICODE.spark([0, 5, 10], 5) == "  ▁▅█"
    assert UNICODE.spark([0, 0], 2) == "▁▁"
    assert len(UNICODE.spark([1.0] * 50, 20)) == 20


@given(share=st.floats(0, 1), cached=st.floats(0, 1), room=st.integers(20, 200))
def test_the_overall_bar_never_outgrows_its_line(share: float, cached: float, room: int) -> None:
    done = int(1_000_000 * share)
    status = streams.status(bytes_total=1_000_000, bytes_done=done, bytes_cached=int(done * cached))
    assert width(lines.overall(status, [1.0, 2.0], UNICODE, room)) <= room


@pytest.mark.parametrize("room", [40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_screen(room: int) -> None:
    state = streams.known(streams.session(decided=True))
    status = state.ranks[0].status
    drawn = [
        lines.title(state, "/x", UNICODE, room),
        lines.verdict_line(lines.standing(state, 0.0, "/x"), UNICODE, room),
        *lines.tabs([lines.Tab("1", "Files"), lines.Tab("2", "Ranks", applies=False)], "Files", UNICODE, room),
        lines.legend(status, state.survey, 1e9, UNICODE, room),
        *differences(streams.agreement(), UNICODE, room, 20),
    ]
    assert max(map(width, drawn)) <= room


def test_another_ranks_bad_file_is_never_called_good() -> None:
    row = streams.shard(3, Cell.BAD, rank=2)
    look = files.look([row], UNICODE, sha256=True, peak_rate=0.0)
    drawn = files.file_row(row, look, UNICODE, streams.NOW, 120)
    assert said(drawn.cells[0]) == "✗"
    assert said(drawn.cells[3]) == "bad on rank 2"


@pytest.mark.parametrize("state", [state for state in State if state is not State.GOOD])
@pytest.mark.parametrize("charset", [UNICODE, ASCII])
def test_every_state_has_a_glyph_and_a_word(state: State, charset: object) -> None:
    row = streams.shard(3, Cell.BAD, state=state, note="why it is so")
    look = files.look([row], charset, sha256=True, peak_rate=0.0)  # type: ignore[arg-type]
    drawn = files.file_row(row, look, charset, streams.NOW, 120)  # type: ignore[arg-type]
    assert len(said(drawn.cells[0])) == 1
    word = "corrupt" if state is State.DIGEST_MISMATCH else state.value
    assert said(drawn.cells[3]) == f"{word}: why it is so"


def test_a_matrix_of_more_shards_than_cells_shows_the_worst_of_each() -> None:
    cells = "=" * 500
    cells = cells[:250] + "!" + cells[251:]
    row = RankRow(status=streams.status(cells=cells), heard=0.0)
    drawn = matrix([ranks.Bundle(0, (row,), None)], None, UNICODE, roles="w" * 500, places={}, room=120, rows=2)
    assert "5 shards" in said(drawn[0])
    assert said(drawn[1]).count("✗") == 1
    assert all(width(one) <= 120 for one in drawn)


def test_ranks_in_trouble_come_before_those_at_work_and_done() -> None:
    phases = [Phase.DONE, Phase.CONTENT, Phase.LOST, Phase.ABSENT]
    rows = {rank: RankRow(status=streams.status(rank, phase), heard=0.0) for rank, phase in enumerate(phases)}
    assert [bundle.key for bundle in ranks.bundles(rows, None, ())] == [2, 3, 1, 0]


def test_differences_that_do_not_fit_are_counted() -> None:
    found = streams.agreement()
    many = msgspec.structs.replace(found, differences=found.differences * 20)
    drawn = differences(many, UNICODE, 120, 12)
    assert len(drawn) == 12
    assert "20 files differ" in said(drawn[0])
    assert said(drawn[-1]).strip().startswith("and ")
    assert differences(many, UNICODE, 120, 1) == []


@given(*(st.sampled_from([-(1 << 63), -1, 0, 1, 5, (1 << 63) - 1]) for _ in range(3)))
def test_the_whole_bar_fits_whatever_numbers_a_peer_gives(done: int, cached: int, total: int) -> None:
    status = streams.status(0, bytes_done=done, bytes_cached=cached, bytes_total=total)
    assert width(lines.overall(status, [1.0], UNICODE, 110)) in {0, 110 - 1}


@pytest.mark.parametrize("room", [30, 40, 65, 66, 80])
def test_the_tab_that_is_shown_has_its_word_at_any_width_and_a_click_finds_each(room: int) -> None:
    views = [lines.Tab(tab.key, tab.word) for tab in TABS]
    for active in views:
        words, rule = lines.tabs(views, active.word, UNICODE, room)
        text = said(words)
        assert f"{active.key} {active.word}" in text
        assert [tab.key in text for tab in views] == [True] * len(views)
        heavy = said(rule).index(UNICODE.rule_active)
        assert heavy == text.index(active.key) - 1
        for tab in views:
            assert lines.tab_at(views, active.word, room, text.index(tab.key)) == tab
    assert lines.tab_at(views, "Log", room, 80) is None


def test_words_flow_over_lines_and_only_what_is_longer_than_one_is_cut() -> None:
    flowed = flow((Span("read again  with /a/very/long/path "), Span("and more", "bad")), 12)
    assert list(map(said, flowed)) == ["read again", "with", "/a/very/long", "/path and", "more"]
    assert flowed[-1] == (Span("more", "bad"),)


def test_without_colours_cached_read_and_to_go_are_told_apart_by_their_glyphs() -> None:
    state = streams.known(streams.scanning())
    bar = lines.overall(state.ranks[0].status, (), charset(ascii_only=False, plain=True), 64)
    shares = [said(bar).count(glyph) for glyph in "█▓░"]
    assert shares[0] > shares[2] > 0 < shares[1]
    assert sum(shares) == 49


@pytest.mark.parametrize("screen", range(56, 141))
@pytest.mark.parametrize("decided", [False, True])
def test_what_ranks_do_has_room_beside_their_numbers(screen: int, decided: bool) -> None:
    columns = ranks.columns(screen, 9, ("MiB", 1 << 20), decided=decided)
    assert layout(columns, screen - 3, screen)[-1] >= 10
