"""Reading remembered files again, past the page cache: is on the disk what was there when they were hashed?

Other bytes under the very stat that the record holds were not written by anybody: that is corruption. A stat that has
moved is a change, and the next scan's business.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..checkpoint.header import PREFIX, HeaderError, header_length, parse_header
from ..checkpoint.opening import denied, open_regular
from ..facts.cached import Fate, Scrubbed
from ..facts.files import Segmentation
from ..present.safe import from_bytes
from ..present.units import count
from .buffers import new_buffer
from .cache import Earlier, Record
from .cut import Spans, cut
from .filesystem import open_for_writing
from .layout import WIDTH, file_digest, segment_of, split
from .pagecache import PastCache
from .passes import Moved
from .pieces import Pieces
from .validity import Stamp, moved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..checkpoint.model import Header
    from .cache import DigestCache
    from .filesystem import FileSystems
    from .inventory import Entry

_STEP = 1 << 20


class _Found(NamedTuple):
    """What a file holds now: a fresh record, or None where its header can no longer be followed."""

    record: Record | None
    sha256: bytes | None
    #: The header's bytes, and how it cuts the file.
    header: bytes
    spans: Spans


class Scrubber:
    """Reads files again, and keeps what it found in the cache."""

    def __init__(
        self, cache: DigestCache, file_systems: FileSystems, now: Callable[[], float], advance: Callable[[int], None]
    ) -> None:
        self._cache = cache
        self._file_systems = file_systems
        self._now = now
        #: Called with the bytes of each piece; what it raises ends the scrub.
        self._advance = advance
        self._buffer = new_buffer()

    def scrub(self, entry: Entry) -> Scrubbed:
        """Read one file again."""
        path = Path(os.fsdecode(entry.key.path))
        try:
            descriptor = open_regular(path)
        except FileNotFoundError:
            return scrubbed(entry, Fate.GONE)
        except OSError as error:
            return scrubbed(entry, Fate.UNREADABLE, denied(path, error))
        try:
            return self._scrub(entry, path, descriptor)
        except Moved as moved_:
            return scrubbed(entry, Fate.CHANGED, moved_.fields)
        except OSError as error:
            return scrubbed(entry, Fate.UNREADABLE, denied(path, error))
        finally:
            os.close(descriptor)

    def _scrub(self, entry: Entry, path: Path, descriptor: int) -> Scrubbed:
        record = entry.record
        file_system = self._file_systems.of(os.fsdecode(entry.key.path), os.fstat(descriptor).st_dev)
        if file_system.key != entry.key.file_system:
            raise Moved("another file system lies there")
        self._check(record, descriptor, path)
        if file_system.local and open_for_writing(descriptor):
            raise Moved("somebody holds it open for writing")
        past = PastCache(descriptor, record.stamp.size, file_system)
        found = self._read(past, record)
        difference = _difference(record, found)
        again = self._read(past, record) if difference else found
        self._check(record, descriptor, path)
        doubt = past.doubt()
        if difference is None:
            if found.record:
                self._cache.save(entry.key, found.record._replace(earlier=record.earlier))
            return scrubbed(entry, Fate.INTACT, doubt, proven=doubt is None)
        if again.record:  # else no record can hold it; a scan will see that the header is broken
            self._cache.save(entry.key, again.record._replace(earlier=_earlier(record, found, again.record)))
        if _difference(record, again) is None:
            difference += "; read once more it was as recorded: what reads it is not to be trusted"
        return scrubbed(entry, Fate.CORRUPT, difference, proven=doubt is None)

    @staticmethod
    def _check(record: Record, descriptor: int, path: Path) -> None:
        for seen in (os.fstat(descriptor), path.stat()):
            if fields := moved(record.stamp, Stamp.of(seen)):
                raise Moved(fields)

    def _read(self, past: PastCache, record: Record) -> _Found:
        size = record.stamp.size
        raw, header = self._header(past, size) if record.segmentation is Segmentation.SAFETENSORS else (b"", None)
        segmentation, spans = cut(header, size)
        pieces = Pieces(spans.lengths)
        sha256 = hashlib.sha256(usedforsecurity=False) if record.sha256 else None
        git_sha1 = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False) if record.git_sha1 else None
        for piece in pieces:
            data = past.fetch(piece.offset, piece.length, self._buffer)
            for hash_ in filter(None, (sha256, git_sha1)):
                hash_.update(data)
            pieces.hash(piece, data)
            self._advance(piece.length)
        segments = pieces.segments()
        whole = sha256.digest() if sha256 else None
        fresh = Record(
            stamp=record.stamp,
            hashed_at=self._now(),
            segmentation=segmentation,
            digest=file_digest(spans, segments),
            sha256=whole,
            git_sha1=git_sha1.digest() if git_sha1 else None,
            segments=segments,
            leaves=bytes(pieces.leaves),
        )
        return _Found(fresh if segmentation is record.segmentation else None, whole, raw, spans)

    def _header(self, past: PastCache, size: int) -> tuple[bytes, Header | None]:
        """The header's bytes as they lie on the disk, and what they say; None where that is nothing any more."""
        raw = bytearray(past.fetch(0, min(PREFIX, size), self._buffer))
        try:
            end = PREFIX + header_length(bytes(raw), size)
            while len(raw) < end:
                raw += past.fetch(len(raw), min(_STEP, end - len(raw)), self._buffer)
            return bytes(raw), parse_header(bytes(raw)).header
        except HeaderError:
            return bytes(raw), None


def scrubbed(entry: Entry, fate: Fate, detail: str | None = None, *, proven: bool = False) -> Scrubbed:
    """What became of one record."""
    return Scrubbed(
        path=from_bytes(entry.key.path),
        size=entry.record.stamp.size,
        hashed_at=entry.record.hashed_at,
        fate=fate,
        proven=proven,
        detail=detail,
    )


def oldest_first(entries: Iterable[Entry], *, limit: int | None, max_bytes: int | None) -> list[Entry]:
    """What is read in one go: the records whose bytes were read longest ago, and always at least one."""
    taken: list[Entry] = []
    total = 0
    for entry in sorted(entries, key=lambda entry: entry.record.hashed_at):
        total += entry.record.stamp.size
        if taken and (len(taken) == limit or (max_bytes is not None and total > max_bytes)):
            break
        taken.append(entry)
    return taken


def _difference(record: Record, found: _Found) -> str | None:
    """What is not as it was, in words; None where all is."""
    fresh = found.record
    if fresh is None:
        by_header = segment_of(found.header) == record.segments[:WIDTH]
        same = found.sha256 == record.sha256 if record.sha256 else by_header
        return None if same else "its header can no longer be followed"
    if fresh.digest == record.digest and fresh.sha256 == record.sha256:
        return None
    if len(fresh.segments) != len(record.segments):
        return "its header names other tensors"
    pairs = zip(found.spans, split(record.segments), split(fresh.segments), strict=True)
    differing = [span for span, before, now in pairs if before != now]
    if not differing:
        return "its sha256"
    first = differing[0]
    name = first.name or first.kind.value
    return f"{len(differing):,} of {count(len(found.spans), 'segment')}, first {name} at offset {first.offset:,}"


def _earlier(record: Record, found: _Found, kept: Record) -> Earlier | None:
    """The contradiction that a kept record carries: with the record before it, or with the reading before it."""
    if kept.digest == record.digest:
        return Earlier(found.record.digest if found.record else b"", kept.hashed_at)
    return record.contradicted_by(kept.digest)
