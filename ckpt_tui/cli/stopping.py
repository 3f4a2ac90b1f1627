"""Ctrl+C and SIGTERM as a wish to stop: the work ends within a block, and the process leaves with the signal's code."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """The signal that came, if one did."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def code(self) -> int:
        """128 and the signal's number, as shells have it; SIGINT's where the wish came otherwise."""
        return 128 + (self.signal or signal.SIGINT)


@contextmanager
def stopping(cancel: Callable[[], None]) -> Iterator[Stop]:
    """Turn the first signal into a call of `cancel`; a second one ends the process as it always would."""
    stop = Stop()

    def handle(number: int, _frame: FrameType | None) -> None:
        stop.signal = number
        for each, old in before.items():
            signal.signal(each, old)
        cancel()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # What a launcher told us to ignore (nohup) stays ignored.
    before = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)
