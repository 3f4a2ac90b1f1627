"""A real worker process, and what has come from it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.stream.messages import Quit
from ckpt_tui.stream.state import StreamState, apply
from ckpt_tui.tui.sources import ChildSource
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Watcher:
    """Drains a source into a state."""

    def __init__(self, source: ChildSource) -> None:
        self.source = source
        self.state = StreamState()

    def decided(self, seconds: float = 30) -> StreamState:
        """Drain until there is a verdict; the worker stays."""
        return self.until(lambda state: state.verdict and state.verdict.code is not None, seconds)

    def left(self, seconds: float = 30) -> StreamState:
        """Tell it to leave, and drain to the end."""
        self.source.send(Quit())
        return self.until(lambda state: state.ended, seconds)

    def until(self, predicate: Callable[[StreamState], object], seconds: float = 30) -> StreamState:
        """Drain until this is true of the state."""

        def met() -> object:
            apply(self.state, self.source.drain())
            return predicate(self.state)

        wait_until(met, seconds)
        return self.state


def worker_argv(*args: str) -> list[str]:
    return [sys.executable, "-P", "-m", "ckpt_tui", "_worker", *args]


def scan_argv(target: Path | str, cache: Path, **settings: object) -> list[str]:
    encoded = msgspec.json.encode(ScanSettings(cache_dir=str(cache), **settings)).decode()
    return worker_argv("scan", f"--settings={encoded}", "--", str(target))


@contextmanager
def watching(argv: list[str]) -> Iterator[Watcher]:
    source = ChildSource(argv)
    try:
        yield Watcher(source)
    finally:
        source.close()
