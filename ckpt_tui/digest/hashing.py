"""From a file of a checkpoint to what is known of its bytes: looked up in the cache, or read and remembered."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ..checkpoint.opening import RealPaths, denied, open_regular
from ..facts.files import MissReason, Segmentation, Source, State
from .cache import Record
from .filesystem import FileSystem, FileSystems
from .layout import WIDTH, segment_of
from .memory import Recalled, open_memory
from .passes import Moved
from .reader import Reader, Reading, Sight, Target, look
from .survey import UNOPENED
from .validity import Miss, Stamp, Wants, moved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..checkpoint.model import CheckpointFile, Header
    from ..facts.clock import Clock
    from ..facts.settings import ScanSettings
    from .cache import Key
    from .control import Control
    from .lanes import Lanes
    from .survey import Survey


class Location(NamedTuple):
    """Where a file's bytes lie."""

    file_system: FileSystem
    device: int
    inode: int


class Outcome(NamedTuple):
    """What is known of a file in the end. Without a record its bytes are not known, and `state` says why."""

    file: CheckpointFile
    state: State
    error: str | None = None
    location: Location | None = None
    record: Record | None = None
    source: Source | None = None
    miss: Miss | None = None
    #: Another process of this host read it while this scan went on with other files.
    shared: bool = False


class Pending(NamedTuple):
    """A file that has to be read."""

    target: Target
    outcome: Outcome
    #: None where it may not be remembered.
    key: Key | None = None
    #: A record under the very stat that the file has now.
    standing: Record | None = None


