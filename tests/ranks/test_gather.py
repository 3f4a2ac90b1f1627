"""Exchanges among ranks, each a thread here: through the store and through Gloo, with the same outcome."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.gather import Gather, GatherBroken, StoreGather
from ckpt_tui.ranks.gloo import GlooGather
from ckpt_tui.ranks.messages import Step
from ckpt_tui.ranks.store import Store

RANKS = 3


def through_store(
    store: Store, rank: int, *, seconds: float = 10, gone: dict[int, str] | None = None, base: str = "test"
) -> StoreGather:
    """One rank's exchange through the store."""
    return StoreGather(
        store,
        base=base,
        rank=rank,
        ranks=range(RANKS),
        seconds=seconds,
        clock=SystemClock(),
        watch=nothing,
        gone=lambda: gone or {},
    )


def through_gloo(torch: ModuleType, store: Store, rank: int, nonce: str) -> GlooGather:
    """One rank's exchange through Gloo."""
    return GlooGather.form(
        torch,
        store,
        address="127.0.0.1",
        interfaces=(),
        rank=rank,
        size=RANKS,
        nonce=nonce,
        seconds=20,
        forming=nothing,
        watch=nothing,
    )


def everywhere(work: Callable[[int], object], ranks: int = RANKS) -> list[object]:
    """What `work(rank)` gives on every rank, all at the same time."""
    with ThreadPoolExecutor(ranks) as pool:
        return [future.result(30) for future in [pool.submit(work, rank) for rank in range(ranks)]]


PAYLOADS = [
    [b"short", b"", b"other"],
    [b"", b"", b""],
    [b"x" * 100_000, b"", b"y" * 3],
    [b"x" * 1000, b"y" * 50_000, b"z" * 41],
    [bytes(range(256)) * 5000] * RANKS,
]


@pytest.mark.parametrize("way", ["store", "gloo"])
def test_every_rank_gets_what_every_rank_gave(way: str, torch: ModuleType, connections: Callable[[], Store]) -> None:
    stores = [connections() for _ in range(RANKS)]
    nonce = secrets.token_hex(16)

    def work(rank: int) -> list[dict[int, bytes]]:
        gather: Gather = (
            through_store(stores[rank], rank) if way == "store" else through_gloo(torch, stores[rank], rank, nonce)
        )
        steps = zip(Step, PAYLOADS, strict=False)
        return [gather.gather(step, payloads[rank]) for step, payloads in steps]

    expected = [dict(enumerate(payloads)) for payloads in PAYLOADS]
    assert everywhere(work) == [expected] * RANKS


def test_what_was_given_can_be_taken_out_of_the_store_again(connections: Callable[[], Store]) -> None:
    stores = [connections() for _ in range(RANKS)]
    gathers = [through_store(stores[rank], rank) for rank in range(RANKS)]
    everywhere(lambda rank: gathers[rank].gather(Step.BYTES, b"x" * 1000))
    assert all(gather.used for gather in gathers)
    gathers[1].clear()
    assert stores[1].fetch([f"test/bytes/{rank}" for rank in range(RANKS)]) == [b"x" * 1000, b"", b"x" * 1000]


def test_ranks_at_other_steps_are_not_taken_for_answers(torch: ModuleType, connections: Callable[[], Store]) -> None:
    stores = [connections() for _ in range(RANKS)]
    nonce = secrets.token_hex(16)

    def work(rank: int) -> str:
        gather = through_gloo(torch, stores[rank], rank, nonce)
        try:
            gather.gather(Step.CONTENT if rank == 2 else Step.FILES, b"answer")
        except GatherBroken as error:
            return str(error)
        return "taken"

    assert all("not at the same step" in str(said) for said in everywhere(work))


def test_a_rank_that_does_not_answer_is_left_out_by_all_alike(connections: Callable[[], Store]) -> None:
    stores = [connections() for _ in range(RANKS)]

    def work(rank: int) -> tuple[dict[int, bytes], dict[int, str]]:
        gather = through_store(stores[rank], rank, seconds=0.5)
        gathered = gather.gather(Step.CONTENT, b"%d" % rank)
        assert gather.gather(Step.FILES, b"more") == dict.fromkeys(gathered, b"more")  # and nobody waits for it again
        return gathered, dict(gather.absent)

    assert everywhere(work, 2) == [({0: b"0", 1: b"1"}, {2: "did not answer in time"})] * 2


def test_nobody_waits_for_a_rank_that_is_gone(connections: Callable[[], Store]) -> None:
    stores = [connections() for _ in range(RANKS)]
    gone = {2: "on node-c, its process has ended"}

    def work(rank: int) -> dict[int, str]:
        gather = through_store(stores[rank], rank, seconds=60, gone=gone)
        gather.gather(Step.CONTENT, b"answer")
        return dict(gather.absent)

    assert everywhere(work, 2) == [gone] * 2


def test_who_comes_after_the_decision_learns_that_it_is_out(connections: Callable[[], Store]) -> None:
    stores = [connections() for _ in range(RANKS)]
    everywhere(lambda rank: through_store(stores[rank], rank, seconds=0.2).gather(Step.CONTENT, b"early"), 2)
    late = through_store(stores[2], 2)
    assert late.gather(Step.CONTENT, b"late") == {0: b"early", 1: b"early"}
    assert list(late.absent) == [2]
