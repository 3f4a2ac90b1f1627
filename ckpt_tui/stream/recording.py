"""Recordings: a stream's lines in a file, each with the time at which it came (`at`, seconds since the epoch).

A recording is the stream itself, and so is read by the same code. It holds a snapshot at least every 30 s, so that it
can be entered in the middle; and it may be cut at any byte.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from array import array
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from ..facts.outcome import CkptError, UsageError
from ..present import units
from ..present.safe import error_text, escape, is_all_safe
from .codec import MAX_LINE, BadLineError, decode
from .messages import PROTOCOL, Envelope, Hello, ResultPart, Snapshot

if TYPE_CHECKING:
    from ..facts.clock import Clock

#: Seconds after which a snapshot is asked for: well before the 30 s are over, for it has yet to come.
_ASK = 25.0
#: A line of a recording is a line of a stream and a time.
_MAX_LINE = MAX_LINE + 64
_HEAD = re.compile(rb'\{"at":(\d{1,12}\.\d{1,6}),"seq":\d+,"message":\{"type":"(\w{1,64})"(?:,"part":(\d+))?')


class Recorder:
    """Writes a recording. `take` is called by the one thread that reads the stream, `close` by any."""

    def __init__(self, path: str, clock: Clock, *, force: bool = False) -> None:
        """Make the file. UsageError where there is one already, unless `force`; CkptError where it cannot be made."""
        self._path = path
        self._clock = clock
        # Steps of the wall clock do not make a recording jump.
        self._offset = clock.time() - clock.monotonic()
        self._asked = clock.monotonic()
        self._lock = threading.Lock()
        self._bytes = 0
        #: Why the recording ends before the stream does.
        self.problem: str | None = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags | (os.O_TRUNC if force else os.O_EXCL), 0o666)
        except FileExistsError as error:
            raise UsageError(f"{escape(path)}: is there already; --force replaces it") from error
        except OSError as error:
            raise CkptError(f"{escape(path)}: could not be made: {error_text(error)}") from error
        os.set_blocking(descriptor, True)
        self._file = os.fdopen(descriptor, "wb", buffering=0)

    def take(self, line: bytes) -> str | None:
        """Keep a line. The first that cannot be kept is the end of the recording: what to say of that, once."""
        if self.problem is not None or not line.startswith(b'{"seq":'):
            return None
        at = self._offset + self._clock.monotonic()
        data = b'{"at":%.3f,' % at + line[1:]
        with self._lock:
            if self._file.closed:
                return None
            try:
                view = memoryview(data)
                while view:
                    view = view[self._file.write(view) or 0 :]
                self._bytes += len(data)
            except OSError as error:
                self._file.close()
                kept = units.size(self._bytes)
                self.problem = f"{escape(self._path)}: the recording ends after {kept}: {error_text(error)}"
        return self.problem

    def asks(self) -> bool:
        """Whether a snapshot should be asked for now; true once, and again when it is time for the next."""
        now = self._clock.monotonic()
        if self.problem is not None or now - self._asked < _ASK:
            return False
        self._asked = now
        return True

    def close(self) -> None:
        """Keep nothing more."""
        with self._lock, suppress(OSError):
            self._file.close()


class Recording:
    """A recording to read: its lines by number, when they came, and where it may be entered."""

    def __init__(self, path: str) -> None:
        """Look through the file. UsageError, in one line, for one that is no recording."""
        self._where = escape(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise UsageError(f"{self._where}: is no file")
            self._file: BinaryIO = os.fdopen(descriptor, "rb")
        except OSError as error:
            raise UsageError(f"{self._where}: could not be read: {error_text(error)}") from error
        self.hello = self._greeting()
        #: Offsets of the lines, when each came (never falling), and the numbers of those that begin a snapshot.
        self._offsets = array("q")
        self._times = array("d")
        self._entries = array("q")
        self._scan()

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def begin(self) -> float:
        """When the first line came."""
        return self._times[0]

    @property
    def end(self) -> float:
        """When the last line came."""
        return self._times[-1]

    def until(self, at: float) -> int:
        """How many lines had come by then."""
        return bisect_right(self._times, at)

    def entry(self, at: float) -> int:
        """The line from which all that was known then can be told: the last snapshot's, or the first line."""
        place = bisect_right(self._entries, max(self.until(at) - 1, 0))
        return self._entries[place - 1] if place else 0

    def read(self, number: int) -> Envelope | None:
        """A line's message; None for one that cannot be read, or holds text that may not be shown."""
        self._file.seek(self._offsets[number])
        return self._decode(self._file.readline(_MAX_LINE))

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def _greeting(self) -> Hello:
        """The first line, which has to be a hello of this protocol."""
        line = self._file.readline(_MAX_LINE)
        greeting = self._decode(line) if _HEAD.match(line) else None
        if greeting is None or not isinstance(greeting.message, Hello):
            raise UsageError(f"{self._where}: is no recording of ckpt-tui")
        if greeting.message.protocol != PROTOCOL:
            raise UsageError(
                f"{self._where}: {greeting.message.tool} recorded this in protocol {greeting.message.protocol}; "
                f"this version reads protocol {PROTOCOL}"
            )
        return greeting.message

    def _scan(self) -> None:
        self._file.seek(0)
        offset, latest = 0, 0.0
        while line := self._file.readline(_MAX_LINE):
            match = _HEAD.match(line) if line.endswith(b"\n") else None
            if match is not None:
                latest = max(latest, float(match[1]))
                if match[2] == b"snapshot" and match[3] == b"0":
                    self._entries.append(len(self._offsets))
                self._offsets.append(offset)
                self._times.append(latest)
            offset += len(line)

    def _decode(self, line: bytes) -> Envelope | None:
        try:
            envelope = decode(line)
        except BadLineError:
            return None
        match envelope.message:
            case ResultPart():
                return envelope  # whether it may be shown is told when the result is whole
            case Snapshot(rows=rows):
                return envelope if is_all_safe(tuple(row for row in rows if not isinstance(row, ResultPart))) else None
            case message:
                return envelope if is_all_safe(message) else None
