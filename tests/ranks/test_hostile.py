"""Hostile company: strangers on the store's port, faulty and foreign ranks, and names made to do harm."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from ckpt_tui.facts.agreement import Verdict
from ckpt_tui.ranks import messages
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.gather import GatherBroken
from ckpt_tui.ranks.messages import PROTOCOL, Hello, Step, encode_line
from ckpt_tui.ranks.native import load_torch
from ckpt_tui.ranks.store import Store, connect
from tests.ranks.test_exchange import compare, witness
from tests.ranks.test_gather import RANKS, everywhere, through_gloo, through_store
from tests.support.checkpoints import flip_bit, payload_offset, safetensors_bytes, tensor, write_checkpoint
from tests.support.ranks import Ended, Ranks, is_open
from tests.support.waiting import wait_until

#: What strangers send: nothing, a little, noise, another protocol, and what the store's own commands begin with.
STRANGERS = (
    b"",
    b"\x00",
    bytes(range(256)) * 256,
    b"GET / HTTP/1.1\r\nHost: store\r\n\r\n",
    b"\x00\xce\xf7\x85\x3c" + b"\xff" * 64,
    b"\x09" * 4096,
    *(bytes([command]) + b"\xff" * 32 for command in range(24)),
)
ROSTER = "ckpt-tui/call/1/roster"


@contextmanager
def strangers(port: int) -> Iterator[None]:
    """Connections to the port that have sent their bytes, and stay half-open."""
    crowd = []
    try:
        for sent in STRANGERS:
            one = socket.create_connection(("127.0.0.1", port), timeout=5)
            crowd.append(one)
            try:
                one.sendall(sent)
            except OSError:  # it was shown the door
                continue
        yield
    finally:
        for one in crowd:
            one.close()


def plain(ended: Ended) -> None:
    """Nothing that a terminal would obey, and no traceback."""
    for text in (ended.out, ended.err):
        assert not [char for char in text if char != "\n" and not char.isprintable()]
        assert "Traceback" not in text


def test_strangers_on_the_stores_port_change_nothing(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model")
    with Ranks(2) as ranks:
        ranks.start(0, folder)
        wait_until(lambda: is_open(Address("127.0.0.1", ranks.port)), 30, what="the store")
        with strangers(ranks.port):
            ranks.start(1, folder)
            ended = ranks.end()
    assert [rank.code for rank in ended] == [0, 0]
    assert ended[0].agreement["verdict"] == "agree"


@contextmanager
def client(port: int) -> Iterator[Store]:
    """A process of somebody else that speaks the store's own protocol."""
    address = Address("127.0.0.1", port)
    wait_until(lambda: is_open(address), 30, what="the store")
    store = connect(load_torch(), address, seconds=30, patience=30)
    try:
        yield store
    finally:
        store.close()


def hello(**changes: object) -> bytes:
    """What a rank of this session would say when it comes, but for the changes."""
    usual = Hello(
        protocol=PROTOCOL, layout=1, tool="ckpt-tui 9", rank=1, world_size=2, host="node-x", pid=1, token="00" * 16
    )
    return encode_line(msgspec.structs.replace(usual, **changes))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\xff\x00\x1b[31m noise\n", "another version of ckpt-tui takes part"),
        (hello(host="node\x1b[31mx"), "another version of ckpt-tui takes part"),
        (hello(host="h" * (1 << 20)), "another version of ckpt-tui takes part"),
        (hello(layout=99), "digest layout 99"),
        (hello(protocol=99, host="[bold]x[/bold]"), "[bold]x[/bold]"),
        (hello(world_size=7), "says 7"),
        (hello(rank=0), "two processes say rank 0"),
    ],
    ids=["noise", "escapes", "long", "layout", "protocol", "world-size", "twice"],
)
def test_who_does_not_fit_is_named_and_nobody_waits(tmp_path: Path, line: bytes, said: str) -> None:
    with Ranks(2) as ranks:
        ranks.start(0, write_checkpoint(tmp_path / "model"))
        with client(ranks.port) as store:
            store.append(ROSTER, line)
            (ended,) = ranks.end(seconds=30)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert len(ended.err) < 1000
    plain(ended)


