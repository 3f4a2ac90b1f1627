"""The writer thread: the newest row of a key, numbered without a gap, and never a wait for the reader."""

from __future__ import annotations

import threading

from ckpt_tui.facts.status import Cell
from ckpt_tui.stream.codec import decode
from ckpt_tui.stream.messages import Beat, Bye, FileRow, Level, LogLine, RankRow, Snapshot
from ckpt_tui.stream.outbox import LOG_LINES, Outbox
from ckpt_tui.stream.state import StreamState, apply
from tests.tui import streams


class Pipe:
    """Collects what is written; `gate` holds the writer back, as a reader does that has stopped."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()

    def write(self, data: bytes) -> None:
        self.waiting.set()
        self.gate.wait(10)
        self.data += data

    def envelopes(self) -> list:
        return [decode(line) for line in bytes(self.data).splitlines()]


def opened(pipe: Pipe) -> Outbox:
    return Outbox(pipe.write, streams.hello(), interval=0.01)


def test_a_stream_is_hello_snapshot_rows_and_bye_numbered_without_a_gap() -> None:
    pipe = Pipe()
    outbox = opened(pipe)
    outbox.start()
    outbox.put(streams.shard(1, Cell.READ))
    outbox.beat(5.0)
    outbox.close(Bye(code=0))
    got = pipe.envelopes()
    assert [envelope.seq for envelope in got] == list(range(1, len(got) + 1))
    kinds = [type(envelope.message).__name__ for envelope in got]
    assert kinds[0] == "Hello"
    assert kinds[1] == "Snapshot"
    assert kinds[-1] == "Bye"
    assert Beat(at=5.0) in [envelope.message for envelope in got]


def test_a_reader_that_stopped_costs_older_values_and_never_the_writer() -> None:
    pipe = Pipe()
    outbox = opened(pipe)
    outbox.start()
    assert pipe.waiting.wait(5)
    pipe.gate.clear()
    for done in range(2000):
        outbox.put(streams.shard(1, Cell.READING, done=done / 2000))
    outbox.put(streams.shard(1, Cell.READ))
    pipe.gate.set()
    outbox.close(Bye(code=0))
    rows = [envelope.message for envelope in pipe.envelopes() if isinstance(envelope.message, FileRow)]
    assert rows[-1] == streams.shard(1, Cell.READ)
    assert len(rows) <= 3


def test_a_row_that_says_nothing_new_is_not_sent() -> None:
    pipe = Pipe()
    outbox = opened(pipe)
    row = RankRow(status=streams.status(), heard=1.0)
    outbox.put(row)
    outbox.start()
    outbox.put(row)
    outbox.close(Bye(code=0))
    state = StreamState()
    apply(state, pipe.envelopes())
    assert state.ranks == {0: row}
    assert sum(isinstance(envelope.message, RankRow) for envelope in pipe.envelopes()) == 0  # it was in the snapshot


def test_a_row_that_cannot_be_sent_leaves_no_gap() -> None:
    pipe = Pipe()
    outbox = opened(pipe)
    outbox.start()
    outbox.put(RankRow(status=streams.status(rate=float("nan")), heard=1.0))
    outbox.put(streams.shard(1, Cell.READ))
    outbox.close(Bye(code=0))
    state = StreamState()
    assert not apply(state, pipe.envelopes()).resync
    assert list(state.files[0]) == [1]


def test_a_snapshot_holds_all_but_what_was_forgotten() -> None:
    pipe = Pipe()
    outbox = opened(pipe)
    outbox.put(streams.shard(1, Cell.READ))
    outbox.put(RankRow(status=streams.status(), heard=1.0))
    outbox.forget("file")
    outbox.start()
    outbox.close(Bye(code=0))
    snapshot = pipe.envelopes()[1].message
    assert isinstance(snapshot, Snapshot)
    assert [type(row).__name__ for row in snapshot.rows] == ["RankRow"]


def test_the_log_is_bounded() -> None:
    pipe = Pipe()
    outbox = opened(pipe)
    for number in range(LOG_LINES + 50):
        outbox.put(LogLine(number=number, at=0.0, level=Level.INFO, text="x"))
    outbox.start()
    outbox.close(Bye(code=0))
    state = StreamState()
    apply(state, pipe.envelopes())
    assert sorted(state.logs) == list(range(50, LOG_LINES + 50))


def test_a_pipe_that_nobody_reads_any_more_ends_the_writer() -> None:
    def broken(_data: bytes) -> None:
        raise BrokenPipeError

    outbox = Outbox(broken, streams.hello())
    outbox.start()
    outbox.close(Bye(code=0), timeout=5)
    assert not outbox._thread.is_alive()
