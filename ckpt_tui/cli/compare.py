"""`ckpt-tui compare`: do these hold the same checkpoint? Without any ranks."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from ..facts.outcome import agreement_code
from .options import format_option, scan_options, scan_settings

if TYPE_CHECKING:
    from ..facts.agreement import Agreement


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="A B [C ...]")
@click.option("--identity-only", is_flag=True, help="Headers, config and index alone; equal ones decide nothing (3).")
@click.option("--strict", is_flag=True, help="Leave with 1 on warnings too.")
@scan_options
@format_option()
def command(*, targets: tuple[str, ...], identity_only: bool, strict: bool, format_: str, **scan: Any) -> int:
    """Do these hold the same checkpoint, byte for byte, and if not, which files and which tensors differ?

    Each is a folder, a .safetensors file, a repo id (org/name) of the local hub cache, or the JSON of a saved scan.
    They take the places of ranks, numbered from 0. Folder names are never compared.
    """
    from ..library import compare

    agreement = compare(targets, scan_settings(identity_only=identity_only, **scan))
    sys.stdout.flush()
    sys.stdout.buffer.write(_rendered(agreement, format_))
    sys.stdout.buffer.flush()
    return agreement_code(agreement, strict=strict)


def _rendered(agreement: Agreement, format_: str) -> bytes:
    if format_ == "quiet":
        return b""
    if format_ in {"json", "jsonl"}:
        from ..report import json

        return json.encode(agreement)
    from ..report import text

    return text.agreement_text(agreement, time.time()).encode(sys.stdout.encoding or "ascii", "backslashreplace")
