"""`ckpt-tui scan`: identity and content of one checkpoint on this machine."""

from __future__ import annotations

from typing import Any

import click

from ..facts.outcome import scan_code
from .options import format_option, scan_options, scan_settings
from .reporting import check_save, print_result, unless_lost, write_result
from .scanning import rendered, scanned, without_tables


@click.command()
@click.argument("path")
@click.option("--identity-only", is_flag=True, help="Headers, config and index alone: no tensor byte is read.")
@click.option("--segments", is_flag=True, help="Put every file's segment table into the JSON.")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the JSON, segment tables included, to this file.")
@click.option("--strict", is_flag=True, help="Leave with 1 on warnings too.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Plain ASCII marks.")
@scan_options
@format_option("sha256sum")
def command(
    *,
    path: str,
    identity_only: bool,
    segments: bool,
    save: str | None,
    strict: bool,
    ascii_only: bool,
    format_: str,
    **scan: Any,
) -> int:
    """What is this checkpoint? Its identity (metadata), its content (every byte), and what is wrong with it.

    PATH is a folder, a .safetensors file, a repo id (org/name) of the local hub cache, or a snapshot folder.
    """
    if format_ == "sha256sum" and (scan["fast"] or identity_only):
        raise click.UsageError("--format sha256sum needs the sha256 that --fast and --identity-only leave out")
    check_save(save)
    settings = scan_settings(identity_only=identity_only, segments=segments or save is not None, **scan)
    result = scanned(path, settings)
    if isinstance(result, int):
        return result
    shown = result if segments else without_tables(result)
    written = print_result(rendered(shown, format_, ascii_only=ascii_only))
    written &= write_result(result, save)
    return unless_lost(scan_code(result, strict=strict), written=written)
