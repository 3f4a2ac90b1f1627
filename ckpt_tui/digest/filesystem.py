"""Which file system a file lies on, and what its timestamps are worth."""

from __future__ import annotations

import fcntl
import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..present.safe import escape

#: Local file systems whose ctime moves with every write.
_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "overlay", "tmpfs"})
#: File systems of other machines whose ctime does so as well.
_REMOTE = frozenset({"nfs", "nfs4", "lustre"})
#: File systems that several hosts see under one source, as in `server:/export`.
_SHARED = _REMOTE | {
    "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.juicefs", "fuse.sshfs", "gfs2", "glusterfs",
    "gpfs", "ocfs2", "panfs", "pvfs2", "smb3", "wekafs",
}  # fmt: skip
#: Sources that name a file system by themselves: a path, a URL, `host:/export`.
_NAMING = re.compile(r"[/:@]")
_OCTAL = r"\\([0-7]{3})"
_MOUNTS = "/proc/self/mountinfo"
_UUIDS = "/dev/disk/by-uuid"


class FileSystem(NamedTuple):
    """A mounted file system. `key` tells it from others of this host; all is escaped text."""

    type: str
    source: str
    key: str

    @property
    def dependable(self) -> bool:
        """Whether its ctime means something, so that digests on it may be remembered."""
        return self.type in _LOCAL or self.type in _REMOTE

    @property
    def local(self) -> bool:
        """Whether this machine alone writes to it, by its own clock."""
        return self.type in _LOCAL

    @property
    def shared(self) -> bool:
        """Whether other hosts write to it, so that this one may for a while see what has been."""
        return self.type in _SHARED

    @property
    def shared_source(self) -> str | None:
        """What names it on every host that mounts it; None for a file system of this host."""
        return self.source if self.type in _SHARED and _NAMING.search(self.source) else None

    def __str__(self) -> str:
        """Type and source, as in `ext4 /dev/sda1`."""
        return f"{self.type} {self.source}"


class _Mount(NamedTuple):
    device: str
    point: str
    type: str
    source: str


class FileSystems:
    """The mounts of this process, read once, when the first file is asked for."""

    def __init__(self, mounts: str = _MOUNTS) -> None:
        self._path = mounts
        self._mounts: list[_Mount] | None = None
        self._known: dict[tuple[int, str], FileSystem] = {}

    def of(self, path: str, device: int) -> FileSystem:
        """The file system of a real path, whose stat gives this device."""
        place = (device, os.path.dirname(path))  # noqa: PTH120 - as strings: once for each file of a warm scan
        if place not in self._known:
            self._known[place] = self._find(*place)
        return self._known[place]

    def _find(self, device: int, folder: str) -> FileSystem:
        number = f"{os.major(device)}:{os.minor(device)}"
        if self._mounts is None:
            self._mounts = _read_mounts(self._path)
        # btrfs and overlay give files devices that no mount has: there the deepest mount above the file decides.
        above = [mount for mount in self._mounts if _lies_under(folder, mount.point)]
        mounts = [mount for mount in above if mount.device == number] or above
        if not mounts:
            return FileSystem("unknown", number, f"unknown:{number}")
        mount = max(reversed(mounts), key=lambda mount: len(mount.point))  # of two on one point the later one shows
        name = _uuid(mount.source) or mount.source
        if not _NAMING.search(name) and name == mount.source:
            name = f"{name}:{number}"  # `tmpfs` and `overlay` name nothing
        return FileSystem(escape(mount.type), escape(mount.source), escape(f"{mount.type}:{name}"))


def _lies_under(folder: str, point: str) -> bool:
    return point in {"/", folder} or folder.startswith(point + "/")


def _read_mounts(path: str) -> list[_Mount]:
    try:
        text = Path(path).read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return []
    mounts = []
    for line in text.split("\n"):
        left, _, right = line.partition(" - ")
        head, tail = left.split(" "), right.split(" ")
        if len(head) >= 5 and len(tail) >= 2:
            mounts.append(_Mount(head[2], _plain(head[4]), tail[0], _plain(tail[1])))
    return mounts


def _plain(field: str) -> str:
    return re.sub(_OCTAL, lambda match: chr(int(match[1], 8)), field)


def _uuid(source: str) -> str | None:
    """The UUID of a block device, where udev knows it."""
    if not source.startswith("/dev/"):
        return None
    with suppress(OSError):
        device = os.path.realpath(source)
        for entry in os.scandir(_UUIDS):
            if os.path.realpath(entry.path) == device:
                return entry.name
    return None


def open_for_writing(descriptor: int) -> bool:
    """Whether somebody holds this file open (or mapped) for writing, as far as the kernel tells.

    A store into a page that is mapped writable and already dirty moves no timestamp, and only a read lease shows that
    the mapping is there. The lease is given back at once. Where leases are not permitted (another user's file, a file
    system without them) the answer is no.
    """
    try:
        # A writer that comes between the two calls breaks the lease with a signal: SIGIO would end this process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
