"""How often the cache answered, and what it spared: a line for each folder of each scan, appended to one file.

Nothing rests on it. A line that is lost, cut or written by somebody else is left out of the sums.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..checkpoint.opening import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NAME = "ledger"
#: What every line of ours begins with.
MARK = b'["ckpttuil",1,'
#: A ledger beyond this many bytes is summed up into one line a folder.
_LARGEST = 256 << 10
#: A ledger beyond this is nothing of ours.
_LIMIT = 64 << 20


class Use(NamedTuple):
    """What the cache did for the files of one folder (escaped text), up to `time`."""

    time: float
    folder: str
    hits: int
    bytes_saved: int
    misses: int
    bytes_read: int

    def plus(self, other: Use) -> Use:
        """Both together."""
        sums = (mine + theirs for mine, theirs in zip(self[2:], other[2:], strict=True))
        return Use(max(self.time, other.time), self.folder, *sums)


class _Line(msgspec.Struct, array_like=True, frozen=True):
    mark: str
    version: int
    time: float
    folder: str
    hits: int
    bytes_saved: int
    misses: int
    bytes_read: int


_LINE = msgspec.json.Decoder(_Line)


def by_folder(uses: Iterable[Use]) -> dict[str, Use]:
    """The sum for each folder."""
    sums: dict[str, Use] = {}
    for use in uses:
        sums[use.folder] = sums[use.folder].plus(use) if use.folder in sums else use
    return sums


def append(place: Path, uses: Iterable[Use]) -> None:
    """Add what a scan did, in one write. Where that cannot be done it is not done."""
    # Each begins on a line of its own, whatever the end of the file looks like.
    raw = b"".join(b"\n" + _encode(use) for use in uses)
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(place, flags, 0o600)
        try:
            os.write(descriptor, raw)
            large = os.fstat(descriptor).st_size > _LARGEST
        finally:
            os.close(descriptor)
        if large:
            from .cache import write_whole

            write_whole(place, b"".join(_encode(use) + b"\n" for use in by_folder(read(place)).values()))


def read(place: Path) -> Iterator[Use]:
    """All lines that can be read."""
    try:
        raw = read_file(place, _LIMIT)
    except OSError:
        return
    for line in raw.split(b"\n"):
        if line.startswith(MARK):
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                found = _LINE.decode(line)
                yield Use(found.time, found.folder, found.hits, found.bytes_saved, found.misses, found.bytes_read)


def _encode(use: Use) -> bytes:
    return msgspec.json.encode(("ckpttuil", 1, *use))
