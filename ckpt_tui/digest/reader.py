"""One read of a file gives all its digests; and a file is read so that no write can hide from its stat."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..checkpoint.opening import open_regular
from .filesystem import FileSystem, open_for_writing
from .layout import file_digest
from .stream import SegmentStream
from .validity import Stamp, Wants, moved, step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..facts.clock import Clock
    from .control import Control
    from .cut import Span

#: Bytes of the one buffer that a thread reads into.
BLOCK = 1 << 20
#: How far the kernel is asked to read ahead of the hashing.
_AHEAD = 16 * BLOCK


class Moved(Exception):
    """The file is not what it was: `fields` are the parts of its stamp that moved, or what else shows it."""

    def __init__(self, fields: str) -> None:
        super().__init__(fields)
        self.fields = fields


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
    """A file to read: how it is cut, what is wanted, and what was seen of it when all files were stat'ed."""

    path: Path
    spans: tuple[Span, ...]
    wants: Wants
    seen: Sight
    file_system: FileSystem


class Reading(NamedTuple):
    """Digests, the stat that vouches for them, and whether somebody held the file open for writing."""

    digests: Digests
    seen: Sight
    written: bool


def look(descriptor: int, clock: Clock) -> Sight:
    """What an open file's stat says now."""
    seen = os.fstat(descriptor)
    return Sight(Stamp.of(seen), seen.st_dev, clock.monotonic(), clock.time())


class Reader:
    """Reads files so that no write can hide: two stats around each read, and time between the first and the read.

    Any write that comes a timestamp step after a stat must move the ctime. A file that moved is read once more.
    """

    def __init__(self, control: Control, clock: Clock) -> None:
        self._control = control
        self._clock = clock

    def read(self, target: Target, buffer: memoryview, advance: Callable[[int], None]) -> Reading:
        """Read one file. `advance` is called with the bytes of each block, and with minus all of them before a retry.

        Raises `Moved` where it moved twice or is not the file that was seen any more, OSError, and `Interrupted`.
        """
        done = 0

        def block(count: int) -> None:
            nonlocal done
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
            self._control.wait_until(seen.monotonic + step(target.file_system, seen.stamp))
            written = target.file_system.local and open_for_writing(descriptor)
            digests = read_digests(descriptor, size, target.spans, wants=target.wants, buffer=buffer, advance=block)
            here, there = os.fstat(descriptor), target.path.stat()
        finally:
            os.close(descriptor)
        if fields := moved(seen.stamp, Stamp.of(there)) or moved(seen.stamp, Stamp.of(here)):
            raise Moved(fields)
        if here.st_dev != there.st_dev:
            raise Moved("device")
        return Reading(digests, seen, written)


def read_digests(
    descriptor: int,
    size: int,
    spans: tuple[Span, ...],
    *,
    wants: Wants,
    buffer: memoryview,
    advance: Callable[[int], None],
) -> Digests:
    """Hash `size` bytes from the start of an open file; `advance` is called with the length of each block.

    Raises `Moved` where the file ends early, OSError, and whatever `advance` raises.
    """
    stream = SegmentStream(spans)
    sha256 = hashlib.sha256(usedforsecurity=False) if wants.sha256 else None
    git_sha1 = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False) if wants.git_sha1 else None
    done = ahead = 0
    while done < size:
        while ahead < min(size, done + _AHEAD):  # the kernel reads on while we hash
            with suppress(OSError):  # advice only: some file systems take none
                os.posix_fadvise(descriptor, ahead, BLOCK, os.POSIX_FADV_WILLNEED)
            ahead += BLOCK
        count = os.readv(descriptor, [buffer[: size - done]])
        if not count:
            raise Moved("size")
        block = buffer[:count]
        if sha256:
            sha256.update(block)
        if git_sha1:
            git_sha1.update(block)
        stream.update(block)
        done += count
        advance(count)
    segments = bytes(stream.segments)
    return Digests(
        file=file_digest(spans, segments),
        segments=segments,
        leaves=bytes(stream.leaves),
        sha256=sha256.digest() if sha256 else None,
        git_sha1=git_sha1.digest() if git_sha1 else None,
    )
