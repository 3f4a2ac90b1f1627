"""The hashing threads of a scan as a crew: who has no file of its own lends a hand with another's."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Task:
    """What others may help with: `step` is called over and over, by each helper with its own buffer, while it is true.

    At most `most` threads help at once.
    """

    __slots__ = ("closed", "error", "helpers", "most", "step")

    def __init__(self, step: Callable[[memoryview], bool], most: int) -> None:
        self.step = step
        self.most = most
        self.helpers = 0
        self.closed = False
        self.error: BaseException | None = None

    @property
    def room(self) -> bool:
        """Whether one more may help."""
        return not self.closed and self.helpers < self.most


class Crew:
    """Open tasks, and who helps with which. All under one condition, which is looked at once a task and not a block."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._open: list[Task] = []

    @contextmanager
    def helped(self, step: Callable[[memoryview], bool], most: int) -> Iterator[None]:
        """Idle threads help with `step` while the block lasts; it ends when all of them are done.

        What fails in one of them is raised here, and what fails here ends their help.
        """
        task = Task(step, most)
        with self.changed:
            self._open.append(task)
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                task.closed = True
                self._open.remove(task)
                while task.helpers:
                    self.changed.wait()
        if task.error is not None:
            raise task.error

    def join(self) -> Task | None:
        """The open task with the fewest helpers, with this thread as one more; to be called under `changed`."""
        task = min((task for task in self._open if task.room), key=lambda task: task.helpers, default=None)
        if task is not None:
            task.helpers += 1
        return task

    def help(self, task: Task, buffer: memoryview) -> None:
        """Help with a task that was joined, to its end."""
        try:
            while not task.closed and task.step(buffer):
                pass
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that has the task
            task.error = task.error or error
        finally:
            with self.changed:
                task.closed = True  # there is no step left, or no use in one
                task.helpers -= 1
                self.changed.notify_all()
