"""Waiting on conditions: the only kind of waiting that a test does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], object], seconds: float = 60, *, what: str = "") -> None:
    """Return once `condition()` is true; fail with what was waited for after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what or condition}"
        time.sleep(0.02)


def state_of(process: int) -> str:
    """Its letter in /proc: `T` is stopped, `Z` ended."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
