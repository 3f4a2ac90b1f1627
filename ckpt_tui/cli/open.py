"""`ckpt-tui PATH`: the screen on one checkpoint; without a terminal, scan's plain output."""

from __future__ import annotations

import locale
import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from ..facts.outcome import UsageError
from ..present.safe import escape
from .lines import narrate, plain_option, record_options, recorder
from .options import scan_options, scan_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stream.recording import Recorder


@click.command(name="open")
@click.argument("path")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with plain ASCII.")
@plain_option
@record_options
@scan_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    path: str,
    *,
    ascii_only: bool,
    line_by_line: bool,
    record: str | None,
    force: bool,
    **scan: Any,
) -> int:
    """Watch one checkpoint being scanned: a folder, a .safetensors file, or a repo id in the local hub cache.

    PATH may be the JSON of a saved scan or agreement too. Where there is no terminal, this is `ckpt-tui scan PATH`, or
    of a saved result `ckpt-tui report PATH`.
    """
    if path.endswith(".json") and os.path.isfile(path):  # noqa: PTH113 - a name too long is no file
        if record is not None:
            raise UsageError("--record keeps a stream, and a saved result is none")
        from . import report

        if is_terminal() and not line_by_line:
            return report.on_screen(path, ascii_only=ascii_only)
        return int(ctx.invoke(report.command, file=path, format_="human") or 0)
    if not is_terminal() and not line_by_line:
        if record is not None:
            raise UsageError("--record keeps what a screen is told, and there is no terminal for one: add --plain")
        from .scan import command as scan_command

        return int(ctx.invoke(scan_command, path=path, ascii_only=ascii_only, **scan) or 0)
    try:
        settings = msgspec.json.encode(scan_settings(**scan)).decode()
    except UnicodeEncodeError as error:
        raise click.UsageError(
            f"{escape(str(error.object))}: a name that is not UTF-8 cannot be an option here"
        ) from error
    return watch(
        ["scan", f"--settings={settings}", "--", path],
        title=escape(path),
        ascii_only=ascii_only,
        line_by_line=line_by_line,
        recorder=recorder(record, force=force),
    )


def watch(
    worker_argv: Sequence[str],
    *,
    title: str,
    start_view: Literal["files", "ranks"] = "files",
    ascii_only: bool,
    line_by_line: bool,
    recorder: Recorder | None,
) -> int:
    """Watch a worker, on a screen or line by line, and return the exit code."""
    from ..tui import run, worker

    try:
        if line_by_line:
            return narrate(worker(worker_argv, recorder), title)
        return run(
            worker_argv,
            title=title,
            start_view=start_view,
            ascii_only=ascii_only or not speaks_utf8(),
            plain=wants_no_colour(),
            recorder=recorder,
        )
    finally:
        if recorder is not None:
            recorder.close()
            if recorder.problem is not None:
                print(f"ckpt-tui: {recorder.problem}", file=sys.stderr)


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
