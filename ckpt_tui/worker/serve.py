"""The worker process: runs a job in a thread, publishes what can be seen of it, obeys commands, says goodbye."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from ..facts.outcome import Exit
from ..facts.version import TOOL
from ..present.safe import unexpected
from ..stream.codec import decode_command
from ..stream.messages import (
    PROTOCOL,
    Again,
    Bye,
    Descend,
    Hello,
    Inventory,
    Level,
    Mode,
    Pause,
    Quit,
    Release,
    Resync,
    Watch,
)
from ..stream.outbox import Outbox
from .lifetime import claim_stdin, claim_stdout, die_with_parent, give_way, write_all
from .post import Answering, Post, Reading, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts.clock import Clock
    from ..stream.messages import Command
    from .post import Job

#: Seconds between two looks at the counters, and between two beats; how long others may take to be let go on a quit,
#: less than a screen waits for its worker.
_LOOK, _BEAT, _LET_GO = 0.1, 1.0, 0.8


def serve(make: Callable[[], Job], clock: Clock, *, mode: Mode) -> NoReturn:
    """Do the job that `make` makes, and end this process with its code.

    The hello is out before the job is made, so that the screen knows of us while modules are still imported.
    """
    descriptor = claim_stdout()
    commands = claim_stdin()
    die_with_parent()
    give_way()
    hello = Hello(protocol=PROTOCOL, tool=TOOL, mode=mode, pid=os.getpid())
    outbox = Outbox(partial(write_all, descriptor), hello)
    outbox.start()
    worker = _Worker(Post(outbox, clock), clock)
    threading.Thread(target=worker.obey, args=(commands,), name="commands", daemon=True).start()
    # Gloo and hashing threads may not hold the process up: the code is ours to say.
    code = int(Exit.UNDECIDED)
    try:
        code = worker.run(make)
    except Exception as error:  # noqa: BLE001 - what cannot be published is said at least
        outbox.close(Bye(code=code, reason=unexpected(error)))
    os._exit(code)


class _Worker:
    """One job and its commands."""

    def __init__(self, post: Post, clock: Clock) -> None:
        self._post = post
        self._clock = clock
        self._job: Job | None = None
        self._error: BaseException | None = None
        self._quit = threading.Event()

    def obey(self, commands: BinaryIO) -> None:
        """Read commands until their end, which is our parent's end, and ours."""
        for line in commands:
            match decode_command(line):
                case Quit():
                    self._quit.set()
                    if self._job is not None:
                        self._job.cancel()
                case Resync():
                    self._post.outbox.resync()
                case None:
                    self._post.log(Level.WARNING, "a command that is not known was skipped")
                case command:
                    self._hand_over(command)
        os._exit(Exit.INTERRUPTED)

    def _hand_over(self, command: Command) -> None:
        """Commands for the job, if it is of a kind that can do them."""
        job: object = self._job
        match command:
            case Watch(rank=rank) if self._job is not None:
                self._job.watch(rank)
            case Pause(on=on) if isinstance(job, Reading):
                job.pause(on)
            case Again() if isinstance(job, Reading):
                job.again()
            case Inventory() if isinstance(job, Reading):
                job.inventory()
            case Descend(place=place) if isinstance(job, Answering):
                job.descend(place)
            case Release() if isinstance(job, Answering):
                job.release()
            case _:
                return

    def run(self, make: Callable[[], Job]) -> int:
        """The exit code, when all is said."""
        thread = threading.Thread(target=self._work, args=(make,), name="job", daemon=True)
        thread.start()
        beaten = float("-inf")
        while thread.is_alive():
            now = self._clock.monotonic()
            if now - beaten >= _BEAT:
                beaten = now
                self._post.outbox.beat(self._clock.time())
            if self._job is not None:
                self._job.publish(self._post)
                # The verdict is out: whoever has seen it need not wait for what the other ranks still do.
                if self._quit.is_set() and self._job.code() is not None:
                    if (asked := self._asked()) is not None and asked.held():
                        thread.join(_LET_GO)
                    break
            thread.join(_LOOK)
        code, reason = self._end()
        self._post.outbox.close(Bye(code=code, reason=reason))
        return code

    def _asked(self) -> Answering | None:
        """The job, if it is one that may be asked."""
        job: object = self._job
        return job if isinstance(job, Answering) else None

    def _work(self, make: Callable[[], Job]) -> None:
        try:
            self._job = make()
            if self._quit.is_set():
                self._job.cancel()
            self._job.work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is said on the screen
            self._error = error

    def _end(self) -> tuple[int, str]:
        code = self._job.code() if self._job is not None else None
        if self._job is not None:
            self._job.publish(self._post)
        if self._error is None:
            return Exit.UNDECIDED if code is None else code, ""
        ended, reason = reason_of(self._error)
        self._post.log(Level.INFO if ended == Exit.INTERRUPTED else Level.ERROR, reason)
        # A verdict that stands is not taken back by what failed after it.
        return (ended, reason) if code is None else (code, "")
