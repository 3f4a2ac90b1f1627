"""`ckpt-tui verify`: does a checkpoint keep every hash that is on record of it?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..checkpoint.presence import EXTRA, MISSING
from ..facts.outcome import scan_code
from .options import format_option, scan_options, scan_settings
from .reporting import (
    check_report,
    check_save,
    print_result,
    report_options,
    unless_lost,
    write_report,
    write_result,
)
from .scanning import rendered, scanned, without_tables

if TYPE_CHECKING:
    from ..facts.expected import Expected, Manifest


class FailOn(click.ParamType[tuple[str, ...]]):
    """`missing`, `extra`, or both with a comma between them."""

    name = "what"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words, each once."""
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if unknown := [word for word in words if word not in {MISSING, EXTRA}]:
            self.fail(f"{unknown[0]!r} is neither {MISSING} nor {EXTRA}", param, ctx)
        return tuple(dict.fromkeys(words))


@click.command()
@click.argument("path")
@click.option(
    "--expect",
    multiple=True,
    metavar="FILE",
    help="What to expect: a checksum file, saved scan, manifest or signature. May be given again.",
)
@click.option("--online", is_flag=True, help="Expect what the hub says now; asks it through huggingface_hub.")
@click.option("--repo", metavar="ORG/NAME[@REV]", help="Where on the hub PATH comes from.  [default: as PATH says]")
@click.option("--save-manifest", metavar="FILE", help="Write what the hub says to a file, for --expect elsewhere.")
@click.option("--fail-on", type=FailOn(), default=(), metavar="missing,extra", help="Leave with 1 on these too.")
@click.option("--sizes-only", is_flag=True, help="Presence and sizes alone: no tensor byte is read.")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the result's JSON to this file.")
@click.option("--strict", is_flag=True, help="Leave with 1 on warnings too.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Plain ASCII marks.")
@report_options
@scan_options
@format_option()
def command(
    *,
    path: str,
    expect: tuple[str, ...],
    online: bool,
    repo: str | None,
    save_manifest: str | None,
    fail_on: tuple[str, ...],
    sizes_only: bool,
    save: str | None,
    strict: bool,
    ascii_only: bool,
    report: str | None,
    redact: bool,
    force: bool,
    format_: str,
    **scan: Any,
) -> int:
    """Does this checkpoint keep every hash that is on record of it?

    Records are found by themselves: in the hub cache, beside a download, in a git-lfs clone, in SHA256SUMS and signing
    manifests beside the checkpoint. --expect and --online add theirs, and all are checked. docs/claims.md says what
    each of them proves.
    """
    if scan["fast"] and not sizes_only:
        raise click.UsageError("--fast leaves out the sha256 that recorded hashes are made of")
    if not online and (repo is not None or save_manifest is not None):
        raise click.UsageError(f"{'--repo' if repo is not None else '--save-manifest'} goes with --online")
    check_report(report, redact=redact, force=force)
    check_save(save)
    expected: tuple[Expected, ...] = ()
    if expect:
        from ..checkpoint.expect import read_all_expected

        expected = read_all_expected(expect)
    if online:
        expected += (_asked(path, repo, save_manifest),)
    settings = scan_settings(identity_only=sizes_only, segments=save is not None, **scan)
    result = scanned(path, msgspec.structs.replace(settings, expected=expected, fail_on=fail_on))
    if isinstance(result, int):
        return result
    written = print_result(rendered(without_tables(result), format_, ascii_only=ascii_only, hashes=not sizes_only))
    written &= write_result(result, save)
    written &= write_report(without_tables(result), report, redact=redact, force=force)
    return unless_lost(scan_code(result, strict=strict), written=written)


def _asked(path: str, repo: str | None, save_to: str | None) -> Expected:
    """What the hub says of the files, written down first if that is wanted."""
    from ..checkpoint.expect import expected_of
    from ..facts.expected import ClaimKind

    manifest = _fetched(path, repo)
    expected = expected_of(manifest, ClaimKind.HUB_ONLINE, f"the hub ({manifest.endpoint})")
    if save_to is not None:
        from ..report import json, write

        write.write(save_to, json.encode(manifest), force=True)
        named = f"{manifest.repo_id}@{manifest.revision}"
        print(f"ckpt-tui: the manifest of {named}, {len(manifest.files):,} files, is saved", file=sys.stderr)
    return expected


def _fetched(path: str, repo: str | None) -> Manifest:
    from ..checkpoint.find import parse_repo_id
    from ..checkpoint.online import fetch, source_of
    from ..facts.clock import SystemClock

    source = source_of(path)
    repo_id, revision = source.repo_id, source.revision
    if repo is not None:
        named = parse_repo_id(repo)
        if named is None:
            raise click.UsageError(f"--repo {repo}: no repo id; write it like org/name or org/name@revision")
        repo_id, revision = named[0], named[1] or revision
    if repo_id is None:
        raise click.UsageError("nothing here says which repo of the hub this is: name it with --repo org/name")
    return fetch(repo_id, revision, SystemClock())
