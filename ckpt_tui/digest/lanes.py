"""Where threads meet that hash files from end to end: one of two takes the other's piece along, on one core.

A file's SHA-256 cannot be shared among cores, and it leaves half of its core idle: each step waits for the one before.
Two files whose steps take turns are hashed in little more time than one (`native/src/compress.c`).
"""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from .. import native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..native import Sha256

#: How long a thread waits for another's piece before it hashes its own alone, in seconds. It waits only where another
#: is about to come, or no core is free: this is for one that the disk holds up.
_PATIENCE = 0.005
#: Fewer bytes than this are hashed sooner than two threads have met.
_WORTH_IT = 128 << 10


class Hash(Protocol):
    """A SHA-256 on its way."""

    def update(self, data: memoryview, /) -> None:
        """Take the next bytes."""

    def digest(self) -> bytes:
        """The digest of all bytes so far."""


class _Waiting:
    """A piece that another thread may take along."""

    __slots__ = ("data", "error", "hash", "taken")

    def __init__(self, hash_: Sha256, data: memoryview) -> None:
        self.hash = hash_
        self.data = data
        self.taken = threading.Lock()  # held until then
        self.taken.acquire()
        self.error: BaseException | None = None


class Lanes:
    """The hashes of one scan. Files pair up only where there are more of them than cores."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._lock = threading.Lock()
        self._files = 0  # that are being hashed
        self._coming = 0  # of these, those whose next piece is not there yet
        self._busy = 0  # cores
        self._waiting: _Waiting | None = None

    @contextmanager
    def sha256(self) -> Iterator[Hash]:
        """The hash of a file that is read in the block, by one thread at a time."""
        if native.ABREAST == 1:
            yield hashlib.sha256(usedforsecurity=False)
            return
        with self._lock:
            self._files += 1
            self._coming += 1
        try:
            yield _Lane(self, native.Sha256())
        finally:
            with self._lock:
                self._files -= 1
                self._coming -= 1

    def update(self, hash_: Sha256, data: memoryview) -> None:
        """Take a file's next piece, together with another file's where one waits or is about to come."""
        if len(data) < _WORTH_IT:
            hash_.update(data)
            return
        other = mine = None
        with self._lock:
            self._coming -= 1
            if self._waiting:
                other, self._waiting = self._waiting, None
            elif self._files > self._cores and (self._coming or self._busy >= self._cores):
                mine = self._waiting = _Waiting(hash_, data)
        if mine is None or not self._taken_along(mine):
            self._hash(hash_, data, other)

    def _hash(self, hash_: Sha256, data: memoryview, other: _Waiting | None) -> None:
        with self._lock:
            self._busy += 1
        try:
            if other:
                hash_.update_with(data, other.hash, other.data)
            else:
                hash_.update(data)
        except BaseException as error:
            if other:
                other.error = error
            raise
        finally:
            with self._lock:
                self._busy -= 1
                self._coming += 2 if other else 1  # for both, as the other may be slow to wake
            if other:
                other.taken.release()

    def _taken_along(self, mine: _Waiting) -> bool:
        if not mine.taken.acquire(timeout=_PATIENCE):
            with self._lock:
                if self._waiting is mine:
                    self._waiting = None
                    return False
            mine.taken.acquire()  # somebody is at it
        if mine.error:
            raise mine.error
        return True


class _Lane:
    """A file's hash among the others."""

    __slots__ = ("_hash", "_lanes", "digest")

    def __init__(self, lanes: Lanes, hash_: Sha256) -> None:
        self._lanes = lanes
        self._hash = hash_
        self.digest = hash_.digest

    def update(self, data: memoryview, /) -> None:
        self._lanes.update(self._hash, data)
