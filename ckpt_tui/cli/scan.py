"""`ckpt-tui scan`: identity and content of one checkpoint on this machine."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from ..digest import Scanner
from ..facts.outcome import Interrupted, scan_code
from .options import format_option, scan_options, scan_settings
from .progress import shown
from .stopping import stopping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts.files import FileResult
    from ..facts.scan import ScanResult


@click.command()
@click.argument("path")
@click.option("--identity-only", is_flag=True, help="Headers, config and index alone: no tensor byte is read.")
@click.option("--segments", is_flag=True, help="Put every file's segment table into the JSON.")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the JSON, segment tables included, to this file.")
@click.option("--strict", is_flag=True, help="Leave with 1 on warnings too.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Plain ASCII marks.")
@scan_options
@format_option("sha256sum")
def command(
    *,
    path: str,
    identity_only: bool,
    segments: bool,
    save: str | None,
    strict: bool,
    ascii_only: bool,
    format_: str,
    **scan: Any,
) -> int:
    """What is this checkpoint? Its identity (metadata), its content (every byte), and what is wrong with it.

    PATH is a folder, a .safetensors file, a repo id (org/name) of the local hub cache, or a snapshot folder.
    """
    if format_ == "sha256sum" and (scan["fast"] or identity_only):
        raise click.UsageError("--format sha256sum needs the sha256 that --fast and --identity-only leave out")
    settings = scan_settings(identity_only=identity_only, segments=segments or save is not None, **scan)
    scanner = Scanner(path, settings)
    with stopping(scanner.cancel) as stop:
        try:
            with shown(scanner.progress):
                result = scanner.run()
        except Interrupted as interrupted:
            print(f"ckpt-tui: {interrupted}", file=sys.stderr)
            return stop.code
    if save is not None:
        from ..report import json, write

        write.write(save, json.encode(result), force=True)
    if not segments:
        result = _without_tables(result)
    _emit(_rendered(result, format_, ascii_only=ascii_only))
    return scan_code(result, strict=strict)


def _without_tables(result: ScanResult) -> ScanResult:
    import msgspec

    replace = msgspec.structs.replace
    return replace(result, files=tuple(replace(file, segment_table=None) for file in result.files))


def _rendered(result: ScanResult, format_: str, *, ascii_only: bool) -> bytes:
    if format_ == "quiet":
        return b""
    if format_ == "sha256sum":
        return b"".join(map(_checksum_line, result.files))
    if format_ == "human":
        from ..report import text

        encoding = sys.stdout.encoding or "ascii"
        plain = ascii_only or not encoding.lower().startswith("utf")
        return text.scan_text(result, time.time(), ascii_only=plain).encode(encoding, "backslashreplace")
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


def _emit(data: bytes) -> None:
    """The result, past Python's buffers. A reader that wants no more of it does not change what the scan found."""
    from ..worker.lifetime import write_all

    sys.stdout.flush()
    with suppress(BrokenPipeError):
        write_all(sys.stdout.fileno(), data)
