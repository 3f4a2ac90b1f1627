"""Lines: bounded, typed, without NaN; what is not known is skipped and counted."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.facts.agreement import DifferingSegment
from ckpt_tui.facts.files import SegmentKind
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.status import Cell, Phase, RankStatus
from ckpt_tui.present.safe import escape
from ckpt_tui.stream import codec
from ckpt_tui.stream.messages import (
    Beat,
    DrillRow,
    DrillState,
    Level,
    LogLine,
    Mode,
    Place,
    Quit,
    RankRow,
    ResultPart,
    Resync,
    Watch,
)
from ckpt_tui.stream.outbox import key_of
from ckpt_tui.stream.state import StreamState, apply
from tests.tui import streams


@given(text=st.text())
def test_any_escaped_text_comes_back_as_it_went(text: str) -> None:
    sent = LogLine(number=1, at=2.0, level=Level.INFO, text=escape(text))
    assert codec.decode(codec.encode(7, sent)) == codec.Envelope(7, sent)


def test_a_line_holds_one_message_and_ends_with_a_newline() -> None:
    line = codec.encode(1, Beat(at=1.0))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_refused(number: float) -> None:
    status = RankStatus(rank=0, host="a", phase=Phase.CONTENT, rate=number)
    with pytest.raises(codec.BadLineError, match="not finite"):
        codec.encode(1, RankRow(status=status, heard=0.0))


def test_a_line_that_is_too_long_is_refused() -> None:
    with pytest.raises(codec.BadLineError, match="bytes"):
        codec.encode(1, LogLine(number=1, at=0.0, level=Level.INFO, text="x" * codec.MAX_LINE))


@pytest.mark.parametrize(
    "line", [b'{"seq":9,"message":{"type":"from-the-future"}}', b'{"seq":9,"message":{"type":"beat"}}']
)
def test_a_message_that_is_not_known_keeps_its_number(line: bytes) -> None:
    assert codec.decode(line) == codec.Envelope(9, None)


@pytest.mark.parametrize("line", [b"", b"\xff\xfe\n", b"[W socket.cpp] hello\n", b"{}", b'{"seq":"x"}'])
def test_a_line_that_is_no_message_is_told_apart(line: bytes) -> None:
    with pytest.raises(codec.BadLineError):
        codec.decode(line)


def test_commands_come_back_and_others_are_none() -> None:
    for command in (Quit(), Resync(), Watch(rank=3)):
        assert codec.decode_command(codec.encode_command(command)) == command
    assert codec.decode_command(b'{"type":"explode"}') is None
    assert codec.decode_command(b"\xff") is None


def test_a_snapshot_of_ten_thousand_files_fits_its_lines() -> None:
    rows = [streams.shard(number, Cell.READ, total=10_000) for number in range(10_000)]
    slices = list(codec.slices(rows))
    assert all(len(codec.encode(1, piece)) <= codec.MAX_LINE for piece in slices)
    assert [row for piece in slices for row in piece.rows] == rows
    assert [piece.part for piece in slices] == list(range(slices[0].parts))


def test_nothing_known_is_a_snapshot_too() -> None:
    assert [piece.parts for piece in codec.slices([])] == [1]


def test_a_large_result_fits_its_lines_and_comes_back() -> None:
    one = streams.result("模型\\u202e-00001.safetensors")
    found = msgspec.structs.replace(streams.scan_result(), files=(one,) * 3000)
    parts = list(codec.split_result(found))
    assert len(parts) > 10
    assert all(len(codec.encode(1, part)) <= codec.MAX_LINE for part in parts)
    assert codec.join_result(parts) == found


def test_a_result_of_another_shape_is_a_bad_line() -> None:
    part = next(codec.split_result(streams.agreement()))
    assert isinstance(codec.join_result([part]), type(streams.agreement()))
    with pytest.raises(codec.BadLineError):
        codec.join_result([msgspec.structs.replace(part, text="{}")])
    assert not isinstance(codec.join_result([part]), ScanResult)


def test_an_answer_of_any_length_comes_in_lines_that_fit_and_is_whole_again() -> None:
    place = Place(file="model.safetensors")
    named = tuple(
        DifferingSegment(name=f"model.layers.{number}.weight", kind=SegmentKind.TENSOR, offset=number, length=1)
        for number in range(20_000)
    )
    endless = DifferingSegment(name="x" * codec.MAX_LINE, kind=SegmentKind.TENSOR, offset=0, length=1)
    row = DrillRow(place=place, state=DrillState.DONE, segments=(*named, endless))
    slices = list(codec.split_drill(row))
    assert len(slices) > 3
    assert {one.state for one in slices[:-1]} == {DrillState.PENDING}
    state = StreamState()
    rows = [DrillRow(place=place, state=DrillState.PENDING), *slices]
    assert len({key_of(one) for one in slices}) == len(slices)
    apply(state, [codec.decode(codec.encode(seq, one)) for seq, one in enumerate(rows, 1)])
    whole = state.drills[place]
    assert (whole.state, whole.segments, whole.more) == (DrillState.DONE, named, 1)


def test_a_slice_that_does_not_follow_is_left_out() -> None:
    place = Place(file="model.safetensors")
    state = StreamState()
    apply(state, [codec.Envelope(1, DrillRow(place=place, state=DrillState.DONE, part=2))])
    assert not state.drills


def test_a_result_of_no_parts_is_none() -> None:
    state = StreamState()
    apply(state, [codec.Envelope(1, ResultPart(mode=Mode.SCAN, part=0, parts=0, text=""))])
    assert state.result is None
    assert state.skipped == 1


def test_a_line_nested_too_deep_is_a_bad_line() -> None:
    with pytest.raises(codec.BadLineError):
        codec.decode(b'{"seq":1,"message":{"type":"rank","status":' + b"[" * 5000 + b"}}")
