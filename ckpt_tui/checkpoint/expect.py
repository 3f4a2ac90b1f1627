"""What a file is expected to hold, read from whatever was handed over: the format is told by the content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..facts.expected import MANIFEST_SCHEMA, ClaimKind, Expected, ExpectedFile, Manifest
from ..facts.outcome import Exit, UsageError, scan_code
from ..facts.scan import SCAN_SCHEMA, ScanResult
from ..present.safe import error_text, escape, is_safe, unescape
from .names import inside
from .opening import read_file
from .recorded import checksums, signing_manifest, stem_of, unused
from .signing import BadManifest, NotSigned, parse_signed
from .sums import parse_sums

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A saved scan with the tables of 100,000 tensors is some tens of MB.
_LIMIT = 1 << 30


class _Head(msgspec.Struct):
    schema: str | None = None


def read_all_expected(paths: Iterable[str]) -> tuple[Expected, ...]:
    """What each of these files states, the same path once; UsageError with a line for every one that is of no use."""
    found: list[Expected] = []
    refused: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            found.append(read_expected(path))
        except UsageError as error:
            refused.append(str(error))
    if refused:
        raise UsageError("\n".join(refused))
    return tuple(found)


def read_expected(path: str) -> Expected:
    """Read a checksum file, a saved scan, a saved manifest or a signing manifest; UsageError where it is none."""
    name = escape(path)
    try:
        raw = read_file(Path(path), _LIMIT)
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error_text(error)}") from None
    if raw.lstrip()[:1] == b"{":
        return _from_json(raw, name)
    sums = parse_sums(raw, stem_of(Path(path).name))
    if not sums.sums or sums.broken or sums.outside:
        words = unused(sums) or "it holds no line"
        raise UsageError(f"{name}: no usable checksum file, saved scan, manifest or signature: {words}")
    return checksums(sums, "", name)


def _from_json(raw: bytes, name: str) -> Expected:
    try:
        schema = msgspec.json.decode(raw, type=_Head).schema
        if schema == MANIFEST_SCHEMA:
            return expected_of(msgspec.json.decode(raw, type=Manifest), ClaimKind.HUB_MANIFEST, name)
        if schema == SCAN_SCHEMA:
            return _from_scan(msgspec.json.decode(raw, type=ScanResult), name)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{name}: cannot be read as what it says it is: {error_text(error)}") from None
    try:
        return signing_manifest(parse_signed(raw), "", name)
    except NotSigned:
        kinds = f"{SCAN_SCHEMA} (a saved scan), {MANIFEST_SCHEMA} and sigstore bundles"
        raise UsageError(f"{name}: JSON of another kind; known are {kinds}") from None
    except BadManifest as error:
        raise UsageError(f"{name}: {error}") from None


def expected_of(manifest: Manifest, kind: ClaimKind, origin: str) -> Expected:
    """What a manifest states of files; UsageError where its names are not what names of ours can be."""
    _check_names(manifest.files, origin)
    if not is_safe(manifest.repo_id) or not is_safe(manifest.revision):
        raise UsageError(f"{origin}: holds names that nothing of ours has written")
    return Expected(
        kind=kind, origin=origin, files=manifest.files, repo_id=manifest.repo_id, revision=manifest.revision
    )


def _from_scan(scan: ScanResult, name: str) -> Expected:
    if scan_code(scan) is not Exit.SAME:
        raise UsageError(f"{name}: a scan of a checkpoint that was damaged or not known; nothing is expected of that")
    files = tuple(
        ExpectedFile(name=file.name, size=file.size, sha256=file.sha256)
        for file in scan.files
        if file.sha256 is not None
    )
    if not files:
        raise UsageError(f"{name}: a scan without sha256 (--fast or --identity-only); there is nothing to expect")
    _check_names(files, name)
    ref = scan.checkpoint
    return Expected(kind=ClaimKind.SAVED_SCAN, origin=name, files=files, repo_id=ref.repo_id, revision=ref.revision)


def _check_names(files: tuple[ExpectedFile, ...], origin: str) -> None:
    """Names become paths: they must be as `escape` makes them, and stay below the root."""
    for file in files:
        if not is_safe(file.name) or not _is_path(unescape(file.name)):
            raise UsageError(f"{origin}: names a file that no checkpoint holds: {escape(file.name)}")


def _is_path(name: str) -> bool:
    try:
        raw = os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return inside(raw) == raw
