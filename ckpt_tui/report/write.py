"""The one module that writes results to files: whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from ..facts.outcome import CkptError, UsageError
from ..present.safe import error_text, escape

#: A mount point, or a folder in which nothing may be made.
_FIXED = frozenset({errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS})


def write(path: str | os.PathLike[str], data: bytes, *, force: bool = False) -> None:
    """Write a new file; one that is there is replaced only with `force`. Raises CkptError where it cannot be done.

    The bytes are on disk before the name is: whoever finds the file finds all of it. With `force` a link is followed,
    and a device or pipe is written to, never replaced: `/dev/stdout` stays what it is. So is a file in whose place no
    other can be put, as a container's `/dev/termination-log` is: that alone may be left half-written.
    """
    target = Path(path)
    try:
        if force and _is_special(target):
            _pour(target, data)
            return
        if force:
            target = target.resolve()
        try:
            _put(target, data, force=force)
        except OSError as error:
            if not (force and error.errno in _FIXED and target.exists()):
                raise
            _pour(target, data)
    except FileExistsError as error:
        raise UsageError(f"{escape(str(target))}: is there already, and is not replaced") from error
    except OSError as error:
        raise CkptError(f"{escape(str(target))}: could not be written: {error_text(error)}") from error


def _put(target: Path, data: bytes, *, force: bool) -> None:
    part = target.with_name(f".ckpt-tui-{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if force:
            part.replace(target)
        else:
            _name_it(part, target)
        _sync_folder(target.parent)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _is_special(target: Path) -> bool:
    """Whether there is something that is neither a file nor nothing."""
    try:
        return not stat.S_ISREG(target.stat().st_mode)
    except FileNotFoundError:
        return False


def _pour(target: Path, data: bytes) -> None:
    """Write to what is there. A pipe that nobody reads is an error, and nothing to wait for."""
    descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_TRUNC)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def _name_it(part: Path, target: Path) -> None:
    """Give the file its name unless somebody has it; by a link, so that no moment lies between look and deed."""
    try:
        target.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links.
        if target.exists() or target.is_symlink():
            raise FileExistsError(target) from None
        part.replace(target)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
