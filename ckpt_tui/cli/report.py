"""`ckpt-tui report`: a saved result, rendered for people, an issue tracker or a browser."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..facts.outcome import Exit, UsageError
from ..present.safe import error_text, escape
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
@report_options
def command(*, file: str, format_: str, report: str | None, redact: bool, force: bool) -> int:
    """Show a saved scan or agreement again.

    FILE is the JSON that `scan --save`, `compare --json` or `--report` and `ranks --result` leave behind.
    The code says whether it could be rendered, not what it holds.
    """
    if report is not None or force:
        check_report(report, redact=redact, force=force)
    result = _loaded(file)
    if report is not None:
        return Exit.SAME if write_report(result, report, redact=redact, force=force) else Exit.UNDECIDED
    if redact:
        from ..report.redact import redacted

        result = redacted(result)
    emit(_rendered(result, format_))
    return Exit.SAME


def _loaded(file: str) -> Agreement | ScanResult:
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
