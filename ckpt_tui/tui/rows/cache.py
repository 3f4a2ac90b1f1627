"""The Cache view's rows and their order: why files were read in this start, and what is remembered of which folder."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from ...facts.files import Role, Source
from ...facts.status import Cell
from ...present import units
from .names import Fold, fold

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ...facts.cached import CachedFile, CachedFolder, CacheReport, Standing
    from ...facts.files import MissReason
    from ...stream.messages import FileRow, Survey
    from .charset import Charset

_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HUB = re.compile(r"/models--([^/]+)/blobs$")


class Sort(StrEnum):
    """How what is remembered is sorted."""

    AGE = "age"
    SIZE = "size"
    NAME = "name"

    def next(self) -> Sort:
        """The order that the sort key turns to."""
        every = list(Sort)
        return every[(every.index(self) + 1) % len(every)]


@dataclass(frozen=True, slots=True)
class Reason:
    """The key of a row: all files of this start that were read for one reason."""

    reason: MissReason | None


@dataclass(frozen=True, slots=True)
class Missed:
    """The key of a row: one file of this start that was read."""

    index: int


@dataclass(frozen=True, slots=True)
class Folder:
    """The key of a row: all records of a checkpoint's folder."""

    path: str


@dataclass(frozen=True, slots=True)
class Kept:
    """The key of a row: one record."""

    path: str


Key = Reason | Missed | Folder | Kept


class Stock(NamedTuple):
    """A report put in order once: thousands of records are not walked over for each frame.

    `created` is when it was made: ages as of then give an order that stays.
    """

    created: float
    folders: Mapping[str, CachedFolder]
    records: Mapping[str, tuple[CachedFile, ...]]
    files: Mapping[str, CachedFile]
    standings: Mapping[str, Counter[Standing]]
    folds: Mapping[str, Fold]


def stock(report: CacheReport | None) -> Stock:
    """What the cache holds, by folder."""
    records: dict[str, list[CachedFile]] = {folder.path: [] for folder in report.folders} if report else {}
    for file in report.files if report else ():
        records.setdefault(folder_of(file.path), []).append(file)
    return Stock(
        report.created if report else 0.0,
        {folder.path: folder for folder in report.folders} if report else {},
        {path: tuple(files) for path, files in records.items()},
        {file.path: file for file in report.files} if report else {},
        {path: Counter(file.standing for file in files) for path, files in records.items()},
        {path: fold([base(file.path) for file in files]) for path, files in records.items()},
    )


def base(path: str) -> str:
    """The name of a record's file, without its folder."""
    return path.rpartition("/")[2]


def folder_of(path: str) -> str:
    """The folder that a record's file lies in."""
    return path.rpartition("/")[0] or "/"


def title_of(folder: str) -> str:
    """A checkpoint's name: the repo of a folder in the hub cache, else the path."""
    found = _HUB.search(folder)
    return found[1].replace("--", "/", 1) if found else folder


def own_folder(survey: Survey | None, known: Stock) -> str | None:
    """The folder of the checkpoint at hand, if there are records of it."""
    if survey is None:
        return None
    ref = survey.checkpoint
    return next((path for path in known.folders if path == ref.path or title_of(path) == ref.repo_id), None)


def missed(files: Iterable[FileRow]) -> dict[Reason, list[FileRow]]:
    """The files of this start that had to be read, by the reason why."""
    found: dict[Reason, list[FileRow]] = {}
    for file in sorted(files, key=lambda one: (one.role is Role.SIDECAR, one.index)):
        if file.result is not None and file.result.source is Source.READ and file.cell is not Cell.SHARED:
            found.setdefault(Reason(file.result.miss_reason), []).append(file)
    return found


def order(facts: Facts, sort: Sort, needle: str) -> list[Key]:
    """The keys of the rows: misses, then folders, each with what it holds where it is open or something is sought."""
    known, opened, names = facts.known, facts.opened, facts.names
    wanted = needle.casefold()
    keys: list[Key] = []
    for reason, files in facts.misses.items():
        kept = [file for file in files if wanted in file.name.casefold()]
        if kept:
            keys.append(reason)
            keys += [Missed(file.index) for file in kept if wanted or reason in opened]
    for folder in _folders(known, sort):
        whole = wanted in title_of(folder.path).casefold()
        records = known.records[folder.path]
        if wanted and not whole:
            records = tuple(one for one in records if wanted in record_name(one, names).casefold())
        if not (whole or records):
            continue
        keys.append(Folder(folder.path))
        if Folder(folder.path) in opened or (wanted and not whole):
            keys += [Kept(one.path) for one in _records(records, sort, facts)]
    return keys


def _folders(known: Stock, sort: Sort) -> list[CachedFolder]:
    """The oldest first, as old as its oldest record; of one age, or of one size, by name."""

    def key(folder: CachedFolder) -> tuple[int, str, str]:
        return (_rank(sort, folder.bytes, folder.oldest or 0.0, known), title_of(folder.path).casefold(), folder.path)

    return sorted(known.folders.values(), key=key)


def _records(records: Iterable[CachedFile], sort: Sort, facts: Facts) -> list[CachedFile]:
    """In the order of the folders: files that one scan has read are of one age, to people, and stand by name."""

    def key(one: CachedFile) -> tuple[int, str, str]:
        rank = _rank(sort, one.size, one.hashed_at, facts.known)
        return (rank, record_name(one, facts.names).casefold(), one.path)

    return sorted(records, key=key)


def _rank(sort: Sort, size: int, read_at: float, known: Stock) -> int:
    """What comes before the name: the oldest age that is shown, or the largest size, first."""
    if sort is Sort.NAME:
        return 0
    return -(size if sort is Sort.SIZE else units.age_shown(known.created - read_at))


def names_of(files: Iterable[FileRow]) -> dict[str, str]:
    """The names of this start's files by their digests: in the hub cache a record knows its blob alone."""
    return {file.result.sha256 or file.result.digest or "": file.name for file in files if file.result is not None}


def record_name(record: CachedFile, names: Mapping[str, str]) -> str:
    """What a record's file is called."""
    called = base(record.path)
    if not _BLOB.fullmatch(called):
        return called
    return names.get(record.sha256 or record.digest, f"blob {called[:12]}")


def size_unit(known: Stock, misses: Mapping[Reason, list[FileRow]]) -> units.Unit:
    """One unit for the whole column."""
    sizes = [folder.bytes for folder in known.folders.values()]
    return units.size_unit(max([*sizes, *(sum(file.size for file in files) for files in misses.values())], default=0))


class Facts(NamedTuple):
    """What rows are made of."""

    known: Stock
    misses: Mapping[Reason, list[FileRow]]
    files: Mapping[int, FileRow]
    names: Mapping[str, str]
    opened: Collection[Key]
    unit: units.Unit
    own: str | None
    #: What the names of this start's shards share; on narrow screens names keep what differs.
    fold: Fold
    narrow: bool

    def short(self, name: str, common: Fold, charset: Charset) -> str:
        """A file's name: `…00014…` where there is no room for what all share."""
        inner = common.short(name) if self.narrow else name
        if inner == name:
            return charset.name(name)
        before, after = (charset.ellipsis if part else "" for part in common)
        return f"{before}{charset.name(inner)}{after}"
