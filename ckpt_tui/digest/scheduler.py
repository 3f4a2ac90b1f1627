"""Threads over files, the longest first; those that find none left help with the files of the others."""

from __future__ import annotations

import os
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from .buffers import new_buffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .control import Control
    from .crew import Task

#: How long a scan that was told to stop waits for threads that hang in a read (a dead server), in seconds.
_GRACE = 1.0
#: How often the wish to stop is looked at.
_POLL = 0.1
#: How long a thread pauses when every file that is left is being read by other processes.
_PAUSE = 0.02
#: No thread is started for less than this many bytes, unless it has a file of its own.
_HELPED = 8 << 20


class Job(NamedTuple):
    """Work on one file: its bytes to read, and what to do with a thread's buffer.

    `run` returns True where the file has to wait, because another process is reading it: the others go first.
    """

    size: int
    run: Callable[[memoryview], bool]


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def default_threads(abreast: int) -> int:
    """How many files to read at once where `abreast` of them keep a core busy; at most 8."""
    return min(cores() * abreast, 8)


def run_longest_first(jobs: Iterable[Job], threads: int, control: Control) -> None:
    """Run all jobs; raises what the first that failed raised, after all threads have stopped.

    The threads are daemons: one that hangs in the kernel cannot keep the process alive.
    """
    shift = _Shift(sorted(jobs, key=lambda job: job.size, reverse=True), control)
    running = shift.useful(threads)
    for number in range(running):
        threading.Thread(target=shift.work, name=f"hash-{number}", daemon=True).start()
    failure: BaseException | None = None
    grace = round(_GRACE / _POLL)
    try:
        while running and grace:
            try:
                error = shift.ended.get(timeout=_POLL)
            except Empty:
                grace -= control.cancelled
                continue
            running -= 1
            failure = failure or error
    except BaseException:  # KeyboardInterrupt, where nobody handles the signal
        control.cancel()
        raise
    if failure is not None:
        raise failure
    control.check()


class _Shift:
    """The jobs that are left, and what each thread does until none is."""

    def __init__(self, jobs: Sequence[Job], control: Control) -> None:
        self._pending = deque(jobs)
        self._control = control
        self._changed = control.crew.changed
        self._busy = 0  # threads with a job of their own
        self._put_off = 0  # jobs, in a row
        #: One entry for each thread that ended: what it failed with, or None.
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def useful(self, threads: int) -> int:
        """How many of so many threads have something to do."""
        return min(threads, max(len(self._pending), sum(job.size for job in self._pending) // _HELPED))

    def work(self) -> None:
        """What each thread does."""
        try:
            buffer = new_buffer(rooms=2)
            while chosen := self._choose():
                if isinstance(chosen, Job):
                    self._run(chosen, buffer)
                else:
                    self._control.crew.help(chosen, buffer)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._control.cancel()
            self.ended.put(error)
        else:
            self.ended.put(None)
        finally:
            with self._changed:  # for those that wait in `_choose`
                self._changed.notify_all()

    def _choose(self) -> Job | Task | None:
        """The next job, or else a task of another thread; None when there is nothing left to wait for."""
        with self._changed:
            while not self._control.cancelled:
                if self._pending:
                    self._busy += 1
                    return self._pending.popleft()
                if task := self._control.crew.join():
                    return task
                if not self._busy:
                    break
                self._changed.wait()
        return None

    def _run(self, job: Job, buffer: memoryview) -> None:
        again = pause = False
        try:
            again = job.run(buffer)
        finally:
            with self._changed:
                self._busy -= 1
                self._put_off = self._put_off + 1 if again else 0
                if again:
                    self._pending.append(job)
                    pause = self._put_off >= len(self._pending)
                if pause:
                    self._put_off = 0
                self._changed.notify_all()
        if pause:
            self._control.pause(_PAUSE)
