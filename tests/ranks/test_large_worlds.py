"""More ranks than this machine could run as processes: hundreds of members over a handful of connections."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.ranks import gather as gather_
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.gather import StoreGather
from ckpt_tui.ranks.messages import MAX_BYTES, BadMessage, Step, pack, unpack
from ckpt_tui.ranks.pause import Pause
from ckpt_tui.ranks.store import Store
from ckpt_tui.ranks.telemetry import EVERYBODY, interval, listened_to

RANKS = 240
GONE = {7: "on node-7, silent for 61 s", 239: "on node-239, its process has ended"}


class Counted:
    """A store whose calls are counted; a connection of it may be shared by threads."""

    def __init__(self, store: Store) -> None:
        self.calls = 0
        self.values = 0
        self._store = store

    def __getattr__(self, name: str) -> object:
        self.calls += 1
        return getattr(self._store, name)

    def fetch(self, keys: list[str]) -> list[bytes]:
        """Values asked for are counted too."""
        self.calls += 1
        self.values += len(keys)
        return self._store.fetch(keys)


def gathered(
    connections: Callable[[], Store], ranks: int, *, gone: dict[int, str], seconds: float = 60
) -> tuple[list[tuple[dict[int, bytes], dict[int, str]]], list[Counted]]:
    """Two steps of an exchange among all ranks but those that are gone, and what was asked of the store for it."""
    stores = [Counted(connections()) for _ in range(8)]

    def member(rank: int) -> tuple[dict[int, bytes], dict[int, str]]:
        one = StoreGather(
            stores[rank % len(stores)],  # type: ignore[arg-type]
            base="large",
            rank=rank,
            ranks=range(ranks),
            seconds=seconds,
            clock=SystemClock(),
            watch=nothing,
            gone=lambda: gone,
        )
        one.gather(Step.VOTE, b"vote")
        return one.gather(Step.CONTENT, b"%d" % rank * 100), dict(one.absent)

    there = [rank for rank in range(ranks) if rank not in gone]
    with ThreadPoolExecutor(len(there)) as pool:
        return [future.result(90) for future in [pool.submit(member, rank) for rank in there]], stores


@pytest.mark.parametrize("gone", [{}, GONE], ids=["all", "without-two"])
def test_hundreds_of_ranks_exchange_through_one_store_and_see_the_same(
    connections: Callable[[], Store], gone: dict[int, str]
) -> None:
    told, stores = gathered(connections, RANKS, gone=gone)
    expected = {rank: b"%d" % rank * 100 for rank in range(RANKS) if rank not in gone}
    assert told == [(expected, gone)] * len(expected)
    # One rank reads what all have said; the others read that of it, in one value.
    assert sum(store.values for store in stores) < 2 * 3 * RANKS
    assert sum(store.calls for store in stores) < 100 * RANKS


def test_where_nobody_puts_the_answers_together_each_reads_them(
    connections: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather_, "pack", lambda _values: b"\x00 nothing that can be read")
    told, _ = gathered(connections, 70, gone={})
    assert all(values == {rank: b"%d" % rank * 100 for rank in range(70)} for values, _ in told)


def test_many_messages_travel_as_one_and_nothing_else_is_taken_for_them() -> None:
    messages = [b"", b"same" * 100, os.urandom(50)]
    assert unpack(pack(messages)) == tuple(messages)
    for raw in (b"", b"noise", pack(messages)[:-1], pack([bytes(MAX_BYTES)]), msgspec.msgpack.encode(messages)):
        with pytest.raises(BadMessage):
            unpack(raw)


def test_every_rank_is_heard_by_many_and_the_more_there_are_the_less_the_store_is_asked() -> None:
    assert listened_to(3, 5, range(5)) == {0, 1, 2, 4}
    world = 1000
    heard_by = dict.fromkeys(range(world), 0)
    for me in range(world):
        for rank in listened_to(me, world, range(world)):
            heard_by[rank] += 1
    assert min(heard_by.values()) == 64
    assert len(listened_to(0, world, range(world))) == world - 1
    # Those who are not here are passed over.
    assert listened_to(998, world, [0, 1, 998, 999]) == {0, 1, 999}
    assert all(interval(world) < 4 for world in (2, EVERYBODY, EVERYBODY + 1, 1000, 10_000))


def test_pauses_grow_with_the_wait_and_with_the_world() -> None:
    class Slept(SystemClock):
        def __init__(self) -> None:
            self.pauses: list[float] = []

        def sleep(self, seconds: float) -> None:
            self.pauses.append(seconds)

    def pauses(world: int) -> list[float]:
        clock = Slept()
        pause = Pause(clock, world)
        for _ in range(40):
            pause.sleep()
        return clock.pauses

    assert pauses(2)[:2] == [0.005, 0.0075]
    assert max(pauses(2)) < 0.2
    assert max(pauses(10_000)) == pytest.approx(5.1)
