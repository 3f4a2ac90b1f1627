"""Threads over files, the longest first."""

from __future__ import annotations

import os
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from .reader import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .control import Control

#: How long a scan that was told to stop waits for threads that hang in a read (a dead server), in seconds.
_GRACE = 1.0
#: How often the wish to stop is looked at.
_POLL = 0.1
#: How long a thread pauses when every file that is left is being read by other processes.
_PAUSE = 0.02


class Job(NamedTuple):
    """Work on one file: its bytes to read, and what to do with a thread's buffer.

    `run` returns True where the file has to wait, because another process is reading it: the others go first.
    """

    size: int
    run: Callable[[memoryview], bool]


def default_threads() -> int:
    """The cores that this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)), 8)


def run_longest_first(jobs: Iterable[Job], threads: int, control: Control) -> None:
    """Run all jobs; raises what the first that failed raised, after all threads have stopped.

    The threads are daemons: one that hangs in the kernel cannot keep the process alive.
    """
    pending = deque(sorted(jobs, key=lambda job: job.size, reverse=True))
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    put_off = 0  # in a row

    def work() -> None:
        nonlocal put_off
        buffer = memoryview(bytearray(BLOCK))
        try:
            while not control.cancelled:
                try:
                    job = pending.popleft()
                except IndexError:
                    break
                if not job.run(buffer):
                    put_off = 0
                    continue
                pending.append(job)
                put_off += 1
                if put_off >= len(pending):
                    put_off = 0
                    control.pause(_PAUSE)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            ended.put(error)
            control.cancel()
        else:
            ended.put(None)

    running = min(threads, len(pending))
    for number in range(running):
        threading.Thread(target=work, name=f"hash-{number}", daemon=True).start()
    failure: BaseException | None = None
    grace = round(_GRACE / _POLL)
    try:
        while running and grace:
            try:
                error = ended.get(timeout=_POLL)
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
