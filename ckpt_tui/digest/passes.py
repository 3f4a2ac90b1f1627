"""One pass over a file by one thread or several: pieces in any order, or ahead of hashes that take them in order."""

from __future__ import annotations

import os
import threading
from itertools import count
from typing import TYPE_CHECKING

from .buffers import new_buffer, place, rooms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .pieces import Pieces

#: How many pieces are read ahead of the hashes that take them in order.
_DEPTH = 4


class Moved(Exception):
    """The file is not what it was: `fields` are the parts of its stamp that moved, or what else shows it."""

    def __init__(self, fields: str) -> None:
        super().__init__(fields)
        self.fields = fields


class Source:
    """An open file and its pieces. Any thread may fetch any piece."""

    def __init__(self, descriptor: int, pieces: Pieces) -> None:
        self._descriptor = descriptor
        self.pieces = pieces

    def fetch(self, number: int, buffer: memoryview) -> memoryview:
        """Read a piece into a buffer and hash its leaves; where in the buffer it lies."""
        piece = self.pieces[number]
        data = place(buffer, piece.offset, piece.length)
        done = 0
        while done < piece.length:
            try:
                read = os.preadv(self._descriptor, [data[done:]], piece.offset + done)
            except OSError as error:
                error.add_note(f"reading from byte {piece.offset + done:,} on")
                raise
            if not read:
                raise Moved("size")
            done += read
        self.pieces.hash(piece, data)
        return data


class AnyOrder:
    """Where the leaves are all that is wanted: whoever has time takes the next piece."""

    helpers = 1 << 10

    def __init__(self, source: Source, advance: Callable[[int], None]) -> None:
        self._source = source
        self._advance = advance
        self._numbers = count()

    def step(self, buffer: memoryview) -> bool:
        """Take a piece; false where none is left."""
        number = next(self._numbers)
        if number >= len(self._source.pieces):
            return False
        self._advance(len(self._source.fetch(number, buffer)))
        return True

    def run(self, buffer: memoryview) -> None:
        """Take pieces until none is left."""
        while self.step(buffer):
            pass


class InOrder:
    """Where the whole file has hashes: helpers read pieces and hash their leaves, ahead of the thread that hashes.

    Without helpers that thread does everything. With one it does nothing but hash, and the disk is never idle. A hash
    may go on with a piece until it is given the next one, so a piece's room is free one piece later.
    """

    #: Two, so that one may wait for the disk while the other has the bytes.
    helpers = 2

    def __init__(
        self, source: Source, updates: Sequence[Callable[[memoryview], None]], advance: Callable[[int], None]
    ) -> None:
        self._source = source
        self._updates = updates
        self._advance = advance
        self._changed = threading.Condition()
        self._claimed = 0  # pieces that somebody fetches or fetched
        self._taken = 0  # pieces that the hashes have taken
        self._over = False
        self._ready: dict[int, tuple[memoryview, memoryview]] = {}  # fetched by helpers: room and data
        self._free: list[memoryview] = []  # rooms

    def step(self, buffer: memoryview) -> bool:  # noqa: ARG002 - what is fetched ahead needs buffers that outlive the step
        """Fetch a piece ahead; false where none is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._claimed < self._taken + _DEPTH)
            if self._over or self._claimed == len(self._source.pieces):
                return False
            number = self._claimed
            self._claimed += 1
            room = self._room()
        try:
            data = self._source.fetch(number, room)
        except BaseException:
            self._end()
            raise
        with self._changed:
            self._ready[number] = room, data
            self._changed.notify_all()
        return True

    def run(self, buffer: memoryview) -> None:
        """Hash all pieces in order, and fetch those that nobody else does. Returns early where a helper failed."""
        self._free += rooms_of(buffer)
        before: memoryview | None = None
        try:
            for number in range(len(self._source.pieces)):
                if room := self._claim(number):
                    data = self._source.fetch(number, room)
                else:
                    with self._changed:
                        self._changed.wait_for(lambda: self._over or number in self._ready)  # noqa: B023 - within this turn
                        if self._over:
                            return
                        room, data = self._ready.pop(number)
                self._hash(data)
                with self._changed:
                    self._taken = number + 1
                    if before is not None:
                        self._free.append(before)
                    before = room
                    self._changed.notify_all()
        finally:
            self._end()

    def _room(self) -> memoryview:
        return self._free.pop() if self._free else new_buffer()

    def _claim(self, number: int) -> memoryview | None:
        """A room for a piece, where nobody else fetches it."""
        with self._changed:
            if self._claimed > number:
                return None
            self._claimed = number + 1
            return self._room()

    def _hash(self, data: memoryview) -> None:
        for update in self._updates:
            update(data)
        self._advance(len(data))

    def _end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
