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
    click.option("--force", is_flag=True, help="Replace a file that is there already."),
)


def report_options(function: F) -> F:
    """The options about a report: `report`, `redact` and `force`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def check_report(report: str | None, *, redact: bool, force: bool, late: bool = False) -> None:
    """Refuse what cannot be written before hours are spent on it; with `late` not yet for what is `in_the_way`."""
    if report is None:
        if redact or force:
            raise click.UsageError(f"{'--redact' if redact else '--force'} goes with --report")
        return
    from ..report.saving import format_of

    format_of(report)
    if (why := in_the_way(report, force=force)) and not late:
        raise UsageError(why)


def in_the_way(report: str | None, *, force: bool) -> str:
    """Why this file cannot be written; '' where nothing is in the way."""
    if report is None or force or not os.path.lexists(report):
        return ""
    return f"{escape(report)}: is there already; --force replaces it"


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
