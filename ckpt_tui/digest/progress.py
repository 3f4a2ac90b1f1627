"""How far a scan is: counters that hashing threads write and anybody reads, from any thread, without a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.files import BROKEN_STATES, UNDECIDED_STATES, Role, Source
from ..facts.status import Cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts.files import FileResult


class FileProgress:
    """One file. Only the thread that reads it writes, so that a reader sees each field old or new, never torn."""

    __slots__ = ("cell", "done", "finished", "name", "read", "result", "role", "size", "started")

    def __init__(self, name: str, role: Role, size: int) -> None:
        self.name = name
        self.role = role
        self.size = size
        #: Bytes hashed so far, or spared by the cache.
        self.done = 0
        #: Bytes read so far, those that were read twice counted twice.
        self.read = 0
        self.cell = Cell.WAITING
        #: Monotonic seconds at which reading began, and at which the result was known.
        self.started: float | None = None
        self.finished: float | None = None
        self.result: FileResult | None = None

    def advance(self, count: int) -> None:
        """Count bytes that were hashed; negative where they are to be read again."""
        self.done += count
        self.read += max(count, 0)

    def start(self, now: float) -> None:
        """Reading begins, for the first time or anew."""
        self.done, self.result, self.finished = 0, None, None
        self.started = now
        self.cell = Cell.READING

    def finish(self, result: FileResult, now: float, *, shared: bool = False) -> None:
        """The result is known; `shared`: by the reading of another process of this host."""
        self.result = result
        self.cell = cell_of(result, shared=shared)
        if result.digest is not None:
            self.done = self.size
        self.finished = now


def cell_of(result: FileResult, *, shared: bool = False) -> Cell:
    """A file's result as one character."""
    if result.state in UNDECIDED_STATES:
        return Cell.UNREADABLE
    if result.state in BROKEN_STATES:
        return Cell.BAD
    if shared:
        return Cell.SHARED
    return Cell.CACHED if result.source is Source.CACHE else Cell.READ


class ScanProgress:
    """All files of a scan, in order of name bytes. Empty until the survey has found them."""

    def __init__(self) -> None:
        self.files: tuple[FileProgress, ...] = ()
        self.threads = 0
        #: Whether reading rests because somebody wished so.
        self.paused = False
        #: Monotonic seconds at which hashing began and ended.
        self.started: float | None = None
        self.finished: float | None = None

    def _sum(self, count: Callable[[FileProgress], int]) -> int:
        return sum(map(count, self.files))

    @property
    def bytes_total(self) -> int:
        """Bytes of all files."""
        return self._sum(lambda file: file.size)

    @property
    def bytes_done(self) -> int:
        """Bytes that were hashed or spared, and those of files that nothing more will be read of."""
        return self._sum(lambda file: file.done if file.finished is None else file.size)

    @property
    def bytes_cached(self) -> int:
        """Bytes that the cache spared."""
        return self._sum(lambda file: file.size if _cached(file) else 0)

    @property
    def bytes_read(self) -> int:
        """Bytes that were read to be hashed."""
        return self._sum(lambda file: file.read)

    @property
    def files_total(self) -> int:
        """Number of files."""
        return len(self.files)

    @property
    def files_done(self) -> int:
        """Files whose result is known."""
        return self._sum(lambda file: file.finished is not None)

    @property
    def files_cached(self) -> int:
        """Files whose digests came from the cache."""
        return self._sum(_cached)


def _cached(file: FileProgress) -> bool:
    return file.result is not None and file.result.source is Source.CACHE
