"""Parts of a file whose digests are known: the digests of its leaves, and its bytes read once more.

What is read here is held against the stat that the digests were made under: a file that moved since is another file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..checkpoint.opening import denied, open_regular
from ..facts.drill import LEAF, Reread
from ..facts.outcome import CkptError
from .buffers import new_buffer
from .layout import WIDTH, leaf_digest
from .pagecache import PastCache
from .passes import Moved
from .validity import Stamp, moved
from .zeros import zeros_leaf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.files import Segment
    from .hashing import Outcome


def leaves_of(outcome: Outcome, table: Iterable[Segment]) -> tuple[bytes, ...]:
    """The digests of each segment's leaves, end to end, in the order of the file's segment table."""
    held = outcome.record.leaves if outcome.record else b""
    found, at = [], 0
    for segment in table:
        end = at + -(-segment.length // LEAF) * WIDTH
        found.append(held[at:end])
        at = end
    return tuple(found)


def read_again(outcome: Outcome, offset: int, length: int) -> Reread:
    """The bytes at an offset, past the page cache. Raises CkptError where that cannot be.

    Short only where the file is: no stat that moved is passed over.
    """
    file, record, location = outcome.file, outcome.record, outcome.location
    if record is None or location is None:
        raise CkptError(f"{file.name}: no digests are known")
    try:
        descriptor = open_regular(file.path)
        try:
            _check(outcome, os.fstat(descriptor))
            length = max(min(length, record.stamp.size - offset), 0)
            past = PastCache(descriptor, offset + length, location.file_system, start=offset)
            data = bytes(past.fetch(offset, length, new_buffer(length)))
            doubt = past.doubt()
            _check(outcome, os.fstat(descriptor))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CkptError(f"{file.name}: {denied(file.path, error)}") from error
    except Moved as change:
        raise CkptError(f"{file.name}: changed since it was hashed: {change.fields}") from change
    return Reread(data, doubt)


def _check(outcome: Outcome, now: os.stat_result) -> None:
    fields = moved(outcome.record.stamp, Stamp.of(now)) if outcome.record else "digests"
    if fields:
        raise CkptError(f"{outcome.file.name}: changed since it was hashed: {fields}")


def has_digest(data: bytes, digest: bytes) -> bool:
    """Whether these are the bytes of the leaf with this digest."""
    return leaf_digest(data) == digest


def is_zeros(digest: bytes, length: int) -> bool:
    """Whether a leaf of so many bytes is zeros throughout, by its digest."""
    return digest == zeros_leaf(length)
