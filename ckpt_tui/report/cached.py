"""What the `cache` commands have to say, as plain text for people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.cached import Fate, Standing
from ..present import units
from .columns import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts.cached import CachedFile, CachedFolder, CacheReport, CacheTotals, Removed, Scrubbed

#: Digits of a digest in a table; it is whole in the JSON.
_DIGITS = 12


def cache_text(report: CacheReport, now: float) -> str:
    """A report: what it comes to in one line, then the rows."""
    lines = _LINES[report.command](report, now)
    if report.warnings:
        lines += ["", *(f"  warning: {warning}" for warning in report.warnings)]
    return "\n".join(lines) + "\n"


def _path(report: CacheReport, _now: float) -> list[str]:
    return [report.folder]


def _list(report: CacheReport, now: float) -> list[str]:
    lines = [_headline(report.totals, report.folder)]
    if report.folders:
        lines += ["", *_folders(report.folders, now)]
    if report.files:
        lines += ["", *_files(report.files, now)]
    return lines


def _headline(totals: CacheTotals, folder: str) -> str:
    return f"{units.count(totals.records, 'record')} of {units.size(totals.bytes)} in {folder}"


def _folders(folders: Sequence[CachedFolder], now: float) -> list[str]:
    unit = units.size_unit(max(folder.bytes for folder in folders))
    rows = [["files", unit[0], "oldest", "used", "hits", "not read", "folder"]]
    rows += [
        [
            f"{folder.files:,}",
            units.in_unit(folder.bytes, unit),
            _age(folder.oldest, now),
            _age(folder.last_used, now),
            f"{folder.hits:,}",
            units.size(folder.bytes_saved),
            folder.path,
        ]
        for folder in folders
    ]
    return table(rows, ">>>>>><")


def _files(files: Sequence[CachedFile], now: float) -> list[str]:
    unit = units.size_unit(max(file.size for file in files))
    rows = [["read", unit[0], "now", "sha256", "file"]]
    rows += [
        [
            _age(file.hashed_at, now),
            units.in_unit(file.size, unit),
            _worth(file),
            (file.sha256 or "")[:_DIGITS],
            file.path,
        ]
        for file in files
    ]
    return table(rows, ">><<<")


def _worth(file: CachedFile) -> str:
    if file.corrupt and file.standing is Standing.CURRENT:
        return "corrupt"
    return f"{file.standing.value}: {file.detail}" if file.detail else file.standing.value


def _age(moment: float | None, now: float) -> str:
    return "" if moment is None else units.age(now - moment)


def _stats(report: CacheReport, now: float) -> list[str]:
    totals = report.totals
    oldest = f", the oldest {_age(totals.oldest, now)}" if totals.oldest is not None else ""
    used = f"last {_age(totals.last_used, now)}" if totals.last_used is not None else "never"
    rows = [
        ("folder", report.folder),
        ("records", f"{totals.records:,} for {units.size(totals.bytes)}{oldest}"),
        ("on disk", units.size(totals.record_bytes)),
        ("used", used),
        ("hits", f"{units.count(totals.hits, 'file')}, {units.size(totals.bytes_saved)} not read"),
        ("misses", f"{units.count(totals.misses, 'file')}, {units.size(totals.bytes_read)} read"),
        ("unusable", f"{totals.unusable:,}" if totals.unusable else ""),
        ("not ours", f"{totals.foreign:,}" if totals.foreign else ""),
    ]
    return table([row for row in rows if row[1]], "<<", indent=0)


def _removals(report: CacheReport, _now: float) -> list[str]:
    size = units.size(sum(one.record_bytes for one in report.removed))
    word = "would remove" if report.dry_run else "removed"
    lines = [f"{word} {units.count(len(report.removed), 'file')} of the cache, {size}"]
    if report.removed:
        lines += ["", *table([_removal(one) for one in report.removed], "<<")]
    return lines


def _removal(one: Removed) -> list[str]:
    return [one.why, one.path or one.name]


def _scrub(report: CacheReport, now: float) -> list[str]:
    lines = [_verdict(report.scrubbed, dry_run=report.dry_run)]
    if report.scrubbed:
        unit = units.size_unit(max(one.size for one in report.scrubbed))
        rows = [_scrubbed(one, unit, now) for one in sorted(report.scrubbed, key=_rank)]
        lines += ["", *table([["", unit[0], "read", "", "file"], *rows], "<>><<")]
    return lines


def _rank(one: Scrubbed) -> tuple[int, bool]:
    return (list(_WORDS).index(one.fate), one.proven)


_WORDS = {
    Fate.CORRUPT: "CORRUPT",
    Fate.UNREADABLE: "unreadable",
    Fate.CHANGED: "changed",
    Fate.GONE: "gone",
    Fate.INTACT: "intact",
    Fate.LEFT: "to read",
}


def _scrubbed(one: Scrubbed, unit: units.Unit, now: float) -> list[str]:
    detail = one.detail or ""
    if one.fate is Fate.INTACT and not one.proven:
        detail = f"not proven: {detail}"
    return [_WORDS[one.fate], units.in_unit(one.size, unit), units.age(now - one.hashed_at), detail, one.path]


def _verdict(scrubbed: Sequence[Scrubbed], *, dry_run: bool) -> str:
    if not scrubbed:
        return "nothing to read: no record speaks of these files"
    size = units.size(sum(one.size for one in scrubbed))
    if dry_run:
        return f"would read {units.count(len(scrubbed), 'file')}, {size}"
    read = [one for one in scrubbed if one.fate in {Fate.INTACT, Fate.CORRUPT}]
    if not read:
        return f"UNDECIDED  none of {units.count(len(scrubbed), 'file')} could be read again"
    corrupt = sum(one.fate is Fate.CORRUPT for one in read)
    doubtful = sum(not one.proven for one in read)
    size = units.size(sum(one.size for one in read))
    past = f"{doubtful:,} not proven past the page cache" if doubtful else "all past the page cache"
    many = units.count(len(read), "file")
    unread = sum(one.fate is Fate.UNREADABLE for one in scrubbed)
    lost = f"{units.count(unread, 'file')} could not be read"
    if corrupt:
        return f"CORRUPT  {corrupt:,} of {many}, {size}, {past}" + f"; {lost}" * bool(unread)
    return f"UNDECIDED  {lost}; {many} intact, {size}, {past}" if unread else f"INTACT  {many}, {size}, {past}"


_LINES = {
    "path": _path,
    "list": _list,
    "stats": _stats,
    "prune": _removals,
    "clear": _removals,
    "scrub": _scrub,
}