class Hasher:
    """Finds what is known of each file. `first_look` all files before the first `read`: the race rule wants it so."""

    def __init__(self, settings: ScanSettings, survey: Survey, control: Control, clock: Clock, lanes: Lanes) -> None:
        self._settings = settings
        self._survey = survey
        self._clock = clock
        self._reader = Reader(control, clock, lanes, drop_page_cache=settings.drop_page_cache)
        self._file_systems = FileSystems()
        self._real_paths = RealPaths()
        self._memory = open_memory(settings, self._file_systems, clock)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept digests from being remembered, in words."""
        return self._memory.warnings if self._memory else ()

    def first_look(self, file: CheckpointFile) -> Outcome | Pending:
        """Stat a file, and ask the cache for it."""
        outcome = Outcome(file, file.state, file.error)
        if file.state in UNOPENED:
            return outcome
        if file.name in self._survey.errors:
            return outcome._replace(state=State.UNREADABLE, error=self._survey.errors[file.name])
        try:
            sight = self._look(file.path)
            real = self._real_paths.of(file.path)
        except OSError as error:
            return _failed(outcome, error)
        place = Location(self._file_systems.of(real, sight.device), sight.device, sight.stamp.inode)
        outcome = outcome._replace(location=place)
        if sight.stamp.size != file.size:
            return _changed(outcome, "size")
        if self._settings.identity_only:
            return outcome
        wants = Wants(
            sha256=self._settings.sha256, git_sha1=any(claim.algorithm == "git-sha1" for claim in file.claims)
        )
        target = Target(file.path, file.header, wants, sight, place.file_system)
        return self._recalled(Pending(target, outcome), real)

    def _recalled(self, pending: Pending, real: str) -> Outcome | Pending:
        """What the cache makes of a file that would have to be read."""
        if self._memory is None:
            return pending
        outcome, target = pending.outcome, pending.target
        file, file_system = outcome.file, target.file_system
        key = self._memory.key(file_system, real)
        if key is None:
            kind = file_system.type
            miss = Miss(MissReason.WEAK_FS, f"{kind}; --trust-fs {kind} vouches for it")
            return pending._replace(outcome=outcome._replace(miss=miss))
        found = self._memory.recall(key, target.seen, target.wants, by_header=file.header is not None)
        if found.record:
            known = self._known(outcome._replace(source=Source.CACHE), found.record)
            if known.record:
                return known
            # The record is of other bytes than the survey saw. Reading tells a late change from corruption.
            found = Recalled(miss=Miss(MissReason.CHANGED, "bytes"), standing=found.record)
        return pending._replace(outcome=outcome._replace(miss=found.miss), key=key, standing=found.standing)

    def read(
        self,
        pending: Pending,
        buffer: memoryview,
        *,
        begin: Callable[[], None],
        advance: Callable[[int], None],
    ) -> Outcome | None:
        """Read a file, and remember its digests where they may be; `begin` is called when the reading begins.

        None: another process of this host is reading it. Its digests will do for us too, so ask again later.
        """
        if self._memory is None or pending.key is None:
            begin()
            return self._read(pending, buffer, advance)
        turn = self._memory.turn(pending.key, pending.target.wants)
        if turn is None:
            return None
        finished = False
        try:
            outcome = self._shared(pending, pending.key)
            if outcome is None:
                if turn.spoilt:
                    turn.end(finished=True)
                begin()

                def both(count: int) -> None:
                    advance(count)
                    turn.advance(count)

                outcome = self._read(pending, buffer, both)
            finished = True
        finally:
            turn.end(finished=finished)
        return outcome

    def confirm(self, outcome: Outcome) -> Outcome:
        """The outcome, if the file is still what its digests were made of; to be asked when all are known."""
        record, place = outcome.record, outcome.location
        if record is None or place is None:
            return outcome
        try:
            now = Stamp.of(outcome.file.path.stat())
        except OSError as error:
            return _failed(outcome, error)._replace(record=None, source=None)
        if not place.file_system.dependable:  # its inodes may be numbered anew, its ctime may be of the moment
            now = now._replace(inode=record.stamp.inode, ctime_ns=record.stamp.ctime_ns)
        fields = moved(record.stamp, now)
        return _changed(outcome, fields) if fields else outcome

    def close(self) -> None:
        """Count what the cache did."""
        if self._memory:
            self._memory.close()

    def logical(self, content: bytes, compute: Callable[[], bytes]) -> bytes:
        """The logical content that belongs to a content, remembered or computed."""
        return self._memory.logical(content, compute) if self._memory else compute()

    def _shared(self, pending: Pending, key: Key) -> Outcome | None:
        """The outcome where another process has read the file since we first looked."""
        target, outcome = pending.target, pending.outcome
        try:
            sight = self._look(target.path)
        except OSError:
            return None  # reading it will say why
        if self._memory is None or moved(target.seen.stamp, sight.stamp):
            return None
        by_header = outcome.file.header is not None
        record = self._memory.recall(key, sight, target.wants, by_header=by_header).record
        if record is None:
            return None
        known = self._known(outcome._replace(source=Source.CACHE, shared=True, miss=None), record)
        return known if known.record else None

    def _look(self, path: Path) -> Sight:
        descriptor = open_regular(path)
        try:
            return look(descriptor, self._clock)
        finally:
            os.close(descriptor)

    def _read(self, pending: Pending, buffer: memoryview, advance: Callable[[int], None]) -> Outcome:
        outcome = pending.outcome
        try:
            reading = self._reader.read(pending.target, buffer, advance)
        except Moved as moved_:
            return _changed(outcome, moved_.fields)
        except OSError as error:
            return _failed(outcome, error)
        record = self._record(reading)
        outcome = self._known(outcome._replace(source=Source.READ), record)
        if outcome.record and self._memory and pending.key:
            kept = self._memory.keep(outcome.file.name, pending.key, record, reading, pending.standing)
            outcome = outcome._replace(record=outcome.record._replace(earlier=kept.earlier))
        return outcome

    def _record(self, reading: Reading) -> Record:
        digests = reading.digests
        return Record(
            stamp=reading.seen.stamp,
            hashed_at=self._clock.time(),
            segmentation=reading.segmentation,
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
        return outcome._replace(record=record)


def _same_header(record: Record, header: Header | None) -> bool:
    if header is None:
        return False
    return record.segments[:WIDTH] == segment_of(header.raw)


def _changed(outcome: Outcome, what: str) -> Outcome:
    return outcome._replace(
        state=State.CHANGED, error=f"changed while it was scanned: {what}", record=None, source=None
    )


def _failed(outcome: Outcome, error: OSError) -> Outcome:
    if isinstance(error, FileNotFoundError):
        return _changed(outcome, "it is gone")
    return outcome._replace(state=State.UNREADABLE, error=denied(outcome.file.path, error))
