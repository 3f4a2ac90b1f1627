"""Looking at a path without being hurt by it: stat before open, nothing but regular files opened, links told apart.

A FIFO would block an open for good, a device would act on it, and a symlink may lead anywhere. So everything is
looked at by name first, and what is opened is opened without blocking and asked again what it is.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from ..facts.files import State
from ..present.safe import error_text, escape

if TYPE_CHECKING:
    from pathlib import Path

#: What a stat answers where there is nothing.
NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
#: Read at one go; memory is taken for no more than this before the bytes are there.
_CHUNK = 4 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Look(NamedTuple):
    """What a path is, without opening it. `state` is `good` for a regular file that may be opened."""

    state: State
    size: int = 0
    error: str | None = None
    #: Where it really lies, links resolved; None unless it is a regular file.
    real: str | None = None


class RealPaths:
    """Where paths really lie, links followed. For the while of one scan: what leads to a folder is followed once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: Path, *, link: bool | None = None) -> str:
        """As `os.path.realpath`; `link`, where it is known whether the path itself is one."""
        folder, name = os.path.split(path)
        if name in {"", ".", ".."}:
            return os.path.realpath(path)
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = os.path.realpath(folder)
        place = f"{real.rstrip('/')}/{name}"
        if link is None:
            link = os.path.islink(place)  # noqa: PTH114 - a string, many times
        return os.path.realpath(place) if link else place


def look(path: Path, real_paths: RealPaths | None = None) -> Look:
    """Stat a path and say what keeps it from being read, if anything."""
    link = False
    try:
        found = path.lstat()
        link = stat.S_ISLNK(found.st_mode)
        if link:
            found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return Look(State.OUTSIDE, error=f"not a regular file: {_kind(found.st_mode)}")
        return Look(State.GOOD, found.st_size, real=(real_paths or RealPaths()).of(path, link=link))
    except OSError as error:
        return _refused(path, error, link=link)


def _refused(path: Path, error: OSError, *, link: bool) -> Look:
    if error.errno == errno.ELOOP:
        return Look(State.BROKEN_LINK, error="too many levels of symbolic links")
    if error.errno in NOT_THERE:
        if link:
            return Look(State.BROKEN_LINK, error=f"a link to nothing: {escape(_target(path))}")
        return Look(State.MISSING, error="not there" if error.errno == errno.ENOENT else error_text(error))
    return Look(State.UNREADABLE, error=denied(path, error))


def denied(path: Path, error: OSError) -> str:
    """An error with the mode and owner of what refused: the path itself, or the nearest folder that can be asked."""
    for place in (path, *path.parents):
        try:
            found = place.stat()
        except OSError:
            continue
        who = "" if place == path else f" of {escape(str(place))}"
        return f"{error_text(error)} (mode {stat.S_IMODE(found.st_mode):04o}, owner {found.st_uid}{who})"
    return error_text(error)


def _kind(mode: int) -> str:
    return next((words for test, words in _KINDS if test(mode)), "of an unknown kind")


def _target(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return "?"


def open_regular(path: Path) -> int:
    """A descriptor for reading a regular file; OSError otherwise. Never blocks on a FIFO put there meanwhile."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise OSError(f"not a regular file: {_kind(mode)}")
    return fd


def read_up_to(fd: int, length: int, offset: int = 0) -> bytes:
    """The bytes at an offset, fewer where the file ends; memory grows with what is there, not with what is asked."""
    first = os.pread(fd, min(_CHUNK, length), offset)
    if len(first) == length or not first:
        return first
    parts = bytearray(first)
    while length > len(parts):
        part = os.pread(fd, min(_CHUNK, length - len(parts)), offset + len(parts))
        if not part:
            break
        parts += part
    return bytes(parts)


def read_file(path: Path, limit: int) -> bytes:
    """A whole small file; OSError (EFBIG) where it is larger than the limit."""
    fd = open_regular(path)
    try:
        raw = read_up_to(fd, limit + 1)
    finally:
        os.close(fd)
    if len(raw) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return raw
