"""Calls into native code that may block for good, made in a thread of their own: the caller keeps its deadline."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: How often a waiting caller looks at what else may have happened, and the longest step between two looks that counts
#: in full: a process that was itself stopped for an hour has not waited that long for an answer.
LOOK, MAX_STEP = 0.1, 1.0


class NoAnswer(Exception):
    """The call had not returned at its deadline. Its thread may be blocked for good, and is not used again."""


def nothing() -> None:
    """Nothing to watch for while waiting."""


class Caller:
    """One thread that makes one call after the other. It is a daemon: a call that never returns keeps nobody here."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._stuck = False
        threading.Thread(target=self._serve, name=f"ckpt-tui {name}", daemon=True).start()

    def call(self, work: Callable[[], T], seconds: float, watch: Callable[[], None] = nothing) -> T:
        """What `work()` returns or raises; NoAnswer after `seconds`.

        `watch` is called about ten times a second while waiting; what it raises ends the wait, not the call.
        """
        future = self.submit(work)
        left = seconds
        looked = time.monotonic()
        while True:
            try:
                return future.result(max(min(left, LOOK), 0))
            except TimeoutError:
                if future.done():  # it was the call's own
                    raise
            watch()
            now = time.monotonic()
            left -= min(now - looked, MAX_STEP)
            looked = now
            if left <= 0:
                self._stuck = True
                raise NoAnswer

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Make the call without waiting for it. NoAnswer if an earlier one never returned."""
        if self._stuck:
            raise NoAnswer
        future: Future[T] = Future()
        self._jobs.put((work, future))
        return future

    def close(self) -> None:
        """Let the thread end once its present call has."""
        self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, future = job
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                future.set_exception(error)
            del work, future, job  # what a call returned must not live on in an idle thread
