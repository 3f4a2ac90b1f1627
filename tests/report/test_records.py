"""The section of a verification: each record once, each broken hash whole, and what has none."""

from __future__ import annotations

import msgspec

from ckpt_tui.facts.files import Claim, FileResult
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.report.text import scan_text
from tests.agreement.made_up import S1, S2, scan_of, tiny
from tests.report.test_text import checked

A, B = "a" * 64, "b" * 64


def claim(*, kind: str = "hub-blob", expected: str = A, holds: bool | None = True, origin: str = "its blob") -> Claim:
    return Claim(kind=kind, algorithm="sha256", expected=expected, holds=holds, origin=origin)


def result(**claims: tuple[Claim, ...]) -> ScanResult:
    """A scan whose first and second shard have these claims."""
    scan = scan_of(tiny())
    given = {S1: claims.get("first", ()), S2: claims.get("second", ())}

    def with_claims(file: FileResult) -> FileResult:
        return msgspec.structs.replace(file, claims=given.get(file.name, ()), sha256=A)

    return msgspec.structs.replace(scan, files=tuple(map(with_claims, scan.files)))


def shown(scan: ScanResult, *, ascii_only: bool = False) -> str:
    text = scan_text(scan, 0.0, ascii_only=ascii_only, hashes=True)
    checked(text)
    return " ".join(text.split())


def test_each_record_is_said_once_with_how_many_keep_it() -> None:
    text = shown(result(first=(claim(), claim(kind="sums", origin="SHA256SUMS")), second=(claim(origin="another"),)))
    assert "recorded 2 of 2 weight files match the recorded hash (hub, sums)" in text
    assert "✓ the names of the blobs in the hub cache: 2 kept" in text
    assert "✓ SHA256SUMS: 1 kept" in text
    assert "– nothing is recorded of" in text


def test_a_broken_hash_is_shown_whole_beside_the_computed_one() -> None:
    broken = claim(kind="sums", expected=B, holds=False, origin="SHA256SUMS")
    text = shown(result(first=(claim(), broken)))
    assert "✗ sums" in text
    assert "✗ SHA256SUMS: 1 broken" in text
    assert f"{S1}: breaks the recorded hash (SHA256SUMS) recorded sha256 {B} computed sha256 {A}" in text
    assert "0 of 2 weight files match the recorded hash" in text


def test_what_was_not_checked_is_said_and_what_is_not_recorded_too() -> None:
    text = shown(result(first=(claim(holds=None),)))
    assert "– not checked" in text
    assert "recorded hashes of 1 weight file, not checked" in text
    assert "the names of the blobs in the hub cache: 1 not checked" in text
    assert "nothing is recorded of any file" in shown(result())


def test_plain_marks_are_plain() -> None:
    assert shown(result(first=(claim(),), second=(claim(expected=B, holds=False),)), ascii_only=True).isascii()
