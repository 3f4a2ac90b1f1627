"""stdout for the result alone: nothing that a library prints can come between."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress


class PrivateStdout:
    """A duplicate of fd 1, while fd 1 itself leads to stderr. For processes that end by `os._exit`."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._descriptor = os.dup(1)
        os.dup2(2, 1)

    def write(self, data: bytes) -> None:
        """The whole result at once, also where several processes share the pipe: they take turns."""
        with suppress(OSError):  # not everything can be locked
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        with suppress(OSError):
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
