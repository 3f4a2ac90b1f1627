"""Where a result goes (stdout, `--report`, `--save`): looked at before the work begins, written when it is done."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..facts.outcome import CkptError, Exit, UsageError
from ..present.safe import escape
from .stdout import emit

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


def check_save(path: str | None) -> None:
    """The same for a file that is replaced without being asked for it."""
    if why := in_the_way(path, force=True):
        raise UsageError(why)


def in_the_way(path: str | None, *, force: bool) -> str:
    """Why this file cannot be written; '' where nothing is in the way as far as can be seen."""
    if path is None:
        return ""
    if os.path.lexists(path):
        return "" if force else f"{escape(path)}: is there already; --force replaces it"
    folder = Path(path).parent
    if not folder.is_dir():
        return f"{escape(path)}: cannot be written: there is no folder {escape(str(folder))}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{escape(path)}: cannot be written: nothing may be made in {escape(str(folder))}"
    return ""


def write_report(result: Agreement | ScanResult, report: str | None, *, redact: bool, force: bool) -> bool:
    """Write it, if one is wanted. False where that failed, which is told and takes nothing from the result."""
    if report is None:
        return True
    from ..report.saving import save

    return _told(lambda: save(result, report, force=force, redact=redact))


def write_result(result: ScanResult, path: str | None) -> bool:
    """Its JSON, if that is wanted; as `write_report`."""
    if path is None:
        return True
    from ..report import json, write

    return _told(lambda: write.write(path, json.encode(result), force=True))


def print_result(data: bytes) -> bool:
    """To stdout; as `write_report`."""
    return _told(lambda: emit(data))


def unless_lost(code: Exit, *, written: bool) -> Exit:
    """3 in place of 0 where something that was to be written is not; any other code says more."""
    return code if written or code is not Exit.SAME else Exit.UNDECIDED


def _told(write: Callable[[], object]) -> bool:
    try:
        write()
    except CkptError as error:
        print(f"ckpt-tui: {error}", file=sys.stderr)
        return False
    return True
