"""Parts of a file whose digests are known: the digests of its leaves, and its bytes read once more.

What is read here is held against the stat that the digests were made under: a file that moved since is another file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..checkpoint.opening import denied, open_regular, read_up_to
from ..facts.drill import LEAF
from ..facts.outcome import CkptError
from .layout import WIDTH, leaf_digest
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


def read_again(outcome: Outcome, offset: int, length: int) -> bytes:
    """The bytes at an offset, from the disk where the kernel lets its copy go. Raises CkptError where it is not to be.

    Short only where the file is: no stat that moved is passed over.
    """
    file, record = outcome.file, outcome.record
    if record is None:
        raise CkptError(f"{file.name}: no digests are known")
    try:
        descriptor = open_regular(file.path)
        try:
            _check(outcome, os.fstat(descriptor))
            with suppress(OSError):  # advice only
                os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)
            data = read_up_to(descriptor, length, offset)
            _check(outcome, os.fstat(descriptor))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CkptError(f"{file.name}: {denied(file.path, error)}") from error
    return data


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
