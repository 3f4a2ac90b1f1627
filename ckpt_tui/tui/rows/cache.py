"""The Cache view: what it saved, why files of this start had to be read, and what is remembered of which checkpoint."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from ...facts.cached import Standing
from ...facts.files import Role, Source
from ...facts.status import Cell
from ...present import units, words
from ...present.glyphs import Mark
from .counts import cached_shards
from .names import Fold, fold
from .spans import Column, Line, TableRow, clip, labelled, line, pieces

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ...facts.cached import CachedFile, CachedFolder, CacheReport
    from ...facts.files import MissReason
    from ...facts.status import RankStatus
    from ...stream.messages import FileRow, Survey
    from .charset import Charset

_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HUB = re.compile(r"/models--([^/]+)/blobs$")
_STANDINGS = {
    Standing.CURRENT: Mark("=", "=", "current", "dim"),
    Standing.CHANGED: Mark("·", ".", "changed", "plain"),
    Standing.GONE: Mark("–", "-", "gone", "dim"),
    Standing.NOT_MOUNTED: Mark("–", "-", "not mounted", "dim"),
    Standing.UNKNOWN: Mark("?", "?", "not known", "warn"),
}
_CORRUPT = Mark("✗", "x", "corrupt", "bad")
_READ = Mark("✓", "v", "read", "dim")
#: Screens narrower than these do without the number of files, the age, and the size.
_COUNT, _AGE, _SIZE = 84, 56, 48


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
    """A report put in order once: thousands of records are not walked over for each frame."""

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
        {folder.path: folder for folder in report.folders} if report else {},
        {path: tuple(files) for path, files in records.items()},
        {file.path: file for file in report.files} if report else {},
        {path: Counter(file.standing for file in files) for path, files in records.items()},
        {path: fold([_base(file.path) for file in files]) for path, files in records.items()},
    )


def _base(path: str) -> str:
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
            keys += [Kept(one.path) for one in _records(records, sort, names)]
    return keys


def _folders(known: Stock, sort: Sort) -> list[CachedFolder]:
    """The oldest first; a folder is as old as its oldest record."""
    folders = list(known.folders.values())
    if sort is Sort.SIZE:
        return sorted(folders, key=lambda folder: -folder.bytes)
    if sort is Sort.NAME:
        return sorted(folders, key=lambda folder: title_of(folder.path).casefold())
    return folders


def _records(records: tuple[CachedFile, ...], sort: Sort, names: Mapping[str, str]) -> Iterable[CachedFile]:
    if sort is Sort.SIZE:
        return sorted(records, key=lambda one: -one.size)
    return sorted(records, key=lambda one: record_name(one, names)) if sort is Sort.NAME else records


def names_of(files: Iterable[FileRow]) -> dict[str, str]:
    """The names of this start's files by their digests: in the hub cache a record knows its blob alone."""
    return {file.result.sha256 or file.result.digest or "": file.name for file in files if file.result is not None}


def record_name(record: CachedFile, names: Mapping[str, str]) -> str:
    """What a record's file is called."""
    base = _base(record.path)
    if not _BLOB.fullmatch(base):
        return base
    return names.get(record.sha256 or record.digest, f"blob {base[:12]}")


def summary(
    status: RankStatus | None,
    survey: Survey | None,
    report: CacheReport | None,
    charset: Charset,
    *,
    mean_rate: float,
    room: int,
    note: str,
) -> list[Line]:
    """What the cache saved, this start and all time, and what it holds; `note` where that is not known."""
    room -= 2
    lines = []
    if status is not None and survey is not None:
        cached, shards = cached_shards(status, survey.roles)
        seconds = status.bytes_cached / mean_rate if mean_rate > 0 else 0.0
        parts = [
            (0, line((f"{cached:,} of {shards:,}", "strong"), " shards cached")),
            (1, line(f"{units.size(status.bytes_cached)} not read")),
            (3, line(f"{units.size(status.bytes_done - status.bytes_cached)} read")),
            (2, line(f"about {units.duration(seconds)} saved" if seconds >= 1 else "")),
        ]
        lines.append(labelled("this start", pieces(parts, room - 12)))
    if report is None:
        lines.append(labelled("all time", line((charset.name(note), "dim"))))
        return [clip(one, room, charset.ellipsis) for one in lines]
    totals = report.totals
    oldest = f", the oldest {units.age(report.created - totals.oldest)}" if totals.oldest is not None else ""
    parts = [
        (0, line((f"{totals.hits:,}", "strong"), f" {'hit' if totals.hits == 1 else 'hits'}")),
        (1, line(f"{units.size(totals.bytes_saved)} not read")),
        (2, line(f"{units.count(totals.misses, 'miss', 'misses')}, {units.size(totals.bytes_read)} read")),
    ]
    lines.append(labelled("all time", pieces(parts, room - 12)))
    held = [
        (0, line(f"{units.count(totals.records, 'record')} for {units.size(totals.bytes)}{oldest}")),
        (2, line(f"{totals.unusable:,} of no use" if totals.unusable else "")),
        (1, line((charset.name(f"in {report.folder}"), "dim"))),
    ]
    lines.append(labelled("remembered", pieces(held, room - 12)))
    told = [note] if note else list(report.warnings)
    lines += [labelled("", line((charset.name(one), "dim"))) for one in told]
    return [clip(one, room, charset.ellipsis) for one in lines]


def size_unit(known: Stock, misses: Mapping[Reason, list[FileRow]]) -> units.Unit:
    """One unit for the whole column."""
    sizes = [folder.bytes for folder in known.folders.values()]
    return units.size_unit(max([*sizes, *(sum(file.size for file in files) for files in misses.values())], default=0))


