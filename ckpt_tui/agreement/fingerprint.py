"""What one rank says of its checkpoint, made from its scan. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from ..facts.agreement import Fingerprint, TableRow
from ..facts.files import UNDECIDED_STATES, Claim, FileResult, Finding, Role, Severity, Source, State
from ..facts.scan import DIGEST_LAYOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..facts.scan import CheckpointRef, NotCompared, ScanResult

#: Listed, never counted: they are no part of the checkpoint.
_APART = frozenset({State.EXTRA, State.IGNORED})
#: Claims of these kinds come from the hub, and so may accuse a copy; sums made locally vindicate nobody.
HUB_CLAIM = "hub"
#: Files of a rank that are named with what is wrong with them; the rest is counted.
_REASONS = 3


def fingerprint(result: ScanResult, rank: int) -> Fingerprint:
    """The fingerprint of a scan, whether it read the bytes or (`identity_only`) metadata alone."""
    files = [file for file in result.files if file.state not in _APART]
    weights = [file for file in files if file.role is Role.WEIGHTS]
    table = content_table(result)
    short = _shortcomings(table, result.findings, files)
    return Fingerprint(
        rank=rank,
        host=result.host,
        path=result.checkpoint.path,
        file_system=result.file_system or "",
        layout=result.digest_layout,
        tool=result.tool,
        identity=result.identity,
        content=result.content,
        content_sha256=result.content_sha256,
        logical_content=result.logical_content,
        sidecars=result.sidecars,
        segmentation=_segmentation(table),
        copy_id=result.copy_id,
        files=len(weights),
        files_cached=sum(file.source is Source.CACHE for file in weights),
        oldest_digest=min((file.hashed_at for file in weights if file.hashed_at is not None), default=None),
        broken=short.broken,
        undecided=short.undecided,
        reasons=short.reasons,
        claims_kept=sum(_recorded(file.claims) is True for file in files),
        claims_broken=tuple(file.name for file in files if _recorded(file.claims) is False),
        repo_id=result.checkpoint.repo_id,
        revision=result.checkpoint.revision,
        not_compared=result.not_compared,
        warnings=result.warnings,
        partial=_table_digest(table) if result.content is None else None,
        recorded=tuple(role for role in Role if _all_recorded(files, role)),
    )


def identity_fingerprint(
    *,
    rank: int,
    host: str,
    tool: str,
    ref: CheckpointRef,
    identity: str | None,
    table: Sequence[TableRow],
    findings: Sequence[Finding] = (),
    file_system: str = "",
    copy_id: str | None = None,
    not_compared: tuple[NotCompared, ...] = (),
) -> Fingerprint:
    """What is known before a tensor byte is read; `table` holds the digests of headers and sidecars."""
    rows = tuple(row for row in table if row.state not in _APART)
    short = _shortcomings(rows, findings, ())
    return Fingerprint(
        rank=rank,
        host=host,
        path=ref.path,
        file_system=file_system,
        layout=DIGEST_LAYOUT,
        tool=tool,
        identity=identity,
        content=None,
        content_sha256=None,
        logical_content=None,
        sidecars=None,
        segmentation=_segmentation(rows),
        copy_id=copy_id,
        files=sum(row.role is Role.WEIGHTS for row in rows),
        files_cached=0,
        oldest_digest=None,
        broken=short.broken,
        undecided=short.undecided,
        reasons=short.reasons,
        repo_id=ref.repo_id,
        revision=ref.revision,
        not_compared=not_compared,
        partial=_table_digest(rows),
    )


def failed(rank: int, host: str, path: str, error: str, *, tool: str = "") -> Fingerprint:
    """A rank whose answer is its error."""
    return Fingerprint(
        rank=rank,
        host=host,
        path=path,
        file_system="",
        layout=DIGEST_LAYOUT,
        tool=tool,
        identity=None,
        content=None,
        content_sha256=None,
        logical_content=None,
        sidecars=None,
        segmentation=None,
        copy_id=None,
        files=0,
        files_cached=0,
        oldest_digest=None,
        error=error,
    )


def content_table(result: ScanResult) -> tuple[TableRow, ...]:
    """The file table that is exchanged where contents differ, in the scan's order."""
    return tuple(
        TableRow(
            name=file.name,
            role=file.role,
            size=file.size,
            state=file.state,
            digest=file.digest,
            segmentation=file.segmentation,
            sha256=file.sha256,
            segments=file.segments,
            recorded=_recorded(file.claims),
            error=file.error,
        )
        for file in result.files
        if file.state not in _APART
    )


def _recorded(claims: Iterable[Claim]) -> bool | None:
    """Whether the hub's recorded hashes hold: one that is broken decides."""
    verdicts = {claim.holds for claim in claims if claim.kind.startswith(HUB_CLAIM)} - {None}
    return None if not verdicts else verdicts == {True}


def _all_recorded(files: Iterable[FileResult], role: Role) -> bool:
    verdicts = {_recorded(file.claims) for file in files if file.role is role}
    return verdicts == {True}


class _Shortcomings(NamedTuple):
    """What is not good and what is not decided, as `name: word`, and the first few with the reason."""

    broken: tuple[str, ...]
    undecided: tuple[str, ...]
    reasons: tuple[str, ...]


def _shortcomings(rows: Sequence[TableRow], findings: Iterable[Finding], files: Iterable[FileResult]) -> _Shortcomings:
    """A claim that is broken and a finding that is an error count as well as a state: whatever makes a scan leave with
    1 keeps an agreement from being said.
    """
    words = {row.name: row.state.value for row in rows if row.state is not State.GOOD}
    reasons = {row.name: row.error for row in rows if row.error}
    for file in files:
        if any(claim.holds is False for claim in file.claims):
            words.setdefault(file.name, State.DIGEST_MISMATCH.value)
    for finding in findings:
        if finding.severity is Severity.ERROR and (finding.file or not words):
            words.setdefault(finding.file or "checkpoint", finding.code)
            reasons.setdefault(finding.file or "checkpoint", finding.message)
    undecided = {name for name, word in words.items() if word in UNDECIDED_STATES}
    told = [f"{name}: {word}" + (f" ({reasons[name]})" if name in reasons else "") for name, word in words.items()]
    more = len(told) - _REASONS
    return _Shortcomings(
        broken=tuple(f"{name}: {word}" for name, word in words.items() if name not in undecided),
        undecided=tuple(f"{name}: {words[name]}" for name in words if name in undecided),
        reasons=(*told[:_REASONS], *((f"and {more:,} more",) if more > 0 else ())),
    )


def _segmentation(rows: Iterable[TableRow]) -> str:
    """How the weight files are cut: the one method's name, or a digest of each file's method."""
    methods = {row.name: row.segmentation or "" for row in rows if row.role is Role.WEIGHTS}
    if len(set(methods.values())) == 1:
        return next(iter(methods.values()))
    return _digest("segmentation", *(part for name in sorted(methods) for part in (name, methods[name])))


def _table_digest(rows: Iterable[TableRow]) -> str:
    parts = ((row.name, row.role, str(row.size), row.state, row.digest or "") for row in rows)
    return _digest("table", *(part for row in sorted(parts) for part in row))


def _digest(domain: str, *parts: str) -> str:
    """SHA-256 over length-prefixed parts, so that no two lists of parts read alike."""
    state = hashlib.sha256()
    for part in (f"ckpt-tui/{domain}/1", *parts):
        raw = part.encode()
        state.update(len(raw).to_bytes(8, "big") + raw)
    return state.hexdigest()
