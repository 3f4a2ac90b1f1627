"""Where events come from: a child process, or memory. Nothing in here knows a screen.

A child is started before textual is imported, so that it hashes while the first frame is made.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Protocol

from ..present import safe
from ..stream.codec import MAX_LINE, BadLineError, decode, encode_command
from ..stream.messages import Command, Envelope, Level, LogLine, Quit, Resync
from ..stream.state import Ended, Event

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..stream.messages import Message
    from ..stream.recording import Recorder

#: How long a child may take to leave: after `quit`, after SIGTERM, after SIGKILL.
_GRACE = (1.0, 0.5, 1.0)
#: Bytes of native output read at once, and characters of it in one line of the log.
_NATIVE_BYTES, _NATIVE_CHARS = 64 * 1024, 2000
#: The number of a log line that no native line will ever have.
_RECORDING_ENDED = -(1 << 60)


class Source(Protocol):
    """Whatever a screen can watch."""

    def drain(self) -> list[Event]:
        """What has come since the last call; never waits."""

    def send(self, command: Command) -> None:
        """Tell a wish; its answer arrives as events."""

    def close(self) -> None:
        """End whatever is behind it, in two seconds at most."""


class Inbox:
    """Events from one thread to another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: deque[Event] = deque()

    def put(self, event: Event) -> None:
        """Add one."""
        with self._lock:
            self._events.append(event)

    def take(self) -> list[Event]:
        """All of them."""
        with self._lock:
            events = list(self._events)
            self._events.clear()
        return events


class ChildSource:
    """A worker process: events from its stdout, commands to its stdin, its native output into the log."""

    def __init__(self, argv: Sequence[str], *, recorder: Recorder | None = None) -> None:
        """Start `argv`. `recorder` keeps every message, and is asked for nothing but lines."""
        self._inbox = Inbox()
        self._recorder = recorder
        self._sending = threading.Lock()
        self._native = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self._native_at = 0
        self._native_rest = b""
        self._native_number = 0
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._native,
            start_new_session=True,
        )
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout,), name="worker's messages", daemon=True
        )
        self._reader.start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def drain(self) -> list[Event]:
        """Messages, then the lines of native output; the end comes last."""
        events = self._inbox.take()
        lines = self._native_lines()
        if events and isinstance(events[-1], Ended):
            return [*events[:-1], *lines, events[-1]]
        return [*events, *lines]

    def send(self, command: Command) -> None:
        """Write a command; a child that is gone does not hear it."""
        stdin = self._process.stdin
        if stdin is not None:
            with self._sending, suppress(OSError, ValueError):
                stdin.write(encode_command(command))
                stdin.flush()

    def close(self) -> None:
        """Leave: `quit`, then the end of its stdin with SIGTERM, then SIGKILL for its whole process group."""
        process = self._process
        self.send(Quit())
        if not self._gone(_GRACE[0]):
            with suppress(OSError):
                process.terminate()
            if not self._gone(_GRACE[1]):
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                self._gone(_GRACE[2])
        for pipe in (process.stdin, process.stdout if not self._reader.is_alive() else None):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._native.close()

    def _gone(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            self._reader.join(seconds)
            return True
        return False

    def _read(self, stdout: BinaryIO) -> None:
        with suppress(OSError, ValueError):  # closed under us: we are leaving
            while line := stdout.readline(MAX_LINE + 1):
                if len(line) > MAX_LINE:
                    while line and not line.endswith(b"\n"):
                        line = stdout.readline(MAX_LINE)
                    self._inbox.put(None)
                    continue
                self._inbox.put(_event(line))
                if self._recorder is not None:
                    self._record(self._recorder, line)
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(5.0)
        self._inbox.put(Ended(code))

    def _record(self, recorder: Recorder, line: bytes) -> None:
        problem = recorder.take(line)
        if problem is not None:
            self._inbox.put(LogLine(number=_RECORDING_ENDED, at=time.time(), level=Level.WARNING, text=problem))
        if recorder.asks():
            self.send(Resync())

    def _native_lines(self) -> list[Event]:
        try:
            new = os.pread(self._native.fileno(), _NATIVE_BYTES, self._native_at)
        except (OSError, ValueError):
            return []
        self._native_at += len(new)
        *whole, self._native_rest = (self._native_rest + new).split(b"\n")
        made: list[Event] = []
        for raw in whole:
            self._native_number -= 1
            text = safe.from_bytes(raw.rstrip(b"\r"))[:_NATIVE_CHARS]
            if text:
                made.append(LogLine(number=self._native_number, at=time.time(), level=Level.NATIVE, text=text))
        return made


def _event(line: bytes) -> Event:
    try:
        return decode(line)
    except BadLineError:
        return None


class MemorySource:
    """Events that somebody puts in: a saved result, or a test; remembers the commands it was sent."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._inbox = Inbox()
        self._seq = 0
        self.commands: list[Command] = []
        self.closed = False
        self.feed(*messages)

    def feed(self, *messages: Message) -> None:
        """Add messages, numbered as a worker would."""
        for message in messages:
            self._seq += 1
            self._inbox.put(Envelope(self._seq, message))

    def put(self, event: Event) -> None:
        """Add an event that is no message: an unreadable line, the end."""
        self._inbox.put(event)

    def drain(self) -> list[Event]:
        """What was put in."""
        return self._inbox.take()

    def send(self, command: Command) -> None:
        """Remember the command."""
        self.commands.append(command)

    def close(self) -> None:
        """Nothing is behind it."""
        self.closed = True
