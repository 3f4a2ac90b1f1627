"""Meetings through a real store, each rank a thread here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.facts.status import Phase, RankStatus
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.meet import GivenUp, Meet, Meeting
from ckpt_tui.ranks.messages import Hello
from ckpt_tui.ranks.store import Store
from ckpt_tui.ranks.telemetry import Telemetry

CLOCK = SystemClock()
SCOPE = "ckpt-tui/test"


class Rank:
    """One process of a rank, as far as meeting goes."""

    def __init__(self, connections: Callable[[], Store], rank: int, *, world_size: int = 2, **changes: object) -> None:
        usual = Hello(
            protocol=1,
            layout=1,
            tool="ckpt-tui test",
            rank=rank,
            world_size=world_size,
            host="node",
            pid=os.getpid(),
            token=os.urandom(8).hex(),
        )
        self.hello = msgspec.structs.replace(usual, **changes)
        self.store = connections()
        self.notes: list[str] = []
        self.telemetry = Telemetry(connections(), self.hello, self._status, scope=SCOPE, rank_timeout=60, clock=CLOCK)
        self.telemetry.start()

    def meet(self, seconds: float = 10) -> Meeting:
        """Come and wait."""
        meet = Meet(
            store=self.store,
            telemetry=self.telemetry,
            me=self.hello,
            scope=SCOPE,
            hosts_store=False,
            clock=CLOCK,
            watch=nothing,
            note=self.notes.append,
            here=lambda _members: None,
        )
        return meet.run(time.monotonic() + seconds, seconds)

    def leave(self) -> None:
        """End as a rank does whose result is written."""
        self.telemetry.leave("has ended", 5)

    def _status(self) -> RankStatus:
        return RankStatus(rank=self.hello.rank, host="node", phase=Phase.MEETING)


def outcomes(*meetings: Callable[[], Meeting]) -> list[Meeting | BaseException]:
    """What each meeting that runs at the same time comes to."""
    with ThreadPoolExecutor(len(meetings)) as pool:
        futures = [pool.submit(meeting) for meeting in meetings]
        return [future.exception(30) or future.result() for future in futures]


def test_all_come_and_share_a_nonce(connections: Callable[[], Store]) -> None:
    first, second = outcomes(Rank(connections, 0).meet, Rank(connections, 1).meet)
    assert isinstance(first, Meeting)
    assert first == second
    assert sorted(first.members) == [0, 1]
    assert first.absent == {}


def test_the_second_call_on_a_store_that_lives_on_is_a_session_of_its_own(connections: Callable[[], Store]) -> None:
    ranks = [Rank(connections, 0), Rank(connections, 1)]
    first = outcomes(*(rank.meet for rank in ranks))[0]
    for rank in ranks:
        rank.leave()
    second = outcomes(Rank(connections, 0).meet, Rank(connections, 1).meet)[0]
    assert isinstance(first, Meeting)
    assert isinstance(second, Meeting)
    assert first.nonce != second.nonce
    assert {hello.token for hello in first.members.values()}.isdisjoint(
        hello.token for hello in second.members.values()
    )


def test_who_comes_after_the_others_gave_up_is_told_so_and_joins_their_next_call(
    connections: Callable[[], Store],
) -> None:
    first = Rank(connections, 0)
    met = first.meet(0.5)
    assert list(met.absent) == [1]
    first.leave()
    late = Rank(connections, 1)
    with pytest.raises(GivenUp, match="no longer wait for rank 1"):
        late.meet()
    late.leave()
    again = outcomes(Rank(connections, 0).meet, Rank(connections, 1).meet)
    assert all(isinstance(outcome, Meeting) and not outcome.absent for outcome in again)


def test_a_second_process_of_a_rank_does_not_disturb_a_session_that_runs(connections: Callable[[], Store]) -> None:
    ranks = [Rank(connections, 0), Rank(connections, 1)]
    outcomes(*(rank.meet for rank in ranks))
    with pytest.raises(UsageError, match="two processes say rank 1"):
        Rank(connections, 1).meet()
    assert not ranks[0].telemetry.gone
    for rank in ranks:
        rank.leave()
    # It was no call of rank 1's: the next ones still meet.
    again = outcomes(Rank(connections, 0).meet, Rank(connections, 1).meet)
    assert all(isinstance(outcome, Meeting) for outcome in again)


def test_a_rank_that_leaves_while_others_wait_ends_their_waiting(connections: Callable[[], Store]) -> None:
    leaver = Rank(connections, 1, world_size=3)
    with ThreadPoolExecutor(2) as pool:
        leaving = pool.submit(leaver.meet)
        waiting = pool.submit(Rank(connections, 0, world_size=3).meet, 30)
        leaver.telemetry.leave("interrupted", 5)
        met = waiting.result(20)
        assert list(met.absent) == [1, 2] or list(met.absent) == [2, 1]
        assert "interrupted" in met.absent[1]
        assert met.absent[2] == "had not come"
        assert isinstance(leaving.exception(20), GivenUp)


def test_those_who_wait_say_for_whom(connections: Callable[[], Store]) -> None:
    rank = Rank(connections, 0)
    rank.meet(1.5)
    assert rank.notes[0].startswith("waiting for rank 1; 1 of 2 are here: [0] node")
