"""The reducer: however a stream is cut, conflated or interrupted, the state is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.facts.status import Cell
from ckpt_tui.stream.codec import slices
from ckpt_tui.stream.messages import Bye, Envelope, FileRow, Level, LogLine, Message, RankRow, Row, Snapshot, Watching
from ckpt_tui.stream.outbox import key_of
from ckpt_tui.stream.state import Ended, StreamState, apply
from tests.tui import streams

rows = st.one_of(
    st.builds(
        streams.shard,
        st.integers(1, 6),
        st.sampled_from([Cell.WAITING, Cell.READING, Cell.READ, Cell.CACHED]),
        done=st.sampled_from([0.0, 0.25, 0.5]),
    ),
    st.builds(
        lambda rank, done: RankRow(status=streams.status(rank, bytes_done=done), heard=0.0),
        st.integers(0, 3),
        st.integers(0, 5),
    ),
    st.builds(lambda number: LogLine(number=number, at=0.0, level=Level.INFO, text=str(number)), st.integers(1, 5)),
)


def numbered(messages: list[Message], first: int = 1) -> list[Envelope]:
    return [Envelope(seq, message) for seq, message in enumerate(messages, first)]


def known(state: StreamState) -> object:
    return (state.survey, state.ranks, state.files, state.logs, state.verdict, state.result)


def final(history: list[Row]) -> StreamState:
    state = StreamState()
    apply(state, numbered(history))
    return state


@given(history=st.lists(rows, max_size=40), data=st.data())
def test_snapshot_and_conflated_rows_give_the_final_state_however_they_are_batched(
    history: list[Row], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(history)))
    snapshot = {key_of(row): row for row in history[:cut]}
    rest = {key_of(row): row for row in history[cut:]}  # the newest of each key
    tail = data.draw(st.permutations(list(rest.values())))
    messages = numbered([streams.hello(), *slices(snapshot.values()), *tail])
    state = StreamState()
    while messages:
        size = data.draw(st.integers(1, len(messages)))
        assert not apply(state, messages[:size]).resync
        messages = messages[size:]
    assert known(state) == known(final(history))


@given(history=st.lists(rows, min_size=1, max_size=20), data=st.data())
def test_a_lost_message_asks_for_a_snapshot_which_mends_it(history: list[Row], data: st.DataObject) -> None:
    lost = data.draw(st.integers(0, len(history) - 1))
    messages = numbered(history)
    after = [message for message in messages if message.seq != lost + 1]
    state = StreamState()
    asked = apply(state, [*after, Envelope(len(history) + 1, Bye(code=0))]).resync
    assert asked
    everything = {key_of(row): row for row in history}
    apply(state, numbered(list(slices(everything.values())), first=len(history) + 2))
    assert known(state) == known(final(history))


def test_a_snapshot_takes_effect_with_its_last_slice() -> None:
    one, two = streams.shard(1, Cell.READ), streams.shard(2, Cell.READ)
    state = StreamState()
    apply(state, numbered([Snapshot(part=0, parts=1, rows=(one,))]))
    apply(state, numbered([Snapshot(part=0, parts=2, rows=(two,))], first=2))
    assert list(state.files[0]) == [1]
    apply(state, numbered([Snapshot(part=1, parts=2, rows=())], first=3))
    assert list(state.files[0]) == [2]


def test_a_slice_out_of_its_turn_asks_again() -> None:
    state = StreamState()
    assert apply(state, numbered([Snapshot(part=1, parts=2, rows=())])).resync


def test_watching_another_rank_forgets_the_others_files() -> None:
    state = StreamState()
    other = streams.shard(1, Cell.READ, rank=2)
    apply(state, numbered([streams.shard(1, Cell.READ), other, Watching(rank=2)]))
    assert state.watched == 2
    assert list(state.files) == [2]


def test_what_is_not_known_is_counted_and_passes() -> None:
    state = StreamState()
    changes = apply(state, [Envelope(1, None), *numbered([streams.hello()], first=2), None])
    assert state.skipped == 2
    assert state.hello is not None
    assert changes.resync  # an unreadable line may have been a row


def test_the_end_without_a_bye_is_kept_apart_from_a_bye() -> None:
    crashed, left = StreamState(), StreamState()
    apply(crashed, [Ended(-9)])
    apply(left, numbered([Bye(code=1)]))
    assert (crashed.ended, crashed.bye) == (Ended(-9), None)
    assert left.bye == Bye(code=1)
    assert crashed.over
    assert left.over


def test_a_result_arrives_whole() -> None:
    state = StreamState()
    apply(state, numbered(streams.session(decided=True)))
    assert state.result == streams.agreement()
    assert isinstance(next(iter(state.files[0].values())), FileRow)
