"""A stream in words: what is new, once, and a few lines at a time."""

from __future__ import annotations

import msgspec

from ckpt_tui.facts.files import State
from ckpt_tui.facts.status import Cell, Phase
from ckpt_tui.stream.messages import Beat, Envelope, Level, LogLine, Message, Mode, RankRow, VerdictRow, Watching, Word
from ckpt_tui.stream.narrator import Narrator
from ckpt_tui.stream.state import StreamState, apply
from tests.tui import streams


class Listener:
    """A narrator and the state that it tells of."""

    def __init__(self, *messages: Message) -> None:
        self.state, self.narrator, self.now = StreamState(), Narrator(), 0.0
        self.first = self.hears(*messages)

    def hears(self, *messages: Message, seconds: float = 1.0) -> list[str]:
        apply(self.state, [Envelope(self.state.seq + 1 + number, one) for number, one in enumerate(messages)])
        self.now += seconds
        return self.narrator.tell(self.state, self.now)


def rank(number: int, phase: Phase, **more: object) -> RankRow:
    return RankRow(status=streams.status(number, phase=phase, **more), heard=streams.NOW)


def test_what_is_read_is_told_once() -> None:
    listener = Listener(streams.hello(), streams.survey())
    assert listener.first == ["zai-org/GLM-5.3-Flash-EXL3: 33 shards, 190.4 GiB, on node-a"]
    assert listener.hears(streams.survey(), Beat(at=0.0)) == []


def test_files_are_told_one_by_one_as_long_as_they_are_few() -> None:
    listener = Listener(streams.survey())
    assert listener.hears(*(streams.shard(number, Cell.READING) for number in range(1, 9))) == []
    assert listener.hears(streams.shard(1, Cell.READ), streams.shard(2, Cell.CACHED)) == [
        "model-00001-of-00033.safetensors: read, 5.8 GiB",
        "model-00002-of-00033.safetensors: cached, 5.8 GiB",
    ]
    assert listener.hears(*(streams.shard(number, Cell.READ) for number in range(1, 20))) == ["18 files read"]
    many = [*(streams.shard(number, Cell.READ) for number in (20, 21)),
            *(streams.shard(number, Cell.CACHED) for number in (22, 23))]  # fmt: skip
    assert listener.hears(*many) == ["4 files: 2 read, 2 cached"]


def test_bad_files_are_always_named_a_handful_at_a_time() -> None:
    listener = Listener(streams.survey())
    bad = [
        streams.shard(number, Cell.BAD, state=State.TRUNCATED, note="12 bytes short") for number in range(1, 10)
    ]  # fmt: skip
    told = listener.hears(*bad)
    assert told[0] == "model-00001-of-00033.safetensors: truncated: 12 bytes short"
    assert len(told) == 7
    assert told[-1] == "and 3 more bad files"


def test_ranks_that_go_on_together_are_one_line_and_a_lost_one_is_named() -> None:
    listener = Listener(streams.hello(Mode.RANKS), *(rank(number, Phase.MEETING) for number in range(4)))
    assert listener.first == ["ranks [0-3]: here"]
    lost = rank(3, Phase.LOST, error="silent for 61 s")
    assert listener.hears(*(rank(number, Phase.CONTENT) for number in (0, 1, 2)), lost) == [
        "ranks [0-2]: reading",
        "rank 3: lost: silent for 61 s",
    ]
    assert listener.hears(rank(0, Phase.CONTENT, bytes_done=5)) == []


def test_another_rank_that_is_watched_has_files_of_its_own() -> None:
    listener = Listener(rank(0, Phase.DONE), rank(1, Phase.DONE), streams.shard(1, Cell.READ))
    assert listener.hears(Watching(rank=1), streams.shard(1, Cell.READ, rank=1)) == [
        "model-00001-of-00033.safetensors of rank 1: read, 5.8 GiB"
    ]


def test_progress_is_told_every_ten_seconds() -> None:
    listener = Listener(rank(0, Phase.CONTENT, bytes_done=1, bytes_total=4, rate=1.0))
    told = [line for _ in range(25) for line in listener.hears()]
    assert told == ["25 % of 4 B, 0.0 MiB/s, 3.0 s left"] * 2


def test_trouble_and_the_workers_own_words_are_told() -> None:
    listener = Listener(VerdictRow(word=Word.DAMAGED, text="1 shard truncated"))
    assert listener.first == ["so far DAMAGED: 1 shard truncated"]
    native = LogLine(number=-1, at=0.0, level=Level.NATIVE, text="[W socket.cpp]")
    warning = LogLine(number=1, at=0.0, level=Level.WARNING, text="the cache is full")
    apply(listener.state, [native])
    assert listener.hears(warning) == ["warning: the cache is full"]
    assert listener.hears(*(msgspec.structs.replace(warning, number=number) for number in range(2, 40)))[-1] == (
        "and 32 more lines"
    )


def test_silence_is_told_once_and_again_after_a_word() -> None:
    narrator, state = Narrator(), StreamState()
    told = [narrator.tell(state, 0.0, silent) for silent in (3, 12, 13, 0, 11)]
    assert [len(lines) for lines in told] == [0, 1, 0, 0, 1]
    assert told[1] == ["no word from the worker for 12 s; it may be busy or stopped"]
