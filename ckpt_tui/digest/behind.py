"""Giving back the memory in which the kernel keeps what was read of a file, while it is still being read."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

#: Pages are let go so many bytes at a time: one call costs little beside reading them.
CHUNK = 16 << 20
#: So much is gone over again: pages lie in folios of up to 2 MiB, and one goes only as a whole.
_AGAIN = 4 << 20


class Behind:
    """Follows the reading of an open file. Pages stay where somebody has them mapped, or dirty.

    Only advice: where the order of reading was not that of the file, or the kernel takes none, bytes are read from
    the disk twice, or stay until the end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._read = 0
        self._gone = 0

    def advance(self, count: int) -> None:
        """Take note of bytes that were read; may be called by several threads."""
        with self._lock:
            self._read += count
            begin, end = max(self._gone - _AGAIN, 0), self._read
            if end - self._gone < CHUNK:
                return
            self._gone = end
        self._drop(begin, end - begin)

    def end(self) -> None:
        """The reading has ended, in whatever way."""
        self._drop(0, 0)

    def _drop(self, offset: int, length: int) -> None:
        with suppress(OSError):
            os.posix_fadvise(self._descriptor, offset, length, os.POSIX_FADV_DONTNEED)
