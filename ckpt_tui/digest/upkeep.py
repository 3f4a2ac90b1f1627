"""What the `cache` commands do: one report each, over the records of this host and, where asked for, of others."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..facts.cached import (
    CACHE_SCHEMA,
    CachedFile,
    CachedFolder,
    CacheReport,
    CacheTotals,
    Fate,
    Removed,
    Scrubbed,
    Standing,
)
from ..facts.files import Role
from ..facts.version import TOOL
from ..present.safe import escape, from_bytes
from . import inventory as inventory_
from .cache import DigestCache
from .filesystem import FileSystems
from .host import host_id
from .inventory import Entry, Inventory, Leftover
from .memory import cache_folder
from .progress import FileProgress, ScanProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..facts.clock import Clock
    from ..facts.settings import ScanSettings
    from .control import Control


class Upkeep:
    """The cache as its owner sees it."""

    def __init__(
        self,
        settings: ScanSettings,
        clock: Clock,
        *,
        all_hosts: bool = False,
        slim: bool = False,
        rest: Callable[[], None] = inventory_.no_rest,
    ) -> None:
        """`slim` will do where nothing is read again; `rest` is called before each record, for those with time."""
        root = cache_folder(settings.cache_dir)
        self._clock = clock
        self._rest = rest
        self._file_systems = FileSystems()
        self._cache = DigestCache(root, host_id(settings.host_id))
        own = self._cache.folder
        self._own = inventory_.take(own, self._cache, slim=slim, rest=rest)
        others = [folder for folder in inventory_.hosts(root) if folder != own] if all_hosts else []
        self._all = [self._own, *map(inventory_.take, others)]

    def path(self) -> CacheReport:
        """Where this host's records lie."""
        return self._report("path")

    def records(self, paths: Sequence[str], *, each: bool) -> CacheReport:
        """What is remembered: by folder, and each file too where asked for; the oldest first."""
        choose = inventory_.chosen(paths)
        files = []
        folders: dict[str, CachedFolder] = {}
        for part in self._all:
            entries = sorted(filter(choose, part.entries), key=lambda entry: entry.record.hashed_at)
            if each:
                files += [self._cached(entry, part) for entry in entries]
            for folder in _folders(entries, part):
                folders[f"{part.folder}/{folder.path}"] = folder
        ordered = sorted(folders.values(), key=lambda folder: folder.oldest or 0.0)
        shown = [entry for part in self._all for entry in part.entries if choose(entry)]
        return self._report("list", folders=tuple(ordered), files=tuple(files), entries=shown)

    def stats(self) -> CacheReport:
        """How much is remembered, and what it was good for."""
        return self._report("stats")

    def prune(self, *, older_than: float | None, dry_run: bool) -> CacheReport:
        """Remove what is of no use: records of files that are gone, unusable ones, and those unused for so long."""
        doomed: list[tuple[Entry | Leftover, str]] = []
        for part in self._all:
            doomed += [(leftover, leftover.why) for leftover in part.unusable]
            for entry in part.entries:
                if part is self._own and inventory_.standing(entry, self._file_systems)[0] is Standing.GONE:
                    doomed.append((entry, "its file is gone"))
                elif older_than is not None and self._unused(entry, part) > older_than:
                    doomed.append((entry, "unused"))
        return self._remove("prune", doomed, dry_run=dry_run)

    def clear(self, paths: Sequence[str], *, dry_run: bool) -> CacheReport:
        """Forget the files below these paths; where none is named, everything."""
        choose = inventory_.chosen(paths)
        doomed: list[tuple[Entry | Leftover, str]] = []
        for part in self._all:
            doomed += [(entry, "record") for entry in part.entries if choose(entry)]
            if not paths:
                doomed += [(leftover, leftover.why) for leftover in (*part.unusable, *part.others)]
        report = self._remove("clear", doomed, dry_run=dry_run)
        if not dry_run:
            for part in self._all:
                with suppress(OSError):
                    part.folder.rmdir()  # if nothing else lies in it
        return report

    def to_scrub(
        self, paths: Sequence[str], *, older_than: float | None, limit: int | None, max_bytes: int | None
    ) -> Sequence[Entry]:
        """What a scrub would read, in its order."""
        from .scrub import oldest_first

        choose, now = inventory_.chosen(paths), self._clock.time()
        wanted = [
            entry
            for entry in self._own.entries
            if choose(entry) and (older_than is None or now - entry.record.hashed_at > older_than)
        ]
        return oldest_first(wanted, limit=limit, max_bytes=max_bytes)

    def scrub(self, entries: Sequence[Entry], control: Control, progress: ScanProgress) -> CacheReport:
        """Read files again. Raises `Interrupted`; what was read until then is kept."""
        from .scrub import Scrubber

        progress.files = tuple(
            FileProgress(from_bytes(entry.key.path), Role.WEIGHTS, entry.record.stamp.size) for entry in entries
        )
        progress.started = self._clock.monotonic()
        done: list[Scrubbed] = []
        for entry, file in zip(entries, progress.files, strict=True):
            control.check()
            file.start(self._clock.monotonic())

            def advance(count: int, file: FileProgress = file) -> None:
                file.advance(count)
                control.spend(count)

            done.append(Scrubber(self._cache, self._file_systems, self._clock.time, advance).scrub(entry))
            file.finished = self._clock.monotonic()
        warnings = (self._cache.warning,) if self._cache.warning else ()
        return self._report("scrub", scrubbed=tuple(done), entries=entries, warnings=warnings)

    def scrub_plan(self, entries: Sequence[Entry]) -> CacheReport:
        """What a scrub would read."""
        from .scrub import scrubbed

        left = tuple(scrubbed(entry, Fate.LEFT) for entry in entries)
        return self._report("scrub", scrubbed=left, entries=entries, dry_run=True)

    def _unused(self, entry: Entry, part: Inventory) -> float:
        return self._clock.time() - inventory_.last_used(entry, part.uses)

    def _remove(self, command: str, doomed: Iterable[tuple[Entry | Leftover, str]], *, dry_run: bool) -> CacheReport:
        removed = []
        stayed = 0
        for one, why in doomed:
            if dry_run or inventory_.remove(one.place):
                path = from_bytes(one.key.path) if isinstance(one, Entry) else None
                name = escape(one.place.name)
                removed.append(Removed(name=name, why=why, record_bytes=one.record_bytes, path=path))
            else:
                stayed += 1
        warnings = (f"{stayed:,} could not be removed",) if stayed else ()
        return self._report(command, removed=tuple(removed), dry_run=dry_run, warnings=warnings)

    def _cached(self, entry: Entry, part: Inventory) -> CachedFile:
        own = part is self._own
        self._rest()
        worth, detail = inventory_.standing(entry, self._file_systems) if own else (Standing.UNKNOWN, "of another host")
        record = entry.record
        return CachedFile(
            path=from_bytes(entry.key.path),
            size=record.stamp.size,
            hashed_at=record.hashed_at,
            digest=record.digest.hex(),
            standing=worth,
            record_bytes=entry.record_bytes,
            sha256=record.sha256.hex() if record.sha256 else None,
            detail=detail,
            host=None if own else escape(part.folder.name),
            corrupt=record.earlier is not None,
        )

    def _report(
        self,
        command: str,
        *,
        entries: Sequence[Entry] | None = None,
        folders: tuple[CachedFolder, ...] = (),
        files: tuple[CachedFile, ...] = (),
        removed: tuple[Removed, ...] = (),
        scrubbed: tuple[Scrubbed, ...] = (),
        dry_run: bool = False,
        warnings: tuple[str, ...] = (),
    ) -> CacheReport:
        return CacheReport(
            schema=CACHE_SCHEMA,
            command=command,
            tool=TOOL,
            created=self._clock.time(),
            folder=escape(str(self._own.folder)),
            totals=_totals(self._all, entries),
            folders=folders,
            files=files,
            removed=removed,
            scrubbed=scrubbed,
            dry_run=dry_run,
            warnings=warnings,
        )


