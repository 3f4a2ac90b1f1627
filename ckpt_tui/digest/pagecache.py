"""Reading past the page cache, and telling whether that came true.

Two ways: direct I/O, where the file system can; else the kernel is asked to let the file's pages go. Neither is taken
at its word. Some file systems accept direct I/O and answer from memory all the same: that shows in pages that were not
there before. And pages that somebody has mapped do not go.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from .passes import Moved

if TYPE_CHECKING:
    from .filesystem import FileSystem

_PAGE = mmap.PAGESIZE
#: Mapped at a time to look at its pages.
_WINDOW = 1 << 30
#: File systems on which direct I/O reads the disk whatever the page cache holds.
_DIRECT = frozenset({"ext4", "xfs"})
#: File systems whose every other way to the bytes is the page cache of this machine.
_CACHED = _DIRECT | {"ext2", "ext3", "btrfs", "f2fs", "bcachefs", "overlay", "nfs", "nfs4", "vfat", "exfat"}


class PastCache:
    """A stretch of an open file that is read past the page cache, as far as that is possible."""

    def __init__(self, descriptor: int, end: int, file_system: FileSystem, *, start: int = 0) -> None:
        self._descriptor = descriptor
        self._start, self._end = start - start % _PAGE, end
        self._type = file_system.type
        self._direct = self._go_direct()
        if not (self._direct and self._type in _DIRECT):
            _drop(descriptor, self._start, end)
        self._before = resident(descriptor, end, self._start)

    def fetch(self, offset: int, length: int, buffer: memoryview) -> memoryview:
        """The bytes at an offset; `buffer` is page-aligned and holds a page more. `Moved` where they end early."""
        start = offset - offset % _PAGE
        wanted = offset + length - start
        done = 0
        while done < wanted:
            # Whole pages: what direct I/O asks for. A short answer that ends within a page is the file's end.
            room = buffer[done : -(-wanted // _PAGE) * _PAGE]
            count = os.preadv(self._descriptor, [room], start + done)
            done += count
            if not count or (done % _PAGE and done < wanted):
                raise Moved("size")
        return buffer[offset - start : wanted]

    def doubt(self) -> str | None:
        """After reading: why it is not proven that the bytes came from the disk; None where it is."""
        if self._type not in _CACHED:
            return f"{self._type} may answer from memory of its own"
        if self._before is None:
            return "the kernel does not tell which pages it holds"
        if self._direct:
            after = resident(self._descriptor, self._end, self._start)
            if after is None or after > self._before:
                return "direct I/O went through the page cache"
            if self._type in _DIRECT:
                return None
        return "pages stayed in the page cache" if self._before else None

    def _go_direct(self) -> bool:
        try:
            flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
        except OSError:
            return False
        try:
            with mmap.mmap(-1, _PAGE) as page:
                os.preadv(self._descriptor, [page], 0)
        except OSError:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags)
            return False
        return True


def _drop(descriptor: int, start: int, end: int) -> None:
    """Ask the kernel to let pages of a file go; dirty ones must be written first."""
    with suppress(OSError):
        os.fsync(descriptor)
    with suppress(OSError):
        # It lets go of whole pages alone.
        os.posix_fadvise(descriptor, start, -(-(end - start) // _PAGE) * _PAGE, os.POSIX_FADV_DONTNEED)


def resident(descriptor: int, end: int, start: int = 0) -> int | None:
    """How many pages of a file the page cache holds, `start` at a page's; None where the kernel does not say.

    To those who may not write the file it says that all are there. Nothing is read: no page of the mapping is touched.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    pages = 0
    for offset in range(start, end, _WINDOW):
        length = min(_WINDOW, end - offset)
        address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, offset)
        if address in {None, ctypes.c_void_p(-1).value}:
            return None
        try:
            held = ctypes.create_string_buffer(-(-length // _PAGE))
            if libc.mincore(address, length, held):
                return None
            pages += sum(byte & 1 for byte in held.raw)
        finally:
            libc.munmap(address, length)
    return pages
