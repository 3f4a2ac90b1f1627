"""The worker's side of a stream: the newest row of every key, drained by one thread at most ten times a second.

Whoever puts a row never waits for the reader: a slow or stopped reader costs a row's older values, never memory.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Literal

from .codec import BadLineError, encode, slices
from .messages import (
    Beat,
    Bye,
    CachePart,
    DrillRow,
    FileRow,
    Hello,
    LogLine,
    Message,
    RankRow,
    ResultPart,
    Row,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERVAL = 0.1
LOG_LINES = 1000

Key = tuple[object, ...]


def key_of(row: Row) -> Key:
    """What a row replaces: the row before it under the same key."""
    match row:
        case FileRow():
            return ("file", row.rank, row.index)
        case RankRow():
            return ("rank", row.status.rank, 0)
        case LogLine():
            return ("log", row.number, 0)
        case ResultPart():
            return ("result", row.part, 0)
        case CachePart():
            return ("cache", row.part, 0)
        case DrillRow():
            return ("drill", row.place, row.part)
        case _:  # there is one of its kind
            return (type(row).__name__,)


class Outbox:
    """Rows on their way out. `write` takes whole lines and may block; only the writer thread calls it."""

    def __init__(self, write: Callable[[bytes], None], hello: Hello, *, interval: float = INTERVAL) -> None:
        self._write = write
        self._interval = interval
        self._latest: dict[Key, Row] = {}
        self._dirty: dict[Key, None] = {}
        self._logs: deque[Key] = deque()
        self._first: list[Message] = [hello]
        self._beat: Beat | None = None
        self._bye: Bye | None = None
        self._resync = True
        self._seq = 0
        #: Rows that were not fit to be sent: a fault of ours, counted so that it can be seen.
        self.refused = 0
        self._wake = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)

    def start(self) -> None:
        """Start the writer thread; the first thing it sends is the hello and a snapshot."""
        self._thread.start()

    def put(self, row: Row) -> None:
        """Send this row unless a newer one comes first. A row that says nothing new is not sent."""
        key = key_of(row)
        with self._wake:
            if self._latest.get(key) == row:
                return
            self._latest[key] = row
            self._dirty[key] = None
            if key[0] == "log":
                self._logs.append(key)
                if len(self._logs) > LOG_LINES:
                    oldest = self._logs.popleft()
                    self._latest.pop(oldest, None)
                    self._dirty.pop(oldest, None)
            self._wake.notify()

    def beat(self, at: float) -> None:
        """Say that the worker lives."""
        with self._wake:
            self._beat = Beat(at=at)
            self._wake.notify()

    def forget(self, kind: Literal["file", "rank", "cache"]) -> None:
        """Drop all rows of a kind: they are neither sent nor part of a snapshot any more."""
        with self._wake:
            for key in [key for key in self._latest if key[0] == kind]:
                del self._latest[key]
                self._dirty.pop(key, None)

    def start_over(self) -> None:
        """Drop all rows but the log and what the cache holds, and let the reader forget them too."""
        with self._wake:
            self._latest = {key: row for key, row in self._latest.items() if key[0] in {"log", "cache"}}
            self._dirty.clear()
            self._resync = True
            self._wake.notify()

    def resync(self) -> None:
        """Send a snapshot of everything."""
        with self._wake:
            self._resync = True
            self._wake.notify()

    def close(self, bye: Bye, timeout: float = 2.0) -> None:
        """Send what is left and the bye, and end the thread; give up after `timeout`."""
        with self._wake:
            self._bye = bye
            self._wake.notify()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(self._pending)
                batch = list(self._take())
                last = self._bye is not None
            try:
                self._write(b"".join(self._lines(batch)))
            except OSError:
                return  # nobody reads any more
            if last:
                return
            # Rest, so that what changes meanwhile is sent once; only a bye cuts the rest short.
            with self._wake:
                self._wake.wait_for(lambda: self._bye is not None, self._interval)

    def _pending(self) -> bool:
        return bool(self._dirty or self._beat or self._resync or self._bye)

    def _take(self) -> Iterator[Message]:
        """What goes out now, in its order. Called with the lock held."""
        yield from self._first
        self._first = []
        if self._resync:
            self._resync = False
            self._dirty.clear()
            yield from slices(self._latest.values())
        else:
            yield from [self._latest[key] for key in self._dirty]
            self._dirty.clear()
        if self._beat is not None:
            yield self._beat
            self._beat = None
        if self._bye is not None:
            yield self._bye

    def _lines(self, batch: list[Message]) -> Iterator[bytes]:
        for message in batch:
            try:
                line = encode(self._seq + 1, message)
            except BadLineError:
                self.refused += 1
                continue
            self._seq += 1
            yield line
