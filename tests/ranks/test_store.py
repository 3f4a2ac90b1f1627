"""The store's connections: deadlines, ports, and what is no store at all."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from types import ModuleType

import pytest

from ckpt_tui.facts.outcome import Exit
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.processes import listener
from ckpt_tui.ranks.store import NobodyThere, Store, StoreLost, connect, listen, reach, taken


def test_what_one_connection_puts_the_other_reads(connections: Callable[[], Store]) -> None:
    one, other = connections(), connections()
    one.set("key", b"value")
    one.append("log", b"a")
    other.append("log", b"b")
    assert other.get(["key", "log"]) == [b"value", b"ab"]
    assert (one.add("n", 2), other.add("n", 3), one.add("untouched", 0)) == (2, 5, 0)
    assert (one.has("key"), one.has("other")) == (True, False)


def test_a_value_longer_than_torch_takes_in_one_piece_is_posted_and_fetched_whole(
    connections: Callable[[], Store],
) -> None:
    one, other = connections(), connections()
    values = {"long": bytes(range(256)) * (9 << 12) + b"end", "short": b"\0", "empty": b""}
    for key, value in values.items():
        one.post(key, value)
    assert other.fetch(list(values)) == list(values.values())
    one.clear("long", one.post("long", values["long"]))
    assert one.fetch(["long"]) == other.fetch(["long"]) == [b""]
    assert not other.has("long/piece/1")


def test_the_first_decision_stands(connections: Callable[[], Store]) -> None:
    one, other = connections(), connections()
    assert one.decide("key", b"", b"-") == b"-"
    assert other.decide("key", b"", b"x") == b"-"
    assert one.decide("key", b"-", b"mine") == b"mine"
    assert other.decide("key", b"-", b"theirs") == b"mine"


def test_a_loopback_address_is_served_on_loopback_alone() -> None:
    listening = listen(Address("127.0.0.1", 0))
    assert listening is not None
    with listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_any_other_address_is_served_on_all_interfaces() -> None:
    listening = listen(Address("name.that.is.not.known.invalid", 0))
    assert listening is not None
    with listening:
        assert listening.getsockname()[0] in {"::", "0.0.0.0"}


def test_a_port_that_is_taken_names_its_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = Address("127.0.0.1", other.getsockname()[1])
        assert listen(address) is None
        assert f"port {address.port} on " in taken(address)
        assert listener(address.port) is not None
    assert listener(address.port) is None


def test_waiting_for_a_store_that_never_comes_ends_in_time_and_says_why() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        said: list[str] = []
        begun = time.monotonic()
        with pytest.raises(NobodyThere, match="nobody listens") as raised:
            reach(Address("127.0.0.1", held.getsockname()[1]), 0.5, nothing, said.append)
    assert 0.5 <= time.monotonic() - begun < 5
    assert said
    assert raised.value.code is Exit.INCOMPLETE


def test_a_name_that_is_not_known_is_said() -> None:
    with pytest.raises(NobodyThere, match="is not known"):
        reach(Address("name.that.is.not.known.invalid", 1), 0.1, nothing, lambda _why: None)


def test_what_listens_and_is_no_store_is_found_out(torch: ModuleType) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(NobodyThere, match="does not answer as a store"),
    ):
        connect(torch, Address("127.0.0.1", other.getsockname()[1]), seconds=1, patience=1)


SERVER = """
import sys
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.native import load_torch
from ckpt_tui.ranks.store import connect, listen
listening = listen(Address("127.0.0.1", 0))
port = listening.getsockname()[1]
store = connect(load_torch(), Address("127.0.0.1", port), seconds=10, patience=10, listening=listening)
print(port, flush=True)
sys.stdin.read()
"""


def test_a_store_that_dies_is_contact_lost_at_once_and_never_a_rank(torch: ModuleType) -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        address = Address("127.0.0.1", int(server.stdout.readline()))
        store = connect(torch, address, seconds=10, patience=30)
        store.set("key", b"value")
        server.kill()
        server.wait(10)
        begun = time.monotonic()
        with pytest.raises(StoreLost, match=f"lost contact with the store on {address}"):
            store.get(["key"])
        assert time.monotonic() - begun < 5
