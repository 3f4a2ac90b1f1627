"""One read of a file gives all its digests; and a file is read so that no write can hide from its stat."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from ..checkpoint.opening import open_regular
from .behind import Behind
from .cut import cut
from .filesystem import FileSystem, open_for_writing
from .lanes import Lanes
from .layout import file_digest
from .passes import AnyOrder, InOrder, Moved, Source
from .pieces import Pieces
from .validity import Stamp, Wants, moved, rest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..checkpoint.model import Header
    from ..facts.clock import Clock
    from ..facts.files import Segmentation
    from .control import Control
    from .crew import Crew
    from .cut import Spans


class Digests(NamedTuple):
    """What one read gives."""

    file: bytes
    segments: bytes
    leaves: bytes
    sha256: bytes | None
    git_sha1: bytes | None


class Sight(NamedTuple):
    """A stat, and a moment after it on both clocks."""

    stamp: Stamp
    device: int
    monotonic: float
    time: float


class Target(NamedTuple):
    """A file to read: the header by which it is cut, what is wanted, and what was seen of it when all were stat'ed."""

    path: Path
    header: Header | None
    wants: Wants
    seen: Sight
    file_system: FileSystem


class Reading(NamedTuple):
    """Digests, the stat that vouches for them, and whether somebody held the file open for writing."""

    digests: Digests
    segmentation: Segmentation
    seen: Sight
    written: bool


def look(descriptor: int, clock: Clock) -> Sight:
    """What an open file's stat says now."""
    seen = os.fstat(descriptor)
    return Sight(Stamp.of(seen), seen.st_dev, clock.monotonic(), clock.time())


class Reader:
    """Reads files so that no write can hide: two stats around each read, and time before the read.

    Any write that comes a timestamp step after the ctime must move it. A file that moved is read once more.
    """

    def __init__(self, control: Control, clock: Clock, lanes: Lanes, *, drop_page_cache: bool = False) -> None:
        self._control = control
        self._clock = clock
        self._lanes = lanes
        self._drop = drop_page_cache

    def read(self, target: Target, buffer: memoryview, advance: Callable[[int], None]) -> Reading:
        """Read one file. `advance` is called with the bytes of each piece, and with minus all of them before a retry.

        It may be called by several threads, one at a time.

        Raises `Moved` where it moved twice or is not the file that was seen any more, OSError, and `Interrupted`.
        """
        done = 0
        counting = threading.Lock()

        def block(count: int) -> None:
            nonlocal done
            with counting:
                done += count
                advance(count)
            self._control.spend(count)

        try:
            return self._attempt(target, target.seen, buffer, block)
        except Moved:
            advance(-done)
            return self._attempt(target, None, buffer, block)

    def _attempt(self, target: Target, seen: Sight | None, buffer: memoryview, block: Callable[[int], None]) -> Reading:
        descriptor = open_regular(target.path)
        try:
            now = look(descriptor, self._clock)
            if seen is None or now.stamp != seen.stamp:
                seen = now
            size = target.seen.stamp.size
            if seen.stamp.size != size:  # the scan's header and identity are of another file
                raise Moved("size")
            self._control.wait_until(seen.monotonic + rest(target.file_system, seen.stamp, now=seen.time))
            written = target.file_system.local and open_for_writing(descriptor)
            made = cut(target.header, size)
            with self._behind(descriptor, block) as advance:
                digests = read_digests(
                    descriptor, size, made.spans,
                    wants=target.wants, buffer=buffer, advance=advance, lanes=self._lanes, crew=self._control.crew,
                )  # fmt: skip
            here, there = os.fstat(descriptor), target.path.stat()
        finally:
            os.close(descriptor)
        if fields := moved(seen.stamp, Stamp.of(there)) or moved(seen.stamp, Stamp.of(here)):
            raise Moved(fields)
        if here.st_dev != there.st_dev:
            raise Moved("device")
        return Reading(digests, made.segmentation, seen, written)

    @contextmanager
    def _behind(self, descriptor: int, advance: Callable[[int], None]) -> Iterator[Callable[[int], None]]:
        """Let the pages go of what was read, where that is wished for."""
        if not self._drop:
            yield advance
            return
        behind = Behind(descriptor)

        def both(count: int) -> None:
            behind.advance(count)
            advance(count)

        try:
            yield both
        finally:
            behind.end()


def read_digests(
    descriptor: int,
    size: int,
    spans: Spans,
    *,
    wants: Wants,
    buffer: memoryview,
    advance: Callable[[int], None],
    lanes: Lanes | None = None,
    crew: Crew | None = None,
) -> Digests:
    """Hash `size` bytes from the start of an open file; `advance` is called with the length of each piece.

    `lanes` are shared with files that are hashed at the same time. Where a crew helps, other threads read and hash
    pieces too, and `advance` is called by them as well. Raises `Moved` where the file ends early, OSError, and whatever
    `advance` raises.
    """
    with suppress(OSError):  # advice only: some file systems take none
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    pieces = Pieces(spans.lengths)
    source = Source(descriptor, pieces)
    with ExitStack() as stack:
        sha256 = stack.enter_context((lanes or Lanes(1)).sha256()) if wants.sha256 else None
        git_sha1 = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False) if wants.git_sha1 else None
        hashes = [hash_.update for hash_ in (sha256, git_sha1) if hash_]
        reading = InOrder(source, hashes, advance) if hashes else AnyOrder(source, advance)
        if crew:
            stack.enter_context(crew.helped(reading.step, reading.helpers))
        reading.run(buffer)
    segments = pieces.segments()
    return Digests(
        file=file_digest(spans, segments),
        segments=segments,
        leaves=bytes(pieces.leaves),
        sha256=sha256.digest() if sha256 else None,
        git_sha1=git_sha1.digest() if git_sha1 else None,
    )
