"""The way to the store, each rank a thread here: who serves it, and numbers that it hands out."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.ranks import door as door_
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.door import Door
from ckpt_tui.ranks.environment import Place
from ckpt_tui.ranks.store import NobodyThere, Store, is_here, listen
from tests.support.ranks import free_port

Open = Callable[[Place], Door]


@pytest.fixture
def notes() -> list[str]:
    """The lines for people."""
    return []


@pytest.fixture
def opened(torch: ModuleType, notes: list[str]) -> Iterator[Callable[..., Door]]:
    """Opens a door; the stores live until the test ends."""
    stores: list[Store] = []

    def open_(place: Place, seconds: float = 20) -> Door:
        clock = SystemClock()
        end = clock.monotonic() + seconds
        door = Door(
            torch=lambda: torch,
            place=place,
            scope="test",
            patience=10,
            clock=clock,
            left=lambda: max(end - clock.monotonic(), 0.0),
            watch=nothing,
            note=notes.append,
        )
        stores.append(door.open())
        return door

    yield open_
    for store in stores:
        store.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_each_rank_without_a_number_gets_one_and_one_of_them_serves(host: str, opened: Open) -> None:
    place = Place(None, 8, Address(host, free_port()))
    with ThreadPoolExecutor(8) as pool:
        doors = [future.result(60) for future in [pool.submit(opened, place) for _ in range(8)]]
    assert sorted(door.place.number for door in doors) == list(range(8))
    assert [door.place.rank for door in doors if door.place.hosts_store] == [0]
    with pytest.raises(UsageError, match=r"8 ranks have come to .* before this one, and the world size is 8"):
        opened(place)


def test_where_no_rank_runs_on_the_masters_host_nobody_gets_a_number(opened: Callable[..., Door]) -> None:
    with pytest.raises(NobodyThere, match=r"nowhere\.invalid.*the first rank that runs there is to listen"):
        opened(Place(None, 2, Address("nowhere.invalid", 1)), seconds=0.2)


@pytest.mark.parametrize(("rank", "said"), [(None, "and not by a store of ranks"), (0, "is another rank 0")])
def test_a_port_that_no_store_holds_is_said_to_be_so(
    rank: int | None, said: str, monkeypatch: pytest.MonkeyPatch, opened: Open, notes: list[str]
) -> None:
    """Case R05, a port in use."""
    monkeypatch.setattr(door_, "_RECOGNISE", 1.5)
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(UsageError, match=rf"is in use by pid {os.getpid()}.* {said}"),
    ):
        opened(Place(rank, 2, Address("127.0.0.1", other.getsockname()[1])))
    assert "to answer as a store" in notes[0]


def test_this_machine_knows_its_own_names_and_no_others() -> None:
    assert all(is_here(host) for host in ("localhost", "127.0.0.1", socket.gethostname()))
    assert not any(is_here(host) for host in ("192.0.2.1", "nowhere.invalid"))


def test_a_port_that_is_taken_on_one_address_of_a_name_is_not_taken_on_the_other() -> None:
    port = free_port()
    first = listen(Address("localhost", port))
    assert first is not None
    with first:
        assert listen(Address("localhost", port)) is None
