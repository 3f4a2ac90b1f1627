"""What the digest cache holds, and what became of it: `ckpt-tui/cache/1`, for every `cache` command."""

from __future__ import annotations

from enum import StrEnum

from .base import Fact

CACHE_SCHEMA = "ckpt-tui/cache/1"


class Standing(StrEnum):
    """What a record is worth now."""

    #: The file's stat is the record's: the next scan reads nothing of it.
    CURRENT = "current"
    #: The file's stat has moved: the next scan reads it.
    CHANGED = "changed"
    GONE = "gone"
    #: The file system that it lies on is not mounted.
    NOT_MOUNTED = "not-mounted"
    #: It cannot be looked at, or another host reads it.
    UNKNOWN = "unknown"


class Fate(StrEnum):
    """What reading a remembered file again came to."""

    INTACT = "intact"
    #: Other bytes under the same stat.
    CORRUPT = "corrupt"
    CHANGED = "changed"
    GONE = "gone"
    UNREADABLE = "unreadable"
    #: Not read: a limit was reached, or it was only asked what would be read.
    LEFT = "left"


class CachedFile(Fact, frozen=True, kw_only=True):
    """One record: the file that it speaks of, and what it is worth now."""

    path: str
    size: int
    #: Seconds since the epoch at which the bytes were read.
    hashed_at: float
    digest: str
    standing: Standing
    record_bytes: int
    sha256: str | None = None
    #: What moved, or why it cannot be told.
    detail: str | None = None
    #: The host's folder, where records of other hosts are listed too.
    host: str | None = None
    #: Its bytes were once others under the same stat.
    corrupt: bool = False


class CachedFolder(Fact, frozen=True, kw_only=True):
    """All records of one folder, and what the cache did for it. `hits` count files that were not read."""

    path: str
    files: int
    bytes: int
    oldest: float | None
    hits: int = 0
    bytes_saved: int = 0
    last_used: float | None = None


class Removed(Fact, frozen=True, kw_only=True):
    """A record or leftover that was removed, or would be. `why` is a word or a phrase."""

    name: str
    why: str
    record_bytes: int
    path: str | None = None


class Scrubbed(Fact, frozen=True, kw_only=True):
    """One file that was read again. `proven`: its bytes came past the page cache."""

    path: str
    size: int
    hashed_at: float
    fate: Fate
    proven: bool
    #: What differs, what moved, or why it is not proven.
    detail: str | None = None


class CacheTotals(Fact, frozen=True, kw_only=True):
    """Sums. `bytes` are those of the files that records speak of; uses are counted since the cache was last cleared."""

    records: int
    bytes: int
    record_bytes: int
    hits: int
    bytes_saved: int
    misses: int
    bytes_read: int
    #: Files in the cache's folder that are not ours: never touched.
    foreign: int = 0
    #: Records that cannot be used: damaged, of another version, or never finished.
    unusable: int = 0
    oldest: float | None = None
    last_used: float | None = None


class CacheReport(Fact, frozen=True, kw_only=True):
    """What a `cache` command found or did."""

    schema: str
    command: str
    tool: str
    created: float
    #: The folder of this host's records.
    folder: str
    totals: CacheTotals
    folders: tuple[CachedFolder, ...] = ()
    files: tuple[CachedFile, ...] = ()
    removed: tuple[Removed, ...] = ()
    scrubbed: tuple[Scrubbed, ...] = ()
    #: Nothing was done: this is what would be.
    dry_run: bool = False
    warnings: tuple[str, ...] = ()
