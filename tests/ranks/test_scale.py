"""More ranks than two or three, both ways to exchange, what is sent, and what ranks of one host read."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from ckpt_tui.facts.agreement import Agreement
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.exchange import Exchange
from ckpt_tui.ranks.gather import Gather, StoreGather
from ckpt_tui.ranks.gloo import GlooGather
from ckpt_tui.ranks.messages import PROTOCOL, Hello
from ckpt_tui.ranks.store import Store
from ckpt_tui.ranks.witness import Witness
from tests.ranks.test_exchange import compare, witness
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ranks, session


def flipped(folder: Path, odd: int = 2) -> Path:
    """The checkpoint with one bit flipped in each of its first `odd` shards."""
    for path in sorted(folder.glob("*.safetensors"))[:odd]:
        flip_bit(path, payload_offset(path))
    return folder


@pytest.mark.parametrize("odd", [(), (4,)], ids=["equal", "one-odd"])
def test_six_processes_come_to_one_verdict(tmp_path: Path, odd: tuple[int, ...]) -> None:
    good, bad = write_checkpoint(tmp_path / "good"), flipped(write_checkpoint(tmp_path / "bad"), 1)
    ended = session([bad if rank in odd else good for rank in range(6)], seconds=120)
    assert {one.code for one in ended} == {1 if odd else 0}
    assert len({one.out for one in ended}) == 1
    agreement = ended[0].agreement
    sent = {rank["rank"]: rank["bytes_sent"] for rank in agreement["ranks"]}
    speaking = {0, *odd} if odd else set()
    assert all(0 < sent[rank] < 1024 for rank in sent.keys() - speaking)
    assert {group["copies"] for group in agreement["groups"]} == {1}  # one folder, however many ranks


def test_what_is_sent_grows_with_the_difference_and_not_with_the_checkpoint(tmp_path: Path) -> None:
    def sent(name: str, odd: int, shards: int = 4) -> int:
        good, bad = (
            write_checkpoint(tmp_path / f"{name} {side}", shards=shards, tensors=20) for side in ("good", "bad")
        )
        flipped(bad, odd)
        agreement, _ = compare([witness(good, 0), witness(bad, 1)])
        assert len(agreement.differences) == odd
        return agreement.ranks[1].bytes_sent

    small, large = sent("small", 1), sent("large", 1, shards=40)
    # A row in the file table is all that another file costs, tensors of files that are equal nothing.
    assert large - small < 36 * 400
    assert small < sent("more", 4) < 5 * small


class FixedClock(SystemClock):
    """A clock whose date stands still, so that two sessions can be equal to the byte."""

    def time(self) -> float:
        """One moment."""
        return 1.0


def over(way: str, torch: ModuleType, stores: list[Store], witnesses: list[Witness]) -> list[Agreement]:
    """Every rank's agreement of one session over a gather."""
    size, nonce = len(witnesses), secrets.token_hex(16)

    def gather(rank: int) -> Gather:
        if way == "store":
            return StoreGather(
                stores[rank],
                base=nonce,
                rank=rank,
                ranks=range(size),
                seconds=20,
                clock=SystemClock(),
                watch=nothing,
                gone=dict,
            )
        return GlooGather.form(
            torch,
            stores[rank],
            address="127.0.0.1",
            interfaces=(),
            rank=rank,
            size=size,
            nonce=nonce,
            seconds=20,
            forming=nothing,
            watch=nothing,
        )

    members = {
        one.rank: Hello(
            protocol=PROTOCOL,
            layout=1,
            tool=one.tool,
            rank=one.rank,
            world_size=size,
            host=one.host,
            pid=1,
            token="x",
        )
        for one in witnesses
    }

    def work(one: Witness) -> Agreement:
        exchange = Exchange(gather(one.rank), members=members, world_size=size, absent={}, clock=FixedClock())
        exchange.same_identity(one)
        return exchange.content(one)

    with ThreadPoolExecutor(size) as pool:
        return [future.result(60) for future in [pool.submit(work, one) for one in witnesses]]


def test_both_ways_to_exchange_come_to_the_same_agreement(
    tmp_path: Path, torch: ModuleType, connections: Callable[[], Store]
) -> None:
    good, bad = write_checkpoint(tmp_path / "good"), flipped(write_checkpoint(tmp_path / "bad"))
    other = write_checkpoint(tmp_path / "other", prefix="other.layers")
    cut = write_checkpoint(tmp_path / "cut")
    (cut / "model-00002-of-00002.safetensors").unlink()
    stores = [connections() for _ in range(4)]
    for folders in ([good] * 4, [good, bad, good, good], [good, bad, other, cut], [cut] * 4, [good, cut]):
        witnesses = [witness(folder, rank) for rank, folder in enumerate(folders)]
        told = {
            msgspec.json.encode(agreement)
            for way in ("store", "gloo")
            for agreement in over(way, torch, stores, witnesses)
        }
        assert len(told) == 1


def test_ranks_of_one_host_read_each_byte_once(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=6, shape=(256, 512))
    with Ranks(3) as ranks:
        for rank in range(3):
            ranks.launch(
                str(rank),
                [
                    *(sys.executable, "-m", "ckpt_tui", "ranks", str(folder), "--json", "--max-rate", "4M"),
                    *("--cache-dir", str(tmp_path / "cache"), "--master", f"127.0.0.1:{ranks.port}"),
                    *("--world-size", "3", "--rank", str(rank)),
                ],
            )
        ended = ranks.end(seconds=90)
    assert [one.code for one in ended] == [0, 0, 0]
    told = ended[0].agreement["ranks"]
    assert [rank["files"] for rank in told] == [6, 6, 6]
    assert sum(rank["files"] - rank["files_cached"] for rank in told) == 6
