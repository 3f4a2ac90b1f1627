"""`--report FILE` of commands that come to a result: looked at before the work begins, written when it is done."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..facts.outcome import CkptError, UsageError
from ..present.safe import escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts.agreement import Agreement
    from ..facts.scan import ScanResult

F = TypeVar("F", bound="Callable[..., Any]")

_OPTIONS = (
    click.option(
        "--report", type=click.Path(dir_okay=False), help="Write a report to this file: .json, .md or .html says how."
    ),
    click.option("--redact", is_flag=True, help="Leave host names and paths out of the report."),
    click.option("--force", is_flag=True, help="Replace a report that is there."),
)


def report_options(function: F) -> F:
    """The options about a report: `report`, `redact` and `force`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def check_report(report: str | None, *, redact: bool, force: bool) -> None:
    """Refuse what cannot be written before hours are spent on it."""
    if report is None:
        if redact or force:
            raise click.UsageError(f"{'--redact' if redact else '--force'} goes with --report")
        return
    from ..report.saving import format_of

    format_of(report)
    if os.path.lexists(report) and not force:
        raise UsageError(f"{escape(report)}: is there already; --force replaces it")


def write_report(result: Agreement | ScanResult, report: str | None, *, redact: bool, force: bool) -> bool:
    """Write it, if one is wanted. False where that failed, which is told and takes nothing from the result."""
    if report is None:
        return True
    from ..report.saving import save

    try:
        save(result, report, force=force, redact=redact)
    except CkptError as error:
        print(f"ckpt-tui: {error}", file=sys.stderr)
        return False
    return True
