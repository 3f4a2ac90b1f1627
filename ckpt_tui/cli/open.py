"""`ckpt-tui PATH`: the screen on one checkpoint; without a terminal, scan's plain output."""

from __future__ import annotations

import locale
import os
import sys
from typing import Any

import click
import msgspec

from ..present.safe import escape
from .options import scan_options, scan_settings


@click.command(name="open")
@click.argument("path")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with plain ASCII.")
@scan_options
@click.pass_context
def command(ctx: click.Context, /, path: str, *, ascii_only: bool, **scan: Any) -> int:
    """Watch one checkpoint being scanned: a folder, a .safetensors file, or a repo id in the local hub cache.

    Where there is no terminal, this is `ckpt-tui scan PATH`.
    """
    if not is_terminal():
        from .scan import command as scan_command

        return int(ctx.invoke(scan_command, path=path, ascii_only=ascii_only, **scan) or 0)
    try:
        settings = msgspec.json.encode(scan_settings(**scan)).decode()
    except UnicodeEncodeError as error:
        raise click.UsageError(
            f"{escape(str(error.object))}: a name that is not UTF-8 cannot be an option here"
        ) from error
    from ..tui import run

    return run(
        ["scan", f"--settings={settings}", "--", path],
        title=escape(path),
        ascii_only=ascii_only or not speaks_utf8(),
        plain=wants_no_colour(),
    )


def is_terminal() -> bool:
    """Whether a screen can be opened: stdin, stdout and stderr are terminals, and not a dumb one."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return os.environ.get("TERM", "dumb") != "dumb" and all(
        stream is not None and stream.isatty() for stream in streams
    )


def is_own_terminal() -> bool:
    """Whether this process has a terminal to itself: what torchrun starts sees one, and hears of no resize."""
    if not is_terminal():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def speaks_utf8() -> bool:
    """Whether the locale's encoding is UTF-8."""
    return locale.getpreferredencoding(do_setlocale=False).replace("-", "").lower() == "utf8"


def wants_no_colour() -> bool:
    """Whether NO_COLOR is set and not empty."""
    return bool(os.environ.get("NO_COLOR"))
