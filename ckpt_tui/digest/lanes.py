"""Where threads meet that hash files from end to end: one of two takes the other's piece along, on one core.

A file's SHA-256 cannot be shared among cores, and it leaves half of its core idle: each step waits for the one before.
Two files whose steps take turns are hashed in little more time than one (`native/src/compress.c`).
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from .. import native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..native import Sha256

#: How long a thread with its next piece waits for another that takes the one before, until it hashes that alone, in
#: seconds. It waits only where another is about to come, or no core is free: this is for one that the disk holds up.
_PATIENCE = 0.005
#: Fewer bytes than this are hashed sooner than two threads have met.
_WORTH_IT = 128 << 10


class Hash(Protocol):
    """A SHA-256 on its way."""

    def update(self, data: memoryview, /) -> None:
        """Take the next bytes, which have to stay as they are until the next call, or the end of the block."""

    def digest(self) -> bytes:
        """The digest of all bytes so far."""


class Lanes:
    """The hashes of one scan. Files pair up only where there are more of them than cores.

    A file leaves its piece for whoever comes next with another file's, and goes on reading. When it comes with its own
    next one and nobody has come, it hashes both pieces itself.
    """

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._lock = threading.Lock()
        self._lanes: list[_Lane] = []  # of the files that are being hashed
        self._left: deque[_Lane] = deque()  # with a piece that nobody has taken
        self._busy = 0  # cores

    @contextmanager
    def sha256(self) -> Iterator[Hash]:
        """The hash of a file that is read in the block, by one thread at a time."""
        if native.ABREAST == 1:
            yield hashlib.sha256(usedforsecurity=False)
            return
        lane = _Lane(self, native.Sha256())
        with self._lock:
            self._lanes.append(lane)
        try:
            yield lane
            self.settle(lane)
        finally:
            with self._lock:
                self._lanes.remove(lane)
                if lane in self._left:
                    self._left.remove(lane)
                    lane.open = False
            if lane.open:
                lane.done.acquire()  # its bytes are being read

    def update(self, lane: _Lane, data: memoryview) -> None:
        """Take a file's next piece, together with another file's where one was left; else leave this one."""
        lane.coming = False
        try:
            self.settle(lane)
            if len(data) < _WORTH_IT:
                lane.hash.update(data)
                return
            with self._lock:
                other = self._take()
                if other is None and len(self._lanes) > self._cores:
                    lane.leave(data)
                    self._left.append(lane)
                    return
            self._hash(lane, data, other)
        finally:
            lane.coming = True

    def settle(self, lane: _Lane) -> None:
        """Go on when the piece that a file has left is hashed, by whomever."""
        if not lane.open:
            return
        if not lane.done.acquire(timeout=self._patience(lane)):
            with self._lock:
                mine = lane in self._left
                if mine:
                    self._left.remove(lane)
                    other = self._take()
            if mine:
                lane.open = False
                self._hash(lane, lane.data, other)
                return
            lane.done.acquire()  # somebody is at it
        lane.open = False
        if lane.error:
            raise lane.error

    def _take(self) -> _Lane | None:
        return self._left.popleft() if self._left else None

    def _patience(self, lane: _Lane) -> float:
        """How long to wait for somebody who takes what a file has left, in seconds."""
        with self._lock:
            if len(self._left) > 1:
                return 0  # there is one to take
            coming = any(other.coming for other in self._lanes if other is not lane)
            return _PATIENCE if coming or self._busy >= self._cores else 0

    def _hash(self, lane: _Lane, data: memoryview, other: _Lane | None) -> None:
        with self._lock:
            self._busy += 1
        try:
            if other:
                lane.hash.update_with(data, other.hash, other.data)
            else:
                lane.hash.update(data)
        except BaseException as error:
            if other:
                other.error = error
            raise
        finally:
            with self._lock:
                self._busy -= 1
            if other:
                other.coming = True  # it may be slow to wake
                other.done.release()


class _Lane:
    """A file's hash among the others, and the piece that it has left for somebody to take."""

    __slots__ = ("_lanes", "coming", "data", "done", "error", "hash", "open")

    def __init__(self, lanes: Lanes, hash_: Sha256) -> None:
        self._lanes = lanes
        self.hash = hash_
        self.open = False  # whether a piece was left
        self.data = memoryview(b"")
        self.done = threading.Lock()  # free when the piece is hashed
        self.error: BaseException | None = None
        self.coming = True  # with a piece that is not there yet

    def leave(self, data: memoryview) -> None:
        """Leave a piece."""
        self.done = threading.Lock()
        self.done.acquire()
        self.data = data
        self.open = True

    def update(self, data: memoryview, /) -> None:
        self._lanes.update(self, data)

    def digest(self) -> bytes:
        self._lanes.settle(self)
        return self.hash.digest()
