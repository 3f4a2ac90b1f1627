"""Work that may take a while, beside the screen: in a thread that nobody waits for on leaving."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ..present.safe import error_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App

T = TypeVar("T")


def aside(app: App[int], work: Callable[[], T], then: Callable[[T | None, str], object]) -> None:
    """Do the work, then tell its result, or None and the error in words, in the screen's own thread."""

    def run() -> None:
        try:
            made, error = work(), ""
        except Exception as failed:  # noqa: BLE001 - whatever it is, it is said on the screen
            made, error = None, error_text(failed)
        with suppress(RuntimeError):  # the screen is gone
            app.call_from_thread(then, made, error)

    threading.Thread(target=run, name="aside", daemon=True).start()
