"""Recordings made up for tests: messages with the second at which each came."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ckpt_tui.stream.codec import encode
from ckpt_tui.stream.messages import Beat, Bye, Message, RankRow, Row, Snapshot
from ckpt_tui.stream.recording import Recorder
from tests.support.clocks import StillClock
from tests.tui import streams

if TYPE_CHECKING:
    from collections.abc import Iterable


def record(path: Path, messages: Iterable[tuple[float, Message]]) -> Path:
    """A recording of these messages, at these seconds."""
    clock = StillClock()
    start = clock.mono
    recorder = Recorder(str(path), clock)
    for seq, (at, message) in enumerate(messages, 1):
        clock.forward(start + at - clock.mono)
        assert recorder.take(encode(seq, message)) is None
    recorder.close()
    return path


def progress(second: int) -> Row:
    """Rank 0 after so many seconds."""
    return RankRow(status=streams.status(0, bytes_done=second), heard=streams.NOW + second)


def minute(*, bye: bool = True) -> list[tuple[float, Message]]:
    """A scan of a minute: progress every second, a snapshot every 20 seconds, and the end."""
    messages: list[tuple[float, Message]] = [(0.0, streams.hello()), (0.0, Snapshot(part=0, parts=1, rows=()))]
    messages.append((0.0, streams.survey()))
    for second in range(1, 61):
        if second % 20 == 0:
            rows = (streams.survey(), progress(second))
            messages.append((float(second), Snapshot(part=0, parts=1, rows=rows)))
        else:
            messages.append((float(second), progress(second)))
        messages.append((float(second), Beat(at=streams.NOW + second)))
    return [*messages, (60.0, Bye(code=0))] if bye else messages
