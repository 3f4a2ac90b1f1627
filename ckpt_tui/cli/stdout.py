"""stdout carries the result alone, whole and at once."""

from __future__ import annotations

import sys
from contextlib import suppress

from ..worker.lifetime import write_all


def emit(data: bytes) -> None:
    """The result, past Python's buffers. A reader that wants no more of it does not change what was found."""
    sys.stdout.flush()
    with suppress(BrokenPipeError):
        write_all(sys.stdout.fileno(), data)
