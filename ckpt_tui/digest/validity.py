"""When a remembered digest still speaks for a file, and when a new one may be remembered. Pure: stats in, words out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..facts.files import MissReason

if TYPE_CHECKING:
    import os

    from .cache import Record
    from .filesystem import FileSystem

_SECOND = 1_000_000_000
#: How long after a stat any write is sure to move the ctime: on file systems of this machine, and on all others.
LOCAL_STEP = 0.05
OTHER_STEP = 2.0
#: For how long clients of network file systems take attributes for known (NFS: acregmax, acdirmax), in seconds.
ATTRIBUTES_CACHED = 60.0


class Stamp(NamedTuple):
    """What tells a file from what it was. Only the kernel sets ctime; the rest can be put back by anybody."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Stamp:
        """The stamp in a stat."""
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


class Miss(NamedTuple):
    """Why the cache could not answer."""

    reason: MissReason
    detail: str | None = None


class Wants(NamedTuple):
    """The whole-file digests that a reading has to yield beside xxh3."""

    sha256: bool = True
    git_sha1: bool = False


def moved(before: Stamp, after: Stamp) -> str:
    """The names of the fields that are not what they were, as `size, mtime`; empty where nothing moved."""
    names = ("size", "mtime", "ctime", "inode")
    return ", ".join(name for name, old, new in zip(names, before, after, strict=True) if old != new)


def refusal(
    record: Record,
    stamp: Stamp,
    wants: Wants,
    *,
    max_age: float | None,
    now: float,
    begun: float | None = None,
    rehash: bool = False,
) -> Miss | None:
    """Why a record does not answer for a file that has this stamp now; None where it does.

    `begun` is when this scan began: what another process of this host has read since is as fresh as what we would read.
    """
    begun = now if begun is None else begun
    if fields := moved(record.stamp, stamp):
        return Miss(MissReason.CHANGED, fields)
    if wants.sha256 and record.sha256 is None:
        return Miss(MissReason.LACKS_SHA256)
    if wants.git_sha1 and record.git_sha1 is None:
        return Miss(MissReason.LACKS_SHA256, "git-sha1 is claimed and was not computed")
    if record.hashed_at > now:
        # Since then a write may have got the very times that the record holds.
        return Miss(MissReason.EXPIRED, "the clock was set back")
    if rehash and record.hashed_at <= begun:
        return Miss(MissReason.FORCED)
    if max_age is not None and begun - record.hashed_at > max_age:
        return Miss(MissReason.EXPIRED)
    return None


def step(file_system: FileSystem, stamp: Stamp) -> float:
    """The timestamp step to wait between a stat and the read that it vouches for.

    A ctime in whole seconds is taken as a sign that the file system keeps no finer ones (old ext3 inodes do so).
    """
    if file_system.local and file_system.dependable and stamp.ctime_ns % _SECOND:
        return LOCAL_STEP
    return OTHER_STEP


def rest(file_system: FileSystem, stamp: Stamp, *, now: float) -> float:
    """How long after a stat (at `now` of the clock of the day) the reading waits, so that no later write can hide.

    A write moves the ctime when it comes a step after the last one that is in the stamp. Where the clock that stamps
    is this machine's own, that may be long ago: then the reading need not wait at all.
    """
    length = step(file_system, stamp)
    if file_system.local and stamp.ctime_ns + length * _SECOND <= now * _SECOND:
        return 0.0
    return length


def unfit(stamp: Stamp, *, now: float, written: bool, shared: bool = False) -> str | None:
    """Why a digest read under this stamp may not be remembered; None where it may.

    `shared`: other hosts write to this file system, and what this one knows of their writes may be old.
    """
    if shared and now * _SECOND - stamp.ctime_ns < ATTRIBUTES_CACHED * _SECOND:
        return "it changed a moment ago on a shared file system, whose client may show old times"
    if written:
        return "somebody holds it open for writing"
    if stamp.ctime_ns > now * _SECOND:
        return "its change time lies in the future"
    return None
