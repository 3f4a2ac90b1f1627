"""The Cache view: what the cache saved, and one line a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...facts.cached import Standing
from ...present import units, words
from ...present.glyphs import Mark
from .cache import Folder, Kept, Missed, Reason, Sort, base, folder_of, record_name, title_of
from .counts import cached_shards
from .spans import Column, Line, TableRow, clip, labelled, line, pieces

if TYPE_CHECKING:
    from ...facts.cached import CachedFile, CacheReport
    from ...facts.status import RankStatus
    from ...stream.messages import FileRow, Survey
    from .cache import Facts, Key
    from .charset import Charset

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
    common = facts.known.folds[folder] if called == base(record.path) else facts.fold
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
