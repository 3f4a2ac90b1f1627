"""`ckpt-tui compare`: do these hold the same checkpoint? Without any ranks."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..facts.drill import DRILL_BYTES
from ..facts.outcome import Interrupted, agreement_code
from .options import Size, format_option, scan_options, scan_settings
from .progress import shown
from .stdout import emit
from .stopping import stopping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..digest import Scanner
    from ..facts.agreement import Agreement


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="A B [C ...]")
@click.option("--identity-only", is_flag=True, help="Headers, config and index alone; equal ones decide nothing (3).")
@click.option(
    "--drill-bytes",
    type=Size(),
    default=DRILL_BYTES,
    show_default="64M",
    help="How much of each may be read again, to say which bytes differ and why.",
)
@click.option("--strict", is_flag=True, help="Leave with 1 on warnings too.")
@scan_options
@format_option()
def command(
    *, targets: tuple[str, ...], identity_only: bool, drill_bytes: int, strict: bool, format_: str, **scan: Any
) -> int:
    """Do these hold the same checkpoint, byte for byte, and if not, which bytes differ, and why?

    Each is a folder, a .safetensors file, a repo id (org/name) of the local hub cache, or the JSON of a saved scan.
    They take the places of ranks, numbered from 0. Folder names are never compared.
    """
    from ..library import compare

    settings = scan_settings(identity_only=identity_only, **scan)
    turns = _Turns()
    with stopping(turns.cancel) as stop:
        try:
            agreement = compare(*targets, settings=settings, watch=turns.watch, drill_bytes=drill_bytes)
        except Interrupted as interrupted:
            print(f"ckpt-tui: {interrupted}", file=sys.stderr)
            return stop.code
    emit(_rendered(agreement, format_))
    return agreement_code(agreement, strict=strict)


class _Turns:
    """Whose turn it is to be hashed: its progress is shown, and it is what a wish to stop reaches."""

    def __init__(self) -> None:
        self._scanner: Scanner | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """Stop the one that is being read, and all that would come after it."""
        self._cancelled = True
        if self._scanner is not None:
            self._scanner.cancel()

    @contextmanager
    def watch(self, _place: int, scanner: Scanner) -> Iterator[None]:
        """The turn of one checkpoint."""
        self._scanner = scanner
        if self._cancelled:
            scanner.cancel()
        with shown(scanner.progress):
            yield


def _rendered(agreement: Agreement, format_: str) -> bytes:
    if format_ == "quiet":
        return b""
    if format_ == "human":
        from ..present.sides import Sides
        from ..report import text

        shown = text.agreement_text(agreement, time.time(), Sides.by_folder(agreement))
        return shown.encode(sys.stdout.encoding or "ascii", "backslashreplace")
    from ..report import json

    return json.encode(agreement)
