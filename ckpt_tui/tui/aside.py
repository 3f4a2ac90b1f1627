"""Work that may take a while, beside the screen: in a thread that ends with the process, done or not."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from ..present.safe import error_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App

T = TypeVar("T")


class Aside(Generic[T]):
    """What became of the work, for whoever outlives the screen: `done` is set when it is known."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.made: T | None = None
        self.error = ""


def aside(app: App[int], work: Callable[[], T], then: Callable[[T | None, str], object]) -> Aside[T]:
    """Do the work, then tell its result, or None and the error in words, in the screen's own thread."""
    told = Aside[T]()

    def run() -> None:
        try:
            told.made = work()
        except Exception as failed:  # noqa: BLE001 - whatever it is, it is said on the screen
            told.error = error_text(failed)
        told.done.set()
        with suppress(RuntimeError):  # the screen is going
            if app.is_running:
                app.call_from_thread(then, told.made, told.error)

    threading.Thread(target=run, name="aside", daemon=True).start()
    return told
