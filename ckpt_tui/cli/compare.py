"""`ckpt-tui compare`: do these hold the same checkpoint? Without any ranks."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..facts.drill import DRILL_BYTES
from ..facts.outcome import Interrupted, UsageError, agreement_code
from ..present.safe import escape
from .open import is_terminal, watch
from .options import Size, format_option, scan_options, scan_settings
from .progress import look_words, shown, words
from .reporting import check_report, print_result, report_options, unless_lost, write_report
from .stopping import stopping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..digest import Scanner
    from ..facts.agreement import Agreement
    from ..facts.settings import ScanSettings


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="A B [C ...]")
@click.option("--identity-only", is_flag=True, help="Headers, config and index alone; equal ones decide nothing (3).")
@click.option(
    "--drill-bytes",
    type=Size(),
    default=DRILL_BYTES,
    help="How much of each may be read again, to say which bytes differ and why.  [default: 64M]",
)
@click.option("--strict", is_flag=True, help="Leave with 1 on warnings too.")
@click.option("--tui", is_flag=True, help="Watch it on the screen, and walk from what differs down to its bytes.")
@click.option("--ascii", "ascii_only", is_flag=True, help="With --tui: draw with plain ASCII.")
@report_options
@scan_options
@format_option()
def command(
    *,
    targets: tuple[str, ...],
    identity_only: bool,
    drill_bytes: int,
    strict: bool,
    tui: bool,
    ascii_only: bool,
    report: str | None,
    redact: bool,
    force: bool,
    format_: str,
    **scan: Any,
) -> int:
    """Do these hold the same checkpoint, byte for byte, and if not, which bytes differ, and why?

    Each is a folder, a .safetensors file, a repo id (org/name) of the local hub cache, or the JSON of a saved scan.
    They take the places of ranks, numbered from 0. Folder names are never compared.
    """
    from ..library import compare

    if tui:
        if report is not None or format_ != "human":
            raise UsageError("--tui draws a screen: it goes with no --report and no --format")
        settings = scan_settings(identity_only=identity_only, **scan)
        return _on_screen(targets, settings, drill_bytes, strict=strict, ascii_only=ascii_only)
    check_report(report, redact=redact, force=force)
    settings = scan_settings(identity_only=identity_only, **scan)
    turns = _Turns()
    with stopping(turns.cancel) as stop:
        try:
            agreement = compare(
                *targets,
                settings=settings,
                watch=turns.watch,
                drill_bytes=drill_bytes,
                watch_look=lambda looking: shown(looking, look_words),
            )
        except Interrupted as interrupted:
            print(f"ckpt-tui: {interrupted}", file=sys.stderr)
            return stop.code
    written = write_report(agreement, report, redact=redact, force=force)
    written &= print_result(_rendered(agreement, format_))
    return unless_lost(agreement_code(agreement, strict=strict), written=written)


def _on_screen(
    targets: tuple[str, ...], settings: ScanSettings, drill_bytes: int, *, strict: bool, ascii_only: bool
) -> int:
    """The screen on a worker that compares, and answers what is asked below its verdict."""
    if not is_terminal():
        raise UsageError("--tui needs a terminal; without one, compare prints its answer and --report FILE keeps it")
    try:
        encoded = msgspec.json.encode(settings).decode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{escape(str(error.object))}: a name that is not UTF-8 cannot be an option here") from error
    argv = ["compare", f"--settings={encoded}", f"--drill-bytes={drill_bytes}", *["--strict"] * strict, "--", *targets]
    return watch(
        argv,
        title=" ".join(map(escape, targets)),
        start_view="ranks",
        ascii_only=ascii_only,
        line_by_line=False,
        recorder=None,
    )


class _Turns:
    """Whose turn it is to be hashed: its progress is shown. A wish to stop reaches all whose turn has come."""

    def __init__(self) -> None:
        self._scanners: list[Scanner] = []
        self._cancelled = False

    def cancel(self) -> None:
        """Stop the one that is being read, all that would come after it, and the second look at any of them."""
        self._cancelled = True
        for scanner in self._scanners:
            scanner.cancel()

    @contextmanager
    def watch(self, _place: int, scanner: Scanner) -> Iterator[None]:
        """The turn of one checkpoint."""
        self._scanners.append(scanner)
        if self._cancelled:
            scanner.cancel()
        with shown(scanner.progress, words):
            yield


def _rendered(agreement: Agreement, format_: str) -> bytes:
    if format_ == "quiet":
        return b""
    if format_ == "human":
        from ..report import text

        return text.agreement_text(agreement, time.time()).encode(sys.stdout.encoding or "ascii", "backslashreplace")
    from ..report import json

    return json.encode(agreement)
