"""`ckpt-tui compare`: do these hold the same checkpoint? Without any ranks."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..facts.drill import DRILL_BYTES
from ..facts.outcome import Exit, Interrupted, agreement_code
from .options import Size, format_option, scan_options, scan_settings
from .progress import look_words, shown, words
from .reporting import check_report, report_options, write_report
from .stdout import emit
from .stopping import stopping

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from ..copies import LookProgress
    from ..digest import Scanner
    from ..facts.agreement import Agreement


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
@report_options
@scan_options
@format_option()
def command(
    *,
    targets: tuple[str, ...],
    identity_only: bool,
    drill_bytes: int,
    strict: bool,
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
    saved = write_report(agreement, report, redact=redact, force=force)
    emit(_rendered(agreement, format_))
    code = agreement_code(agreement, strict=strict)
    return code if saved or code is not Exit.SAME else Exit.UNDECIDED


def _shown_looking(progress: LookProgress) -> AbstractContextManager[None]:
    return shown(progress, look_words)


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
