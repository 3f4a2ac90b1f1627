"""What a session of thousands of ranks asks of its store: `python -m benchmarks.store 1000 10000`.

A real store in a process of its own; this one acts for all ranks, some of them standing for the rest. Told are the
store's CPU seconds and the bytes that leave it, for all ranks together.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ckpt_tui.facts.agreement import Fingerprint
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.status import Phase, RankStatus
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.gather import StoreGather
from ckpt_tui.ranks.messages import PROTOCOL, Answer, Hello, Opening, Pulse, Step, encode, encode_line, pack
from ckpt_tui.ranks.native import load_torch
from ckpt_tui.ranks.store import Store, connect
from ckpt_tui.ranks.telemetry import interval, listened_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: So many connections, each with a thread; and so many ranks of a world stand for all.
CONNECTIONS, SAMPLE = 8, 400
FILES = 200
SERVER = """
import sys
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.native import load_torch
from ckpt_tui.ranks.store import connect, listen
listening = listen(Address("127.0.0.1", 0))
port = listening.getsockname()[1]
store = connect(load_torch(), Address("127.0.0.1", port), seconds=30, patience=30, listening=listening)
print(port, flush=True)
sys.stdin.read()
"""


class Cost(NamedTuple):
    """What something costs the store, for all ranks together."""

    cpu: float
    sent: float


class Bench:
    """A store, connections to it, and a world of ranks."""

    def __init__(self, server: subprocess.Popen[bytes], stores: list[Store], ranks: int) -> None:
        self._server, self._stores, self.ranks = server, stores, ranks
        self.hellos = [hello(rank, ranks) for rank in range(ranks)]

    def all(self, work: Callable[[Store, int], int], sample: int | None = None) -> Cost:
        """Every rank's work (or that of some, times as many as they stand for): it tells how many bytes it got."""
        chosen = range(0, self.ranks, max(self.ranks // sample, 1)) if sample else range(self.ranks)
        before = self._cpu()
        with ThreadPoolExecutor(len(self._stores)) as pool:
            parts = [
                pool.submit(lambda store=store, at=at: [work(store, rank) for rank in chosen[at :: len(self._stores)]])
                for at, store in enumerate(self._stores)
            ]
            got = sum(sum(part.result()) for part in parts)
        share = self.ranks / len(chosen)
        return Cost((self._cpu() - before) * share, got * share)

    def one(self, work: Callable[[Store], int]) -> int:
        """What one rank does for all."""
        return work(self._stores[0])

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._server.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def bench(ranks: int) -> Iterator[Bench]:
    """A fresh store for a world."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        address = Address("127.0.0.1", int(server.stdout.readline()))
        stores = [connect(load_torch(), address, seconds=30, patience=600) for _ in range(CONNECTIONS)]
        try:
            yield Bench(server, stores, ranks)
        finally:
            for store in stores:
                store.close()
            server.kill()


def hello(rank: int, ranks: int) -> Hello:
    """What a rank says when it comes."""
    return Hello(
        protocol=PROTOCOL,
        layout=1,
        tool="ckpt-tui 0.1.0",
        rank=rank,
        world_size=ranks,
        host=f"node-{rank // 8:04}.cluster.example",
        pid=20_000 + rank,
        token=secrets.token_hex(16),
        space=f"{secrets.token_hex(16)}:4026531836",
        started=123_456_789 + rank,
        address=f"10.1.{rank // 2048}.{rank // 8 % 256}",
        room=1000,
    )


def answer(rank: int) -> bytes:
    """A rank's fingerprint, as in a session of equal copies."""
    told = Fingerprint(
        rank=rank,
        host=f"node-{rank // 8:04}.cluster.example",
        path="/models/llama-405b",
        file_system="ext4 /dev/nvme0n1",
        layout=1,
        tool="ckpt-tui 0.1.0",
        content_sha256="cd" * 32,
        logical_content="ef" * 32,
        segmentation="safetensors",
        copy_id=secrets.token_hex(32),
        files=FILES,
        files_cached=FILES,
        oldest_digest=1.7e9 + rank,
        identity="ab" * 32,
        content="ab" * 32,
        sidecars="ab" * 32,
    )
    return encode(Answer(fingerprint=told, at=1.7e9 + rank))


def pulse(rank: int) -> bytes:
    """A heartbeat while content is read."""
    status = RankStatus(
        rank=rank, host=f"node-{rank // 8:04}", phase=Phase.CONTENT, beat=7, cells="+" * FILES, doing="reading x (7 %)"
    )
    return encode(Pulse(status=status))


def meeting(bench: Bench) -> list[tuple[str, Cost]]:
    """Coming, one look at all who are here, and taking the outcome."""

    def come(store: Store, rank: int) -> int:
        store.append("roster", encode_line(bench.hellos[rank]))
        store.add("came", 1)
        return 0

    def decide(store: Store) -> int:
        roster = pack([encode_line(one) for one in bench.hellos])
        store.set("outcome", encode(Opening(nonce="00" * 16, roster=roster)))
        return len(roster)

    came = bench.all(come)
    looked = bench.all(lambda store, _rank: len(store.get(["roster"])[0]), SAMPLE)
    bench.one(decide)
    taken = bench.all(lambda store, _rank: len(store.get(["outcome"])[0]), SAMPLE)
    return [("come", came), ("one look at the roster", looked), ("take the outcome", taken)]


def beat(bench: Bench) -> list[tuple[str, Cost]]:
    """One beat of all: each puts its pulse, and reads those that it listens to."""
    keys = [f"pulse/{rank}" for rank in range(bench.ranks)]

    def put(store: Store, rank: int) -> int:
        store.set(keys[rank], pulse(rank))
        return 0

    def listen(store: Store, rank: int) -> int:
        heard = [keys[other] for other in listened_to(rank or 1, bench.ranks, range(bench.ranks))]
        return sum(map(len, store.get(heard)))

    published = bench.all(put)
    return [
        (f"publish (every {interval(bench.ranks):.1f} s)", published),
        ("listen", bench.all(listen, SAMPLE)),
        ("if all listened to all", bench.all(lambda store, _rank: sum(map(len, store.get(keys))), 16)),
    ]


def gather(bench: Bench) -> list[tuple[str, Cost]]:
    """One exchange of all answers."""

    def member(store: Store, rank: int) -> StoreGather:
        return StoreGather(
            store,
            base="exchange",
            rank=rank,
            ranks=range(bench.ranks),
            seconds=600,
            clock=SystemClock(),
            watch=nothing,
            gone=dict,
        )

    base = f"exchange/{Step.CONTENT.name.lower()}"

    def post(store: Store, rank: int) -> int:
        if rank:  # the lowest comes last, and puts all together
            store.post(f"{base}/{rank}", answer(rank))
            store.append(f"{base}/posted", b"%d " % rank)
            store.add(f"{base}/count", 1)
        return 0

    def read(store: Store, _rank: int) -> int:
        present, bundle = f"{base}/present", f"{base}/bundle"
        if not (store.has(present) and store.has(bundle)):
            raise SystemExit("nobody has put the answers together")
        return len(store.get([present])[0]) + len(store.fetch([bundle])[0])

    posted = bench.all(post)
    begun = time.perf_counter()
    bench.one(lambda store: len(member(store, 0).gather(Step.CONTENT, answer(0))))
    seconds = time.perf_counter() - begun
    each = [f"{base}/{rank}" for rank in range(bench.ranks)]
    return [
        ("post", posted),
        (f"read, put together by rank 0 in {seconds:.1f} s", bench.all(read, SAMPLE)),
        ("if each read each", bench.all(lambda store, _rank: sum(map(len, store.fetch(each))), 16)),
    ]


def main() -> None:
    """Measure and print."""
    for ranks in map(int, sys.argv[1:] or ("1000", "10000")):
        with bench(ranks) as one:
            print(f"{ranks:,} ranks")
            for part in (meeting, beat, gather):
                for what, cost in part(one):
                    print(f"  {part.__name__:8} {what:48} {cost.cpu:8.2f} s {cost.sent / 1e6:10,.0f} MB")


if __name__ == "__main__":
    main()
