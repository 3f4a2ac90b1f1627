"""One reader a file among the processes of a host: who reads it holds its turn, and shows that it gets on.

A turn is a lock that the kernel frees when its holder dies. Beside it lies the holder's *beat*: what it wants to know
and how many bytes it has read. The others read other files meanwhile, and wait only while the beat moves: after a
holder that is stopped or hangs there is another turn to be had, and after some of those everybody reads for itself.
Whatever goes wrong in here costs reading a file twice, and nothing else.
"""

from __future__ import annotations

import os
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filelock import FileLock

    from ..facts.clock import Clock
    from .filesystem import FileSystems

#: A holder whose beat stands still for so long is waited for no more, in seconds. A reader's own pauses are shorter.
STALLED = 5.0
#: How often a holder shows how far it is.
_PERIOD = 0.1
#: Holders that may stall one after the other before everybody reads for itself.
_TURNS = 3
#: Bytes read, then what is read for: sha256, git-sha1, and whether a rate limit slows it down.
_BEAT = struct.Struct("<Q???")


class Aim(NamedTuple):
    """What a reader reads for, as far as it matters to those who might wait for it."""

    sha256: bool
    git_sha1: bool
    limited: bool

    def serves(self, other: Aim) -> bool:
        """Whether its reading gives all that the other wants, and no slower than it would have it."""
        return self.sha256 >= other.sha256 and self.git_sha1 >= other.git_sha1 and self.limited <= other.limited


class Held(NamedTuple):
    """A lock that is ours, and the beat beside it, open for writing."""

    lock: FileLock
    place: Path
    beat: Path
    descriptor: int
    aim: Aim
    spoilt: bool


class Turn:
    """The right to read one file now; without a lock where nothing is shared."""

    def __init__(self, clock: Clock, held: Held | None = None) -> None:
        self._clock = clock
        self._held = held
        self._done = 0
        self._shown = float("-inf")
        if held:
            self.advance(0)

    @property
    def spoilt(self) -> bool:
        """The reader that we waited for came to its end: what it did not remember, nobody will. So nobody need wait."""
        return self._held is not None and self._held.spoilt

    def advance(self, count: int) -> None:
        """Show that bytes were read. What is read twice counts twice: it moves on all the same."""
        self._done += max(count, 0)
        now = self._clock.monotonic()
        if self._held and now - self._shown >= _PERIOD:
            self._shown = now
            with suppress(OSError):
                os.pwrite(self._held.descriptor, _BEAT.pack(self._done, *self._held.aim), 0)

    def end(self, *, finished: bool) -> None:
        """Let the next one have it. A reading that did not finish leaves its beat, as that of a dead process does."""
        held, self._held = self._held, None
        if held is None:
            return
        with suppress(OSError):
            os.close(held.descriptor)
            if finished:
                held.beat.unlink(missing_ok=True)
                held.place.unlink(missing_ok=True)  # still ours: who has it open will find that it is gone
        held.lock.release()


class Turns:
    """The turns of this user on this host. Safe for any number of threads, each with files of its own."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        #: Beats of turns that others held when we looked, and since when each stood still.
        self._watched: dict[Path, tuple[bytes, float]] = {}

    def claim(self, record: Path, aim: Aim) -> Turn | None:
        """The turn to read the file whose record lies there; None while another process is at it and gets on."""
        name = xxhash.xxh3_128_hexdigest(os.path.realpath(record).encode("utf-8", "surrogateescape"))
        with suppress(OSError):
            for number in range(_TURNS):
                place = self._folder / f"{name}.{number}"
                beat = self._folder / f"{name}.{number}.beat"
                lock = _try_lock(place)
                if lock is not None:
                    return Turn(self._clock, self._hold(lock, place, beat, aim))
                if self._gets_on(place, beat, aim):
                    return None
        return Turn(self._clock)

    def _hold(self, lock: FileLock, place: Path, beat: Path, aim: Aim) -> Held:
        spoilt = bool(self._watched.get(place, (b"", 0.0))[0]) and not beat.exists()
        try:
            descriptor = os.open(beat, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            lock.release()
            raise
        return Held(lock, place, beat, descriptor, aim, spoilt)

    def _gets_on(self, place: Path, beat: Path, aim: Aim) -> bool:
        """Whether the holder reads for what we want and has moved of late; one that shows nothing has just begun."""
        raw = b""
        with suppress(OSError):
            raw = beat.read_bytes()
        if len(raw) == _BEAT.size and not Aim(*_BEAT.unpack(raw)[1:]).serves(aim):
            return False
        now = self._clock.monotonic()
        seen, since = self._watched.get(place, (None, now))
        if raw != seen:
            since = now
        self._watched[place] = (raw, since)
        return now - since < STALLED


def _try_lock(place: Path) -> FileLock | None:
    from filelock import FileLock, Timeout

    lock = FileLock(str(place), mode=0o600, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    except NotImplementedError as error:  # a file system without flock
        raise OSError(str(error)) from error
    return lock


def open_turns(runtime_dir: str | None, file_systems: FileSystems, clock: Clock) -> Turns | None:
    """The turns in a folder of this host's and this user's own; None where there is no such place."""
    for folder in _folders(runtime_dir):
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            seen = folder.lstat()
            own = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & 0o077
            local = file_systems.of(os.path.realpath(folder / "_"), seen.st_dev).local
            if own and local and os.access(folder, os.W_OK):
                return Turns(folder, clock)
    return None


def _folders(runtime_dir: str | None) -> Iterator[Path]:
    if runtime_dir and Path(runtime_dir).is_absolute():
        yield Path(runtime_dir) / "ckpt-tui"
    from tempfile import gettempdir

    yield Path(gettempdir()) / f"ckpt-tui-{os.geteuid()}"
