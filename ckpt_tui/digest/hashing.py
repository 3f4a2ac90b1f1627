"""From a file of a checkpoint to what is known of its bytes: looked up in the cache, or read and remembered."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..checkpoint.opening import denied, open_regular
from ..facts.files import MissReason, Segmentation, Source, State
from .cache import DigestCache, Key, Record
from .cut import Cut, cut
from .filesystem import FileSystem, FileSystems
from .host import host_id
from .layout import WIDTH
from .passes import Moved
from .pieces import segments_of
from .reader import Reader, Reading, Sight, Target, look
from .survey import UNOPENED
from .validity import Miss, Wants, refusal, unfit

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..checkpoint.model import CheckpointFile, Header
    from ..facts.clock import Clock
    from ..facts.settings import ScanSettings
    from .control import Control
    from .survey import Survey


class Location(NamedTuple):
    """Where a file's bytes lie."""

    file_system: FileSystem
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of a file in the end. Without a record its bytes are not known, and `state` says why."""

    file: CheckpointFile
    state: State
    error: str | None = None
    location: Location | None = None
    record: Record | None = None
    source: Source | None = None
    miss: Miss | None = None


class Pending(NamedTuple):
    """A file that has to be read."""

    target: Target
    outcome: Outcome
    cut: Cut
    key: Key | None


class Hasher:
    """Finds what is known of each file. `first_look` all files before the first `read`: the race rule wants it so."""

    def __init__(self, settings: ScanSettings, survey: Survey, control: Control, clock: Clock) -> None:
        self._settings = settings
        self._survey = survey
        self._clock = clock
        self._reader = Reader(control, clock, drop_page_cache=settings.drop_page_cache)
        self._file_systems = FileSystems()
        self._cache = _open_cache(settings)
        self._unfit: dict[str, str] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept digests from being remembered, in words."""
        failure = self._cache.warning if self._cache else None
        files = (f"{name}: its digest is not remembered: {why}" for name, why in sorted(self._unfit.items()))
        return ((failure,) if failure else ()) + tuple(files)

    def first_look(self, file: CheckpointFile) -> Outcome | Pending:
        """Stat a file, and ask the cache for it."""
        outcome = Outcome(file, file.state, file.error)
        if file.state in UNOPENED:
            return outcome
        if file.name in self._survey.errors:
            return replace(outcome, state=State.UNREADABLE, error=self._survey.errors[file.name])
        try:
            descriptor = open_regular(file.path)
            try:
                sight = look(descriptor, self._clock)
            finally:
                os.close(descriptor)
            real = os.path.realpath(file.path)
        except OSError as error:
            return _failed(outcome, error)
        place = Location(self._file_systems.of(real, sight.device), sight.device, sight.stamp.inode)
        outcome = replace(outcome, location=place)
        if sight.stamp.size != file.size:
            return _changed(outcome, "size")
        if self._settings.identity_only:
            return outcome
        wants = Wants(
            sha256=self._settings.sha256, git_sha1=any(claim.algorithm == "git-sha1" for claim in file.claims)
        )
        key = self._key(place.file_system, real)
        found = self._recall(file, key, sight, wants, place.file_system)
        if isinstance(found, Record):
            return self._known(replace(outcome, source=Source.CACHE), found)
        cut_ = cut(file.header, file.size)
        target = Target(file.path, cut_.spans, wants, sight, place.file_system)
        return Pending(target, replace(outcome, miss=found), cut_, key)

    def read(self, pending: Pending, buffer: memoryview, advance: Callable[[int], None]) -> Outcome:
        """Read a file, and remember its digests where they may be."""
        outcome = pending.outcome
        try:
            reading = self._reader.read(pending.target, buffer, advance)
        except Moved as moved:
            return _changed(outcome, moved.fields)
        except OSError as error:
            return _failed(outcome, error)
        record = self._record(pending.cut, reading)
        outcome = self._known(replace(outcome, source=Source.READ), record)
        if self._cache and pending.key and outcome.record:
            why = unfit(reading.seen.stamp, now=reading.seen.time, written=reading.written)
            if why is None:
                self._cache.save(pending.key, record)
            else:
                self._unfit[outcome.file.name] = why
        return outcome

    def logical(self, content: bytes, compute: Callable[[], bytes]) -> bytes:
        """The logical content that belongs to a content, remembered or computed."""
        if self._cache is None:
            return compute()
        known = None if self._settings.rehash else self._cache.load_logical(content)
        if known is None:
            known = compute()
            self._cache.save_logical(content, known)
        return known

    def _key(self, file_system: FileSystem, real: str) -> Key | None:
        """The key of a file that may be remembered."""
        trusted = file_system.dependable or file_system.type in self._settings.trust_fs
        return self._cache.key(file_system.key, os.fsencode(real)) if self._cache and trusted else None

    def _recall(
        self, file: CheckpointFile, key: Key | None, sight: Sight, wants: Wants, file_system: FileSystem
    ) -> Record | Miss | None:
        if self._cache is None:
            return None
        if key is None:
            return Miss(MissReason.WEAK_FS, f"{file_system.type}; --trust-fs {file_system.type} vouches for it")
        if self._settings.rehash:
            return Miss(MissReason.FORCED)
        found = self._cache.load(key)
        if isinstance(found, Miss):
            return found
        now, max_age = self._clock.time(), self._settings.max_age
        return refusal(found, sight.stamp, wants, max_age=max_age, now=now) or _other_cut(found, file) or found

    def _record(self, cut_: Cut, reading: Reading) -> Record:
        digests = reading.digests
        return Record(
            stamp=reading.seen.stamp,
            hashed_at=self._clock.time(),
            segmentation=cut_.segmentation,
            digest=digests.file,
            sha256=digests.sha256,
            git_sha1=digests.git_sha1,
            segments=digests.segments,
            leaves=digests.leaves,
        )

    def _known(self, outcome: Outcome, record: Record) -> Outcome:
        """The outcome with the digests, if the bytes are those that the survey saw."""
        file = outcome.file
        if record.segmentation is Segmentation.SAFETENSORS and not _same_header(record, file.header):
            return _changed(outcome, "header")
        if self._survey.metadata.get(file.name, record.digest) != record.digest:
            return _changed(outcome, "bytes")
        # The leaves are for the record on disk alone.
        return replace(outcome, record=record._replace(leaves=b""))


def _open_cache(settings: ScanSettings) -> DigestCache | None:
    if not settings.use_cache or settings.identity_only:
        return None
    if settings.cache_dir:
        folder = Path(settings.cache_dir)
    else:
        import platformdirs

        folder = platformdirs.user_cache_path("ckpt-tui")
    return DigestCache(folder, host_id(settings.host_id))


def _same_header(record: Record, header: Header | None) -> bool:
    if header is None:
        return False
    return record.segments[:WIDTH] == segments_of((len(header.raw),), header.raw)


def _other_cut(record: Record, file: CheckpointFile) -> Miss | None:
    """A record made when the file's header was understood otherwise is one of another layout."""
    by_header = record.segmentation is Segmentation.SAFETENSORS
    if by_header == (file.header is not None):
        return None
    return Miss(MissReason.OTHER_LAYOUT, "cut into other segments")


def _changed(outcome: Outcome, what: str) -> Outcome:
    return replace(
        outcome, state=State.CHANGED, error=f"changed while it was scanned: {what}", record=None, source=None
    )


def _failed(outcome: Outcome, error: OSError) -> Outcome:
    if isinstance(error, FileNotFoundError):
        return _changed(outcome, "it is gone")
    return replace(outcome, state=State.UNREADABLE, error=denied(outcome.file.path, error))
