"""What is on record of a checkpoint's files, and whether they keep it, as lines of text. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.expected import ClaimKind
from ..present import units, words
from ..present.glyphs import RECORDED
from .columns import table, wrapped

if TYPE_CHECKING:
    from ..facts.files import Claim, FileResult
    from ..facts.scan import ScanResult

#: Files that are named before the rest is counted; the JSON holds all.
_NAMED = 20
#: Records of which every file has its own, said once for all files.
_SAID_ONCE = {
    ClaimKind.HUB_BLOB.value: "the names of the blobs in the hub cache",
    ClaimKind.DOWNLOAD.value: "the notes of the download",
}


def summary(result: ScanResult) -> str:
    """`2 of 3 weight files match the recorded hash (hub)`; '' where nothing is on record."""
    weights = words.weight_files(result)
    recorded = [file for file in weights if file.claims]
    if not recorded:
        return ""
    if all(words.kept(file.claims) is None for file in recorded):
        return f"hashes of {units.count(len(recorded), 'weight file')}, not checked"
    matching = [file for file in weights if words.kept(file.claims)]
    by = words.recorded_by([claim for file in matching for claim in file.claims])
    verb = "matches" if len(weights) == 1 and matching else "match"
    said = f"{len(matching):,} of {units.count(len(weights), 'weight file')} {verb} the recorded hash"
    return f"{said} ({by})" if by else said


def lines(result: ScanResult, *, ascii_only: bool = False) -> list[str]:
    """The section of a verification: each record with how many files keep it, each broken hash, and what has none."""
    files = [file for file in result.files if file.source is not None or file.claims]
    found = ["", "  recorded hashes"]
    for origin, claims in _by_origin(files).items():
        counts = [sum(claim.holds is held for claim in claims) for held in (True, False, None)]
        told = [
            f"{number:,} {what}"
            for number, what in zip(counts, ("kept", "broken", "not checked"), strict=True)
            if number
        ]
        held = False if counts[1] else True if counts[0] else None
        found += wrapped(_mark(held, ascii_only), f"{origin}: {', '.join(told)}", indent=4, hang=6)
    for file in files:
        for claim in file.claims:
            if claim.holds is False:
                found += _broken(file, claim, ascii_only)
    bare = [file.name for file in result.files if not file.claims]
    if bare:
        more = f" and {len(bare) - _NAMED:,} more" if len(bare) > _NAMED else ""
        names = "any file" if len(bare) == len(result.files) else ", ".join(bare[:_NAMED]) + more
        found += wrapped(_mark(None, ascii_only), f"nothing is recorded of {names}", indent=4, hang=6)
    return found


def _mark(held: bool | None, ascii_only: bool) -> str:
    return f"{RECORDED[held].char(ascii_only=ascii_only)} "


def _by_origin(files: list[FileResult]) -> dict[str, list[Claim]]:
    found: dict[str, list[Claim]] = {}
    for file in files:
        for claim in file.claims:
            found.setdefault(_SAID_ONCE.get(claim.kind, claim.origin), []).append(claim)
    return found


def _broken(file: FileResult, claim: Claim, ascii_only: bool) -> list[str]:
    """Both hashes whole, one below the other, as people compare them."""
    rows = [["recorded", f"{claim.algorithm} {claim.expected}"]]
    if claim.algorithm == "sha256" and file.sha256:
        rows.append(["computed", f"{claim.algorithm} {file.sha256}"])
    said = f"{file.name}: breaks the recorded hash ({claim.origin})"
    return [*wrapped(_mark(False, ascii_only), said, indent=4, hang=6), *table(rows, "<<", 8)]
