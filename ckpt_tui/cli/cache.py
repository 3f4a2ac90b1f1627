"""`ckpt-tui cache`: what this machine remembers of files, and whether the disk still agrees."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..facts.cached import Fate
from ..facts.clock import SystemClock
from ..facts.outcome import Exit, Interrupted
from .options import Age, Rate, Size, format_option, scan_settings
from .stdout import emit

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..digest.upkeep import Upkeep
    from ..facts.cached import CacheReport

F = TypeVar("F", bound="Callable[..., Any]")

_FOLDER = click.option("--cache-dir", type=click.Path(file_okay=False), help="Where the digest cache lies.")
_ALL_HOSTS = click.option("--all-hosts", is_flag=True, help="The records of all hosts that share the folder.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
_PATHS = click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
_OLDER = click.option("--older-than", type=Age(), help="Only what is older than this, e.g. 30d.")


class InOrder(click.Group):
    """Commands in the order in which they are wanted: to look first, to remove last."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they are defined."""
        return list(self.commands)


@click.group(cls=InOrder)
def command() -> None:
    """The digests that this machine remembers.

    A record speaks for a file only while its size, times and inode are what they were. Removing one costs no more than
    reading its file again.
    """


def _with(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """These options, and those of every command."""

    def decorate(function: F) -> F:
        for option in reversed((*options, _FOLDER, format_option())):
            function = option(function)
        return function

    return decorate


@command.command("list", short_help="What is remembered, the oldest first.")
@_with(
    _PATHS, click.option("--files", "each", is_flag=True, help="Every file, and what its record is worth."), _ALL_HOSTS
)
def list_(*, paths: tuple[str, ...], each: bool, all_hosts: bool, cache_dir: str | None, format_: str) -> int:
    """What is remembered, the oldest first: of everything, or below the paths."""
    upkeep = _upkeep(cache_dir, all_hosts=all_hosts)
    return _print(upkeep.records(paths, each=each or format_ in {"json", "jsonl"}), format_)


@command.command(short_help="How much is remembered, and what it saved.")
@_with(_ALL_HOSTS)
def stats(*, all_hosts: bool, cache_dir: str | None, format_: str) -> int:
    """How much is remembered, how often it answered, and how many bytes were not read for it."""
    return _print(_upkeep(cache_dir, all_hosts=all_hosts).stats(), format_)


@command.command(short_help="Read remembered files again: does the disk agree?")
@_with(
    _PATHS,
    click.option("--limit", type=click.IntRange(1), help="Read at most so many files."),
    click.option("--max-bytes", type=Size(), help="Read at most so many bytes (but one file at least), e.g. 50G."),
    _OLDER,
    click.option("--max-rate", type=Rate(), default=0.0, help="Read at most this many bytes a second, e.g. 200M."),
    click.option("--strict", is_flag=True, help="Leave with 1 where anything is not proven, changed or gone too."),
    _DRY_RUN,
)
def scrub(
    *,
    paths: tuple[str, ...],
    limit: int | None,
    max_bytes: int | None,
    older_than: float | None,
    max_rate: float,
    strict: bool,
    dry_run: bool,
    cache_dir: str | None,
    format_: str,
) -> int:
    """Read remembered files again, past the page cache, those first that were read longest ago.

    Other bytes under the same size, times and inode are corruption, and leave with 1. A file whose times have moved is
    not read: the next scan will. Where pages stayed in memory, it says "not proven".
    """
    upkeep = _upkeep(cache_dir)
    entries = upkeep.to_scrub(paths, older_than=older_than, limit=limit, max_bytes=max_bytes)
    if dry_run:
        return _print(upkeep.scrub_plan(entries), format_)
    from ..digest.control import Control
    from ..digest.progress import ScanProgress
    from .progress import shown, words
    from .stopping import stopping

    control, progress = Control(SystemClock(), max_rate), ScanProgress()
    with stopping(control.cancel) as stop:
        try:
            with shown(progress, words):
                report = upkeep.scrub(entries, control, progress)
        except Interrupted as interrupted:
            print(f"ckpt-tui: {interrupted}", file=sys.stderr)
            return stop.code
    _print(report, format_)
    return scrub_code(report, strict=strict)


@command.command(short_help="Remove records that no file needs.")
@_with(
    click.option("--older-than", type=Age(), help="Also what was neither read nor used for so long, e.g. 30d."),
    _DRY_RUN,
    _ALL_HOSTS,
)
def prune(*, older_than: float | None, dry_run: bool, all_hosts: bool, cache_dir: str | None, format_: str) -> int:
    """Remove records of files that are gone, and records that cannot be used."""
    upkeep = _upkeep(cache_dir, all_hosts=all_hosts)
    return _print(upkeep.prune(older_than=older_than, dry_run=dry_run), format_)


@command.command(short_help="Forget everything, or what lies below the paths.")
@_with(_PATHS, _DRY_RUN, _ALL_HOSTS)
def clear(*, paths: tuple[str, ...], dry_run: bool, all_hosts: bool, cache_dir: str | None, format_: str) -> int:
    """Forget everything, or what lies below the paths. Files that are not ours stay."""
    return _print(_upkeep(cache_dir, all_hosts=all_hosts).clear(paths, dry_run=dry_run), format_)


@command.command(short_help="Where the records lie.")
@_with()
def path(*, cache_dir: str | None, format_: str) -> int:
    """Where the records of this host lie."""
    return _print(_upkeep(cache_dir).path(), format_)


def scrub_code(report: CacheReport, *, strict: bool) -> Exit:
    """Corruption before what could not be read; with `strict` whatever is not proven intact is worth a 1."""
    fates = {one.fate for one in report.scrubbed}
    doubtful = any(one.fate is not Fate.INTACT or not one.proven for one in report.scrubbed)
    if Fate.CORRUPT in fates or (strict and doubtful):
        return Exit.DIFFERENT
    return Exit.UNDECIDED if Fate.UNREADABLE in fates else Exit.SAME


def _upkeep(cache_dir: str | None, *, all_hosts: bool = False) -> Upkeep:
    from ..digest.upkeep import Upkeep

    return Upkeep(scan_settings(cache_dir=cache_dir), SystemClock(), all_hosts=all_hosts)


def _print(report: CacheReport, format_: str) -> int:
    for warning in report.warnings:
        print(f"ckpt-tui: {warning}", file=sys.stderr)
    emit(_rendered(report, format_))
    return Exit.SAME


def _rendered(report: CacheReport, format_: str) -> bytes:
    """The report in the wanted format; as lines, its rows come first and its sums last."""
    if format_ == "quiet":
        return b""
    if format_ == "human":
        from ..report.cached import cache_text

        return cache_text(report, time.time()).encode(sys.stdout.encoding or "ascii", "backslashreplace")
    import msgspec

    from ..report import json

    if format_ == "json":
        return json.encode(report)
    rows = (*report.folders, *report.files, *report.removed, *report.scrubbed)
    rest = msgspec.structs.replace(report, folders=(), files=(), removed=(), scrubbed=())
    return b"".join(map(json.encode, (*rows, rest)))
