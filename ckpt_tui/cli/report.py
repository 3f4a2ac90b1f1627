"""`ckpt-tui report`: a saved result, rendered for people, an issue tracker or a browser."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..facts.outcome import Exit, UsageError
from ..present.safe import error_text, escape
from .open import is_terminal, speaks_utf8, wants_no_colour
from .reporting import check_report, report_options, write_report
from .stdout import emit

if TYPE_CHECKING:
    from ..facts.agreement import Agreement
    from ..facts.scan import ScanResult

#: A saved scan with the tables of 100,000 tensors is some tens of MB.
_LARGEST = 1 << 30


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--format", "format_", type=click.Choice(["json", "markdown", "html", "human"]), default="human", show_default=True,
    help="What stdout carries; with --report it stays empty.",
)  # fmt: skip
@click.option("--tui", is_flag=True, help="Walk through it on the screen.")
@click.option("--ascii", "ascii_only", is_flag=True, help="With --tui: draw with plain ASCII.")
@report_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    file: str,
    format_: str,
    tui: bool,
    ascii_only: bool,
    report: str | None,
    redact: bool,
    force: bool,
) -> int:
    """Show a saved scan or agreement again.

    FILE is the JSON that `scan --save`, `compare --json` or `--report` and `ranks --result` leave behind.
    The code says whether it could be rendered, not what it holds.
    """
    if tui:
        formatted = ctx.get_parameter_source("format_") is not ParameterSource.DEFAULT
        if report is not None or redact or force or formatted:
            raise UsageError("--tui draws a screen: it goes with no --report, --redact, --force and --format")
        if not is_terminal():
            raise UsageError(f"--tui needs a terminal; without one:  ckpt-tui report {shlex.quote(escape(file))}")
        return on_screen(file, ascii_only=ascii_only)
    if report is not None or force:
        check_report(report, redact=redact, force=force)
    result = loaded(file)
    if report is not None:
        return Exit.SAME if write_report(result, report, redact=redact, force=force) else Exit.UNDECIDED
    if redact:
        from ..report.redact import redacted

        result = redacted(result)
    emit(_rendered(result, format_))
    return Exit.SAME


def on_screen(file: str, *, ascii_only: bool) -> int:
    """Open the screen on a saved result."""
    from ..tui import show

    return show(loaded(file), title=escape(file), ascii_only=ascii_only or not speaks_utf8(), plain=wants_no_colour())


def loaded(file: str) -> Agreement | ScanResult:
    """The scan or agreement that a file holds. UsageError where it holds none."""
    from ..checkpoint.opening import read_file
    from ..report.json import decode

    name = escape(file)
    try:
        return decode(read_file(Path(file), _LARGEST), name)
    except OSError as error:
        raise UsageError(f"{name}: cannot be read as a saved result: {error_text(error)}") from error


def _rendered(result: Agreement | ScanResult, format_: str) -> bytes:
    if format_ == "human":
        from ..facts.agreement import Agreement
        from ..report import text

        now = time.time()
        shown = text.agreement_text(result, now) if isinstance(result, Agreement) else text.scan_text(result, now)
        return shown.encode(sys.stdout.encoding or "ascii", "backslashreplace")
    from ..report.saving import Format, render

    return render(result, Format(format_))
