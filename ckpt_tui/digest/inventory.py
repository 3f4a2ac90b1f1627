"""What lies in the cache folder: records and what they are worth, leftovers of ours, and what is none of our business.

Only what is ours is ever removed: a record begins with our mark, a logical content and an outline carry their checksum,
and a file that was never finished has a name that nobody else gives. Everything else is counted, and left alone.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..facts.cached import Standing
from ..facts.files import MissReason
from ..present.safe import error_text, from_bytes
from . import ledger
from .cache import MAGIC, Key, Record, is_derived, parse
from .validity import Miss, Stamp, moved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .cache import DigestCache
    from .filesystem import FileSystems

_RECORD = re.compile(r"[0-9a-f]{32}\.digest")
_DERIVED = re.compile(r"[0-9a-f]{64}\.(?:logical|outline)")
_HOST = re.compile(r"[A-Za-z0-9._-]+-[0-9a-f]{12}")
_UNFINISHED = re.compile(r"\.(?:[0-9a-f]{32}\.digest|[0-9a-f]{64}\.(?:logical|outline)|ledger)\.\d+\.[0-9a-f]{12}")
#: A file that was begun longer ago than this is not being written any more, in seconds.
_ABANDONED = 3600.0


class Entry(NamedTuple):
    """A whole record, and where it lies."""

    place: Path
    record_bytes: int
    key: Key
    record: Record


class Leftover(NamedTuple):
    """A file of ours that holds no record: why, in words."""

    place: Path
    record_bytes: int
    why: str


class Inventory(NamedTuple):
    """All that lies in a host's folder."""

    folder: Path
    entries: tuple[Entry, ...]
    #: Damaged, of another version, never finished.
    unusable: tuple[Leftover, ...]
    #: Logical contents, outlines and the ledger: ours, and used.
    others: tuple[Leftover, ...]
    foreign: int
    uses: dict[str, ledger.Use]


def hosts(folder: Path) -> Iterator[Path]:
    """The folders of all hosts in a cache folder."""
    with suppress(OSError):
        yield from sorted(entry for entry in folder.iterdir() if _HOST.fullmatch(entry.name) and entry.is_dir())


def no_rest() -> None:
    """Go on at once."""


def take(
    folder: Path, cache: DigestCache | None = None, *, slim: bool = False, rest: Callable[[], None] = no_rest
) -> Inventory:
    """Look at everything in a host's folder. What cannot be read counts as foreign.

    With the cache of that host, records that lie under a name that is not theirs are told. `slim` records are without
    their lists of digests, so that thousands of them are small; `rest` is called before each file.
    """
    entries: list[Entry] = []
    unusable: list[Leftover] = []
    others: list[Leftover] = []
    foreign = 0
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names alone are wanted
    for name in names:
        rest()
        found = _look(folder / name)
        if slim and isinstance(found, Entry):
            found = found._replace(record=found.record._replace(segments=b"", leaves=b""))
        if isinstance(found, Entry) and cache and cache.place(found.key) != found.place:
            unusable.append(Leftover(found.place, found.record_bytes, "written for another file"))
        elif isinstance(found, Entry):
            entries.append(found)
        elif found is None:
            foreign += 1
        else:
            (others if found.why in {_FOLLOWS, _LEDGER} else unusable).append(found)
    uses = ledger.by_folder(ledger.read(folder / ledger.NAME))
    return Inventory(folder, tuple(entries), tuple(unusable), tuple(others), foreign, uses)


_FOLLOWS, _LEDGER = "follows from what is remembered", "ledger"
_BROKEN = {MissReason.OTHER_LAYOUT: "of another version", MissReason.CORRUPT_RECORD: "damaged"}


def _look(place: Path) -> Entry | Leftover | None:
    """A file of ours, or None."""
    try:
        seen = place.lstat()
        if not stat.S_ISREG(seen.st_mode):
            return None
        raw = place.read_bytes()
    except OSError:
        return None
    size, name = len(raw), place.name
    if _RECORD.fullmatch(name) and raw.startswith(MAGIC):
        found = parse(raw)
        return Leftover(place, size, _BROKEN[found.reason]) if isinstance(found, Miss) else Entry(place, size, *found)
    if _DERIVED.fullmatch(name) and is_derived(bytes.fromhex(place.stem), raw):
        return Leftover(place, size, _FOLLOWS)
    if name == ledger.NAME and raw.lstrip(b"\n").startswith(ledger.MARK):
        return Leftover(place, size, _LEDGER)
    if _UNFINISHED.fullmatch(name) and time.time() - seen.st_mtime > _ABANDONED:
        return Leftover(place, size, "never finished")
    return None


def standing(entry: Entry, file_systems: FileSystems) -> tuple[Standing, str | None]:
    """What a record of this host is worth now, and why."""
    try:
        seen = Path(os.fsdecode(entry.key.path)).stat()
    except (FileNotFoundError, NotADirectoryError):
        there = _file_system_above(entry.key.path, file_systems)
        # A disk that is not mounted takes nothing away from what is known of its files.
        return (Standing.GONE if there == entry.key.file_system else Standing.NOT_MOUNTED), None
    except OSError as error:
        return Standing.UNKNOWN, error_text(error)
    if file_systems.of(os.fsdecode(entry.key.path), seen.st_dev).key != entry.key.file_system:
        return Standing.NOT_MOUNTED, "another file system lies there"
    fields = moved(entry.record.stamp, Stamp.of(seen))
    return (Standing.CHANGED, fields) if fields else (Standing.CURRENT, None)


def _file_system_above(path: bytes, file_systems: FileSystems) -> str | None:
    """The file system of the deepest folder above a path that exists."""
    for folder in Path(os.fsdecode(path)).parents:
        with suppress(OSError):
            return file_systems.of(str(folder / "_"), folder.stat().st_dev).key
    return None


def chosen(paths: Iterable[str]) -> Callable[[Entry], bool]:
    """Whether a record speaks of one of these files or folders, links in them followed; of any, where none is named."""
    named = [os.fsencode(os.path.realpath(path)) for path in paths]
    linked = {
        os.path.realpath(os.path.join(folder, file))  # noqa: PTH118 - as bytes
        for path in named
        for folder, _, files in os.walk(path)
        for file in files
    }

    def choose(entry: Entry) -> bool:
        path = entry.key.path
        return not named or path in linked or any(path == one or path.startswith(one + b"/") for one in named)

    return choose


def last_used(entry: Entry, uses: dict[str, ledger.Use]) -> float:
    """When a record was last of use: made, or its folder's records asked for."""
    use = uses.get(from_bytes(os.path.dirname(entry.key.path)))  # noqa: PTH120 - as bytes
    return max(entry.record.hashed_at, use.time if use else 0.0)


def remove(place: Path) -> bool:
    """Remove a file if it is still ours; whether it is gone now."""
    found = _look(place)
    if found is None:
        return not place.exists()
    with suppress(OSError):
        place.unlink(missing_ok=True)
        return True
    return False
