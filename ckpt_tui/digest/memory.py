"""What one scan remembers and recalls: the digest cache under the scan's settings, and the turns of its readers."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..facts.files import MissReason, Segmentation
from ..present.safe import from_bytes
from . import ledger
from .cache import DigestCache, Key, Record
from .host import host_id
from .validity import Miss, moved, refusal, unfit

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts.clock import Clock
    from ..facts.settings import ScanSettings
    from .filesystem import FileSystem, FileSystems
    from .reader import Reading, Sight
    from .sharing import Turn, Turns
    from .validity import Wants


def open_memory(settings: ScanSettings, file_systems: FileSystems, clock: Clock) -> Memory | None:
    """The memory of a scan; None where it is to have none."""
    if not settings.use_cache or settings.identity_only:
        return None
    return Memory(open_cache(settings), settings, file_systems, clock)


def open_cache(settings: ScanSettings) -> DigestCache:
    """The digest cache of this host."""
    return DigestCache(cache_folder(settings.cache_dir), host_id(settings.host_id))


class RememberedOutlines:
    """What is remembered of indexes (`checkpoint.outline.Outlines`); new ones are written by `keep` alone."""

    def __init__(self, settings: ScanSettings) -> None:
        self._cache = open_cache(settings)
        self._new: dict[bytes, bytes] = {}

    def load_outline(self, key: bytes) -> bytes | None:
        """The value, if there is one."""
        return self._cache.load_outline(key)

    def save_outline(self, key: bytes, value: bytes) -> None:
        """Take note of a value: who only surveys leaves no trace."""
        self._new[key] = value

    def keep(self) -> None:
        """Write what was taken note of, where that can be done."""
        for key, value in self._new.items():
            self._cache.save_outline(key, value)


def open_outlines(settings: ScanSettings) -> RememberedOutlines | None:
    """The outlines of a scan; None where it is to remember nothing, or to look at all anew."""
    anew = settings.identity_only or settings.rehash or not settings.use_cache
    return None if anew else RememberedOutlines(settings)


def cache_folder(chosen: str | None) -> Path:
    """Where the caches of all hosts lie."""
    if chosen:
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("ckpt-tui")


class Recalled(NamedTuple):
    """What the cache says of a file: a record that answers, or why none does."""

    record: Record | None = None
    miss: Miss | None = None
    #: A record that does not answer though nothing has moved since: what is read now has to be the same.
    standing: Record | None = None


class Memory:
    """The cache as one scan uses it. `recall` and `keep` may be called from any thread."""

    def __init__(self, cache: DigestCache, settings: ScanSettings, file_systems: FileSystems, clock: Clock) -> None:
        self._cache = cache
        self._settings = settings
        self._file_systems = file_systems
        self._clock = clock
        self._begun = clock.time()
        self._unfit: dict[str, str] = {}
        #: Path, size, and the number of hits: 0 or 1.
        self._answers: list[tuple[bytes, int, int]] = []
        self._turns: Turns | None = None
        self._turns_sought = False
        self._lock = threading.Lock()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept digests from being remembered, in words."""
        files = (f"{name}: its digest is not remembered: {why}" for name, why in sorted(self._unfit.items()))
        return ((self._cache.warning,) if self._cache.warning else ()) + tuple(files)

    def key(self, file_system: FileSystem, real: str) -> Key | None:
        """The key of a file that may be remembered."""
        trusted = file_system.dependable or file_system.type in self._settings.trust_fs
        return self._cache.key(file_system.key, os.fsencode(real)) if trusted else None

    def recall(self, key: Key, sight: Sight, wants: Wants, *, by_header: bool) -> Recalled:
        """Ask for a file with the stat that it has now. `by_header`: the file is cut by its safetensors header."""
        found = self._cache.load(key)
        rehash = self._settings.rehash
        if isinstance(found, Miss):
            return Recalled(miss=Miss(MissReason.FORCED) if rehash else found)
        if (found.segmentation is Segmentation.SAFETENSORS) != by_header:
            # Made when the file's header was understood otherwise: as good as another layout.
            return Recalled(miss=Miss(MissReason.OTHER_LAYOUT, "cut into other segments"))
        miss = refusal(
            found,
            sight.stamp,
            wants,
            max_age=self._settings.max_age,
            now=self._clock.time(),
            begun=self._begun,
            rehash=rehash,
        )
        if miss is None:
            self._answers.append((key.path, found.stamp.size, 1))
            return Recalled(record=found)
        return Recalled(miss=miss, standing=None if moved(found.stamp, sight.stamp) else found)

    def keep(self, name: str, key: Key, record: Record, reading: Reading, standing: Record | None) -> Record:
        """Remember what was read, where it may be; the record as it is remembered.

        Where the file has the very stat that a standing record has, it holds the same bytes, or they were corrupted.
        """
        self._answers.append((key.path, record.stamp.size, 0))
        shared = self._file_systems.of(os.fsdecode(key.path), reading.seen.device).shared
        why = unfit(reading.seen.stamp, now=reading.seen.time, written=reading.written, shared=shared)
        if why is not None:
            self._unfit[name] = why
            return record
        if standing is not None and not moved(standing.stamp, record.stamp):
            record = record._replace(earlier=standing.contradicted_by(record.digest))
        self._cache.save(key, record)
        return record

    def turn(self, key: Key, wants: Wants) -> Turn | None:
        """The turn to read a file; None while another process of this host reads it for us."""
        from .sharing import Aim, Turn, open_turns  # a warm scan reads nothing

        with self._lock:
            if not self._turns_sought:
                self._turns = open_turns(self._settings.runtime_dir, self._file_systems, self._clock)
                self._turns_sought = True
        if self._turns is None or self._cache.warning:  # others would not find in the cache what they waited for
            return Turn(self._clock)
        aim = Aim(wants.sha256, wants.git_sha1, limited=bool(self._settings.max_rate))
        return self._turns.claim(self._cache.place(key), aim)

    def close(self) -> None:
        """Count what the cache did in this scan."""
        now = self._clock.time()
        uses = (
            ledger.Use(now, from_bytes(os.path.dirname(path)), hits, hits * size, 1 - hits, (1 - hits) * size)  # noqa: PTH120 - bytes
            for path, size, hits in self._answers
        )
        if self._answers and self._cache.warning is None:
            ledger.append(self._cache.folder / ledger.NAME, ledger.by_folder(uses).values())

    def logical(self, content: bytes, compute: Callable[[], bytes]) -> bytes:
        """The logical content that belongs to a content, remembered or computed."""
        known = None if self._settings.rehash else self._cache.load_logical(content)
        if known is None:
            known = compute()
            self._cache.save_logical(content, known)
        return known
