"""Checksum files, as `sha256sum` and its like write them. Pure over bytes, which may have been written by anybody.

A line is GNU's (`<hex>  name`, with `*` for binary and a leading backslash where the name is escaped) or BSD's
(`SHA256 (name) = <hex>`). A file that holds nothing but a digest speaks for the file whose name it carries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from .names import inside

_GNU = re.compile(rb"[ \t]*+(\\?)([0-9A-Fa-f]{64})(?: [ *]|[ \t](?![ *]))(.+)", re.DOTALL)
_BSD = re.compile(rb"[ \t]*+(\\?)(?:SHA256|SHA2-256) ?\((.+)\) ?= ?([0-9A-Fa-f]{64})[ \t]*", re.DOTALL)
_BARE = re.compile(rb"\s*([0-9A-Fa-f]{64})\s*")
#: Lines of other algorithms: a digest of another known length, or another tag.
_OTHER = re.compile(
    rb"[ \t]*+\\?(?:(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{40}|[0-9A-Fa-f]{56}|[0-9A-Fa-f]{96}|[0-9A-Fa-f]{128})[ \t]+\S.*"
    rb"|[A-Za-z0-9/-]{2,16} ?\(.+\) ?= ?[0-9A-Za-z+/=]+[ \t]*)",
    re.DOTALL,
)
#: No path is as long as this, and no line is worth the time.
_LONGEST_LINE = 16 << 10
#: After so many lines that are none, it is no checksum file.
_MOST_BROKEN = 10_000
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
_ESCAPE = re.compile(rb"\\(.?)", re.DOTALL)
_BOM = b"\xef\xbb\xbf"


class Sum(NamedTuple):
    """One line: a file's name relative to the checksum file's folder, and the sha256 that it should have."""

    name: bytes
    sha256: str


@dataclass(slots=True)
class Sums:
    """What a checksum file says, and what of it cannot be used."""

    sums: list[Sum] = field(default_factory=list)
    #: How many lines are no checksum at all, and the number of the first.
    broken: int = 0
    first_broken: int = 0
    #: How many lines name a path out of the folder, and how many are of another algorithm.
    outside: int = 0
    other: int = 0
    #: The rest was not read.
    given_up: bool = False

    def add(self, text: bytes, number: int) -> None:
        """Take one line."""
        name, digest = _parse_line(text)
        if digest is None and _OTHER.fullmatch(text):
            self.other += 1
        elif digest is None or name is None:
            self.broken += 1
            self.first_broken = self.first_broken or number
        elif (path := inside(name)) is None:
            self.outside += 1
        else:
            self.sums.append(Sum(path, digest))


def parse_sums(raw: bytes, stem: bytes | None = None) -> Sums:
    """Parse a checksum file's bytes; `stem` is the file that a digest without a name is of. Never raises."""
    found = Sums()
    raw = raw.removeprefix(_BOM)
    bare = _BARE.fullmatch(raw)
    if bare and stem:
        found.sums.append(Sum(stem, bare[1].decode().lower()))
        return found
    for number, line in enumerate(raw.split(b"\n"), 1):
        text = line.removesuffix(b"\r")
        if not text.strip() or text.startswith(b"#"):
            continue
        found.add(text if len(text) <= _LONGEST_LINE else b"", number)
        if found.broken == _MOST_BROKEN:
            found.given_up = True
            break
    return found


def _parse_line(text: bytes) -> tuple[bytes | None, str | None]:
    """Name and digest; no name where its escapes are none, no digest where this is no line of sha256."""
    if gnu := _GNU.fullmatch(text):
        escaped, digest, name = gnu.groups()
    elif bsd := _BSD.fullmatch(text):
        escaped, name, digest = bsd.groups()
    else:
        return None, None
    return (_unescaped(name) if escaped else name), digest.decode().lower()


def _unescaped(name: bytes) -> bytes | None:
    if any(match[0] not in _ESCAPES for match in _ESCAPE.finditer(name)):
        return None
    return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], name)
