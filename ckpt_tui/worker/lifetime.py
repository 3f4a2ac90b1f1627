"""What makes a process a good child: its messages stay clean, it gives way to the screen, it ends with its parent."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1
_NICE = 10


def claim_stdout() -> int:
    """A private duplicate of fd 1 for messages, while fd 1 itself leads to stderr: no stray print breaks the stream."""
    sys.stdout.flush()
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor


def claim_stdin() -> BinaryIO:
    """Commands from a private duplicate of fd 0, while fd 0 itself is empty: nothing that we start eats a command."""
    commands = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 (a descriptor is what is wanted)
        os.dup2(nothing.fileno(), 0)
    return commands


def write_all(descriptor: int, data: bytes) -> None:
    """Every byte, however often the pipe takes only some."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def give_way() -> None:
    """A lower priority than the screen's."""
    with suppress(OSError):
        os.nice(_NICE)


def die_with_parent() -> None:
    """On Linux the kernel ends us when our parent ends. Elsewhere, and before this call, the end of stdin tells us."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