def columns(sort: Sort, unit: units.Unit, charset: Charset, room: int) -> tuple[Column, ...]:
    """The table's columns; the sorted one carries a mark."""
    down = charset.down
    return (
        Column((), 1),
        Column(line("checkpoint" + (f" {down}" if sort is Sort.NAME else "")), 12, grow=3),
        Column(line("files"), 6, right=True, needs=_COUNT),
        Column(line(f"{down} {unit[0]}" if sort is Sort.SIZE else unit[0]), 8, right=True, needs=_SIZE),
        Column(line(f"{down} read" if sort is Sort.AGE else "read"), 7, right=True, needs=_AGE, gap=3),
        Column(line("standing"), 12 if room < _COUNT else 22, grow=1, gap=1),
    )


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


def row(key: Key, facts: Facts, charset: Charset, now: float) -> TableRow:
    """One row."""
    match key:
        case Reason(reason):
            files = facts.misses.get(key, [])
            name = line(("read in this start", "strong"), f": {words.MISSES[reason]}")
            total = _size(sum(file.size for file in files), facts)
            return TableRow(key, (_hinge(key, facts, charset), name, line(f"{len(files):,}"), total, line(), line()))
        case Missed(index):
            return _missed_row(key, facts.files[index], facts, charset, now)
        case Folder():
            return _folder_row(key, facts, charset, now)
        case Kept(path):
            return _record_row(key, facts.known.files[path], facts, charset, now)


def _hinge(key: Key, facts: Facts, charset: Charset) -> Line:
    signs = ("+", "-") if charset.ascii_only else (charset.right, charset.down)  # in ASCII `v` says that it was read
    return line((signs[key in facts.opened], "active"))


def _size(size: int, facts: Facts) -> Line:
    return line(units.in_unit(size, facts.unit))


def _missed_row(key: Missed, file: FileRow, facts: Facts, charset: Charset, now: float) -> TableRow:
    result = file.result
    age = units.age(now - result.hashed_at) if result is not None and result.hashed_at is not None else ""
    why = words.miss_words(result.miss_reason, result.miss_detail) if result is not None else ""
    mark, name = line((charset.mark(_READ), _READ.tone)), line(f"  {facts.short(file.name, facts.fold, charset)}")
    return TableRow(key, (mark, name, line(), _size(file.size, facts), line(age), line((charset.name(why), "dim"))))


def _folder_row(key: Folder, facts: Facts, charset: Charset, now: float) -> TableRow:
    folder, counts = facts.known.folders[key.path], facts.known.standings[key.path]
    title = title_of(key.path)
    name = line((charset.name(title), "strong" if key.path == facts.own else ""))
    if title != key.path:
        name = (*name, *line(("  hub cache", "dim")))
    said = ", ".join(f"{counts[one]:,} {_STANDINGS[one].word}" for one in _STANDINGS if counts[one])
    if len(counts) == 1 and sum(counts.values()) == folder.files:
        said = f"all {said.partition(' ')[2]}" if folder.files > 1 else said.partition(" ")[2]
    age = units.age(now - folder.oldest) if folder.oldest is not None else ""
    count, size = line(f"{folder.files:,}"), _size(folder.bytes, facts)
    return TableRow(key, (_hinge(key, facts, charset), name, count, size, line(age), line((said, "dim"))))


def _record_row(key: Kept, record: CachedFile, facts: Facts, charset: Charset, now: float) -> TableRow:
    mark = mark_of(record)
    loud = mark.tone in {"bad", "warn"}
    called, folder = record_name(record, facts.names), folder_of(record.path)
    # In the hub cache the names are this start's.
    common = facts.known.folds[folder] if called == _base(record.path) else facts.fold
    name = line(f"  {facts.short(called, common, charset)}")
    said = line((charset.name(worth(record)), mark.tone if loud else ""))
    age = line(units.age(now - record.hashed_at))
    sign = line((charset.mark(mark), mark.tone))
    tone = "dim" if mark.tone == "dim" else "plain"
    return TableRow(key, (sign, name, line(), _size(record.size, facts), age, said), tone)


def mark_of(record: CachedFile) -> Mark:
    """What a record is worth as a mark."""
    return _CORRUPT if record.corrupt and record.standing is Standing.CURRENT else _STANDINGS[record.standing]


def worth(record: CachedFile) -> str:
    """What a record is worth, and why: `changed: mtime`."""
    detail = "other bytes under the same stat" if mark_of(record) is _CORRUPT else record.detail
    return f"{mark_of(record).word}: {detail}" if detail else mark_of(record).word


def details(key: Key, facts: Facts, charset: Charset, now: float) -> tuple[str, list[tuple[str, str]]] | None:
    """What `enter` shows of a row; None where it opens or folds it."""
    match key:
        case Kept(path):
            record = facts.known.files[path]
            pairs = [
                ("path", path),
                ("checkpoint", title_of(folder_of(path))),
                ("size", f"{record.size:,} bytes"),
                ("standing", worth(record)),
                ("read", f"{units.age(now - record.hashed_at)} ago"),
                ("sha256", record.sha256 or ""),
                ("xxh3", record.digest),
                ("on disk", f"{units.size(record.record_bytes)} for the record"),
            ]
            title = record_name(record, facts.names)
        case Missed(index):
            file = facts.files[index]
            if file.result is None:
                return None
            pairs = [
                ("size", f"{file.size:,} bytes"),
                ("read, for", words.miss_words(file.result.miss_reason, file.result.miss_detail)),
                ("sha256", file.result.sha256 or ""),
                ("xxh3", file.result.digest or ""),
            ]
            title = file.name
        case _:
            return None
    return title, [(what, charset.name(value)) for what, value in pairs if value]
