"""Exit codes: 1 before 3, and warnings only under --strict."""

from __future__ import annotations

import pytest

from ckpt_tui.facts.files import Claim, FileResult, Finding, Role, Severity, State
from ckpt_tui.facts.outcome import Exit, scan_code
from ckpt_tui.facts.scan import SCAN_SCHEMA, CheckpointKind, CheckpointRef, ScanResult, Totals


def result(*states: State, findings: tuple[Finding, ...] = (), holds: bool | None = None) -> ScanResult:
    claims = (Claim(kind="hub-blob", algorithm="sha256", expected="00", holds=holds, origin="blob name"),)
    files = tuple(
        FileResult(name=f"{place}.safetensors", role=Role.WEIGHTS, size=1, state=state, digest=None, segmentation=None,
                   source=None, hashed_at=None, segments=0, claims=claims)
        for place, state in enumerate(states)
    )  # fmt: skip
    return ScanResult(
        schema=SCAN_SCHEMA, host="h", tool="t", digest_layout=1, created=0.0, identity=None, content=None,
        checkpoint=CheckpointRef(path="/x", kind=CheckpointKind.FOLDER), logical_content=None, sidecars=None,
        files=files, findings=findings, not_compared=(),
        totals=Totals(files=1, bytes=1, files_cached=0, bytes_read=1, seconds=1.0, threads=1),
    )  # fmt: skip


WARNING = Finding(code="extra", severity=Severity.WARNING, message="a copy lies beside it")


@pytest.mark.parametrize(
    ("found", "code", "strict"),
    [
        (result(State.GOOD), Exit.SAME, Exit.SAME),
        (result(State.GOOD, findings=(WARNING,)), Exit.SAME, Exit.DIFFERENT),
        (result(State.GOOD, State.UNREADABLE), Exit.UNDECIDED, Exit.UNDECIDED),
        (result(State.CHANGED), Exit.UNDECIDED, Exit.UNDECIDED),
        (result(State.UNREADABLE, State.TRUNCATED), Exit.DIFFERENT, Exit.DIFFERENT),
        (result(State.GOOD, holds=False), Exit.DIFFERENT, Exit.DIFFERENT),
        (result(State.GOOD, holds=True), Exit.SAME, Exit.SAME),
    ],
)
def test_damage_decides_before_what_could_not_be_read(found: ScanResult, code: Exit, strict: Exit) -> None:
    assert scan_code(found) is code
    assert scan_code(found, strict=True) is strict