def test_what_is_no_outcome_is_no_agreement(tmp_path: Path) -> None:
    with Ranks(2) as ranks:
        ranks.start(0, write_checkpoint(tmp_path / "model"))
        with client(ranks.port) as store:
            wait_until(lambda: store.has(ROSTER), 30, what="rank 0")
            store.set("ckpt-tui/call/1/outcome", b"\x1b]0;agree\x07" * 1000)
            (ended,) = ranks.end(seconds=30)
    assert (ended.code, ended.out) == (2, "")
    plain(ended)


def test_messages_of_another_session_are_not_read(connections: Callable[[], Store]) -> None:
    stores = [connections() for _ in range(RANKS)]
    here, elsewhere = "session/here", "session/elsewhere"
    assert (
        everywhere(lambda rank: through_store(stores[rank], rank, base=elsewhere).gather(Step.CONTENT, b"theirs"))
        == [dict.fromkeys(range(RANKS), b"theirs")] * RANKS
    )
    assert (
        everywhere(lambda rank: through_store(stores[rank], rank, base=here).gather(Step.CONTENT, b"ours"))
        == [dict.fromkeys(range(RANKS), b"ours")] * RANKS
    )


def test_a_rank_with_another_nonce_in_the_same_group_breaks_it(
    torch: ModuleType, connections: Callable[[], Store]
) -> None:
    stores = [connections() for _ in range(RANKS)]
    nonce = secrets.token_hex(16)

    def work(rank: int) -> str:
        gather = through_gloo(torch, stores[rank], rank, nonce)
        if rank == 1:
            gather._nonce = os.urandom(16)
        try:
            gather.gather(Step.CONTENT, b"forged")
        except GatherBroken as error:
            return str(error)
        return "taken"

    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(everywhere, work).result(60)
    assert all("is not at the same step" in str(one) for one in said)


@pytest.mark.parametrize("step", [Step.CONTENT, Step.FILES, Step.SEGMENTS])
@pytest.mark.parametrize("sent", [b"\x91" * 200_000, b"\xdd\xff\xff\xff\xff", os.urandom(5000)])
def test_messages_too_long_too_deep_or_random_never_make_an_agreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Step, sent: bytes
) -> None:
    monkeypatch.setattr(messages, "MAX_BYTES", 100_000)
    good, bad = (write_checkpoint(tmp_path / name) for name in ("good", "bad"))
    shard = bad / "model-00001-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard))
    agreement, _ = compare(
        [witness(good, 0), witness(bad, 1)],
        tampers={1: lambda at, payload: sent if at is step else payload},
    )
    assert agreement.verdict in ({Verdict.UNDECIDED} if step is Step.CONTENT else {Verdict.DIFFER})


HOSTILE = ["\x1b[31mred\x1b]0;title\x07", "[/bold]", "[red]x", "<script>", "a\nb\r\tc", "\u202egnp", "n" * (1 << 20)]


def test_hostile_names_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    folders = [tmp_path / f"{side}[b]\x1b[2J\u202e" for side in "ab"]
    for folder in folders:
        folder.mkdir()
        content = {name: tensor("same", (4,)) for name in HOSTILE}
        if folder is folders[1]:
            content |= {name: tensor("other", (4,)) for name in HOSTILE}
        (folder / "model.safetensors").write_bytes(safetensors_bytes(content))
        (folder / "config.json").write_text("{}\n")
    for json in ("--json", "--format=human"):
        with Ranks(2, (json,)) as ranks:
            for rank, folder in enumerate(folders):
                ranks.start(rank, folder)
            ended = ranks.end()
        assert [one.code for one in ended] == [1, 1]
        assert "differ" in ended[0].out.lower()
        for one in ended:
            plain(one)
    assert "\\x1b[31mred" in ended[0].out
    assert "[/bold]" in ended[0].out
