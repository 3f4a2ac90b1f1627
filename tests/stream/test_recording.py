"""Recordings: written as the stream comes, read whatever befell them, played at their pace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from ckpt_tui.facts.outcome import CkptError, UsageError
from ckpt_tui.stream.codec import encode, split_result
from ckpt_tui.stream.messages import Bye, Holding, Level, LogLine, Message, Pause, ResultPart, Seek, Snapshot
from ckpt_tui.stream.playback import Player
from ckpt_tui.stream.recording import Recorder, Recording
from ckpt_tui.stream.state import StreamState, apply
from tests.stream.recordings import minute, record
from tests.support.clocks import StillClock
from tests.tui import streams


class Watched:
    """A recording being played, and what is known of it."""

    def __init__(self, path: Path, *, speed: float = 1.0) -> None:
        self.clock = StillClock()
        self.player = Player(Recording(str(path)), self.clock, speed=speed)
        self.state = StreamState()

    def after(self, seconds: float) -> int:
        """How far rank 0 is when so many seconds have passed; 0 before it has begun."""
        self.clock.forward(seconds)
        apply(self.state, self.player.drain())
        return self.state.ranks[0].status.bytes_done if self.state.ranks else 0


@pytest.fixture
def played(tmp_path: Path) -> Watched:
    return Watched(record(tmp_path / "a.rec", minute()))


def test_it_is_played_at_the_pace_at_which_it_came(played: Watched) -> None:
    assert [played.after(seconds) for seconds in (0, 10, 0.5, 0.5, 30, 100)] == [0, 10, 10, 11, 41, 60]
    assert played.state.bye == Bye(code=0)
    assert played.state.skipped == 0


def test_twice_as_fast_and_all_at_once(tmp_path: Path) -> None:
    path = record(tmp_path / "a.rec", minute())
    assert Watched(path, speed=2).after(10) == 20
    assert Watched(path, speed=0).after(0) == 60


def test_while_it_stands_still_nothing_comes_and_nothing_is_silent(played: Watched) -> None:
    played.after(10)
    played.player.send(Pause(on=True))
    before = played.player.monotonic()
    assert played.after(1000) == 10
    assert played.player.monotonic() == before
    played.player.send(Pause(on=False))
    assert played.after(5) == 15


def test_a_jump_lands_on_what_was_known_then(played: Watched) -> None:
    played.after(10)
    for jump, there in ((10, 20), (35, 55), (-10, 45), (-30, 15), (-100, 0), (1000, 60)):
        before = played.player.monotonic()
        played.player.send(Seek(seconds=jump))
        assert played.after(0) == there
        assert played.player.monotonic() == pytest.approx(before)
        assert played.state.hello == streams.hello()
    assert played.state.bye is not None
    played.player.send(Seek(seconds=-20))
    assert played.after(0) == 40
    assert played.state.bye is None


def test_its_clock_tells_the_time_at_which_it_was_recorded(played: Watched) -> None:
    played.after(12)
    assert played.player.time() == pytest.approx(streams.NOW + 12, abs=0.01)
    assert played.player.passed == pytest.approx((12, 60), abs=0.01)


def test_cut_at_any_byte_it_plays_to_its_end_and_says_so(tmp_path: Path) -> None:
    whole = record(tmp_path / "a.rec", minute()).read_bytes()
    first = whole.index(b"\n") + 1
    cut = tmp_path / "cut.rec"
    for at in (*range(first, first + 200), *range(first + 200, len(whole) - 1, 97)):
        cut.write_bytes(whole[:at])
        watched = Watched(cut, speed=0)
        assert 0 <= watched.after(0) <= 60
        assert watched.state.ended is not None
        assert watched.state.ended.said == "the recording ends here"
        watched.player.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"hello",
        b"\x00" * 5000,
        b"[" * 100_000,
        b'{"at":1.0,"seq":1,"message":{"type":"beat","at":1.0}}\n',
        b'{"seq":1,"message":{"type":"hello","protocol":1,"tool":"x","mode":"scan","pid":1}}\n',
        b'{"at":1.0,"seq":1,"message":{"type":"hello","protocol":1,"tool":"\\u001b[31m","mode":"scan","pid":1}}\n',
        b'{"at":1.0,"seq":1,"message":{"type":"hello","protocol":9,"tool":"x","mode":"scan","pid":1}}\n',
        b'{"at":NaN,"seq":1,"message":{"type":"hello","protocol":1,"tool":"x","mode":"scan","pid":1}}\n',
    ],
)  # fmt: skip
def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.rec").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        Recording(str(tmp_path / "a.rec"))
    assert str(refused.value).isprintable()


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing", "."):
        with pytest.raises(UsageError):
            Recording(str(tmp_path / name))


def test_hostile_lines_are_counted_and_never_shown(tmp_path: Path) -> None:
    path = record(tmp_path / "a.rec", minute(bye=False))
    rude = LogLine(number=1, at=0.0, level=Level.INFO, text="\x1b[31m\u202e")
    rude_result = msgspec.structs.replace(streams.agreement(), summary="\x1b[2J")
    lines = [
        encode(200, rude),
        *(encode(201, part) for part in split_result(rude_result)),
        b'{"seq":202,"message":{"type":"rank","status":' + b"[" * 5000 + b"}}\n",
        b'{"seq":203,"message":{"type":"novel"}}\n',
    ]
    with path.open("ab") as file:
        for line in lines:
            file.write(b'{"at":1790000061.000,' + line[1:])
        file.write(b"x" * (1 << 20) + b"\n")
    watched = Watched(path, speed=0)
    assert watched.after(0) == 60
    assert watched.state.skipped == len(lines)
    assert watched.state.logs == {}
    assert watched.state.result is None


@pytest.mark.parametrize("rude", ["\x1b[2J", "a\rb", "\u202e", "\u2028"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0, 1)])
@pytest.mark.parametrize("together", [False, True])
def test_no_result_is_taken_with_text_that_may_not_be_shown_however_it_comes(
    rude: str, order: tuple[int, ...], together: bool, tmp_path: Path
) -> None:
    for number, (summary, taken) in enumerate([(rude, False), ('says "differ" of caf\u00e9 \\\\x1b', True)]):
        (whole,) = split_result(msgspec.structs.replace(streams.agreement(), summary=summary))
        text = json.dumps(json.loads(whole.text))  # what is not ASCII is escaped once more
        half = len(text) // 2
        halves = [
            ResultPart(mode=whole.mode, part=part, parts=2, text=piece)
            for part, piece in enumerate((text[:half], text[half:]))
        ]
        rows = [halves[part] for part in order]
        messages: list[Message] = [Snapshot(part=0, parts=1, rows=tuple(rows))] if together else [*rows]
        path = record(tmp_path / f"{number}.rec", [(0.0, streams.hello()), *((1.0, message) for message in messages)])
        watched = Watched(path, speed=0)
        watched.after(1)
        assert (watched.state.result is not None) is taken


def test_nobody_is_held_ready_in_a_recording(tmp_path: Path) -> None:
    held = Holding(ready=True)
    for message in (held, Snapshot(part=0, parts=1, rows=(streams.survey(), held))):
        path = tmp_path / f"{type(message).__name__}.rec"
        watched = Watched(record(path, [*minute(), (60.0, message)]), speed=0)
        watched.after(0)
        assert watched.state.holding == Holding(ready=False, reason="this is a recording")


def test_a_whole_result_is_kept(tmp_path: Path) -> None:
    agreement = streams.agreement()
    watched = Watched(record(tmp_path / "a.rec", [*minute(), *((60.0, part) for part in split_result(agreement))]))
    watched.after(60)
    assert watched.state.result == agreement


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    path.write_bytes(b"precious")
    with pytest.raises(UsageError, match="is there already; --force replaces it"):
        Recorder(str(path), StillClock())
    assert path.read_bytes() == b"precious"
    Recorder(str(path), StillClock(), force=True).close()
    assert path.read_bytes() == b""


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CkptError, match="could not be made: ENOENT"):
        Recorder(str(tmp_path / "none" / "a.rec"), StillClock())


def test_a_full_disk_ends_the_recording_with_one_warning() -> None:
    recorder = Recorder("/dev/full", StillClock(), force=True)
    said = [recorder.take(encode(seq, streams.hello())) for seq in (1, 2, 3)]
    assert [line is not None for line in said] == [True, False, False]
    assert said[0] is not None
    assert "/dev/full: the recording ends after 0 B: ENOSPC" in said[0]
    assert not recorder.asks()


def test_a_snapshot_is_asked_for_before_30_seconds_are_over() -> None:
    clock = StillClock()
    recorder = Recorder("/dev/null", clock, force=True)
    asked = []
    for second in range(1, 121):
        clock.forward(1)
        if recorder.asks():
            asked.append(second)
    assert len(asked) >= 4
    assert max(after - before for before, after in zip([0, *asked], asked, strict=False)) < 30
