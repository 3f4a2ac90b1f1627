"""What `scan` and `verify` share: one checkpoint is scanned with a bar and under signals, and its result is printed."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from ..digest import Scanner
from ..facts.outcome import Interrupted
from .progress import shown, words
from .stopping import stopping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts.files import FileResult
    from ..facts.scan import ScanResult
    from ..facts.settings import ScanSettings


def scanned(path: str, settings: ScanSettings) -> ScanResult | int:
    """The scan's result; the exit code where a signal ended it."""
    scanner = Scanner(path, settings)
    with stopping(scanner.cancel) as stop:
        try:
            with shown(scanner.progress, words):
                return scanner.run()
        except Interrupted as interrupted:
            print(f"ckpt-tui: {interrupted}", file=sys.stderr)
            return stop.code


def without_tables(result: ScanResult) -> ScanResult:
    """The result without its segment tables, which fill a screen."""
    import msgspec

    replace = msgspec.structs.replace
    return replace(result, files=tuple(replace(file, segment_table=None) for file in result.files))


def rendered(result: ScanResult, format_: str, *, ascii_only: bool, hashes: bool = False) -> bytes:
    """The result as the wanted format has it; `hashes` adds, for people, what is on record of the files."""
    if format_ == "quiet":
        return b""
    if format_ == "sha256sum":
        return b"".join(map(_checksum_line, result.files))
    if format_ == "human":
        from ..report import text

        encoding = sys.stdout.encoding or "ascii"
        plain = ascii_only or not encoding.lower().startswith("utf")
        return text.scan_text(result, time.time(), ascii_only=plain, hashes=hashes).encode(encoding, "backslashreplace")
    from ..report import json

    if format_ == "json":
        return json.encode(result)
    return b"".join(_json_lines(result))


def _json_lines(result: ScanResult) -> Iterator[bytes]:
    """A line for each file, and at the end the result without its files."""
    import msgspec

    from ..report import json

    yield from map(json.encode, result.files)
    yield json.encode(msgspec.structs.replace(result, files=()))


def _checksum_line(file: FileResult) -> bytes:
    """As `sha256sum` writes it and `sha256sum -c` reads it; nothing for a file whose sha256 is not known."""
    from ..present.safe import unescape

    if file.sha256 is None:
        return b""
    raw = os.fsencode(unescape(file.name))
    safe = raw.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    mark = b"\\" if safe != raw else b""
    return mark + file.sha256.encode() + b"  " + safe + b"\n"