def _folders(entries: Iterable[Entry], part: Inventory) -> Iterator[CachedFolder]:
    """The records of a host, a folder of files at a time."""
    grouped: dict[bytes, list[Entry]] = {}
    for entry in entries:
        grouped.setdefault(os.path.dirname(entry.key.path), []).append(entry)  # noqa: PTH120 - as bytes
    for raw, members in grouped.items():
        path = from_bytes(raw)
        use = part.uses.get(path)
        yield CachedFolder(
            path=path,
            files=len(members),
            bytes=sum(entry.record.stamp.size for entry in members),
            oldest=min(entry.record.hashed_at for entry in members),
            hits=use.hits if use else 0,
            bytes_saved=use.bytes_saved if use else 0,
            last_used=use.time if use else None,
        )


def _totals(parts: Sequence[Inventory], entries: Sequence[Entry] | None) -> CacheTotals:
    """Sums over these records, or over all."""
    counted = [entry for part in parts for entry in part.entries] if entries is None else entries
    uses = [use for part in parts for use in part.uses.values()]
    extra = [leftover for part in parts for leftover in (*part.unusable, *part.others)] if entries is None else []
    return CacheTotals(
        records=len(counted),
        bytes=sum(entry.record.stamp.size for entry in counted),
        record_bytes=sum(entry.record_bytes for entry in counted) + sum(leftover.record_bytes for leftover in extra),
        hits=sum(use.hits for use in uses),
        bytes_saved=sum(use.bytes_saved for use in uses),
        misses=sum(use.misses for use in uses),
        bytes_read=sum(use.bytes_read for use in uses),
        foreign=sum(part.foreign for part in parts),
        unusable=sum(len(part.unusable) for part in parts),
        oldest=min((entry.record.hashed_at for entry in counted), default=None),
        last_used=max((use.time for use in uses), default=None),
    )
