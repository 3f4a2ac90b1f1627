"""A real store in this process, for tests that need no rank processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.native import load_torch
from ckpt_tui.ranks.store import Store, connect, listen


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """torch, imported once."""
    return load_torch()


@pytest.fixture
def connections(torch: ModuleType) -> Iterator[Callable[[], Store]]:
    """Makes connections to a store that this process serves on a port of the system's choice."""
    address = Address("127.0.0.1", 0)

    def serve() -> Store:
        nonlocal address
        listening = listen(Address("127.0.0.1", 0))
        assert listening is not None
        address = Address("127.0.0.1", listening.getsockname()[1])
        return connect(torch, address, seconds=10, patience=10, listening=listening)

    made = [serve()]

    def make() -> Store:
        made.append(connect(torch, address, seconds=10, patience=10))
        return made[-1]

    yield make
    for store in made:
        store.close()
