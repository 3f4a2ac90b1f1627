"""From what is known of each file to the scan's result: claims settled, states named, digests composed. Pure."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ..checkpoint.findings import Findings
from ..facts.files import (
    Claim,
    FileResult,
    Finding,
    Role,
    Segment,
    Segmentation,
    Severity,
    Source,
    State,
    settles,
)
from ..facts.scan import DIGEST_LAYOUT, SCAN_SCHEMA, ScanResult, Totals
from ..native.names import joined
from . import layout
from .cut import cut, segments
from .survey import APART
from .zeros import written_zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .cache import Earlier, Record
    from .hashing import Outcome
    from .survey import Survey

#: States of a file that was read whole and lacks nothing. Bytes that break a claim are known bytes all the same.
_WHOLE = frozenset({State.GOOD, State.SUSPECT, State.AMBIGUOUS, State.DIGEST_MISMATCH})
_ALGORITHMS = {"sha256": "sha256", "git-sha1": "git_sha1"}


def segment_table(outcome: Outcome) -> tuple[Segment, ...] | None:
    """The segments of a file, where its digests are known."""
    if outcome.record is None:
        return None
    return segments(cut(outcome.file.header, outcome.file.size), outcome.record.segments)


def file_result(outcome: Outcome, *, with_segments: bool = False) -> FileResult:
    """One file of the scan's result."""
    file, record, miss = outcome.file, outcome.record, outcome.miss
    claims = tuple(_settled(claim, record) for claim in file.claims)
    state, error = _judged(outcome, claims)
    return FileResult(
        name=file.name,
        role=file.role,
        size=file.size,
        state=state,
        digest=record.digest.hex() if record else None,
        segmentation=record.segmentation if record else None,
        source=outcome.source,
        hashed_at=record.hashed_at if record else None,
        segments=len(record.segments) // layout.WIDTH if record else 0,
        claims=claims,
        sha256=record.sha256.hex() if record and record.sha256 else None,
        miss_reason=miss.reason if miss else None,
        miss_detail=miss.detail if miss else None,
        segment_table=segment_table(outcome) if with_segments else None,
        error=error,
        name_bytes=None if _is_utf8(file.raw_name) else file.raw_name.hex(),
    )


def _settled(claim: Claim, record: Record | None) -> Claim:
    computed = _computed(claim, record)
    if computed is None:
        return claim
    return Claim(
        kind=claim.kind,
        algorithm=claim.algorithm,
        expected=claim.expected,
        holds=computed == claim.expected.lower(),
        origin=claim.origin,
    )


def _computed(claim: Claim, record: Record | None) -> str | None:
    digest: bytes | None = getattr(record, _ALGORITHMS.get(claim.algorithm, ""), None)
    return digest.hex() if digest else None


def _judged(outcome: Outcome, claims: Sequence[Claim]) -> tuple[State, str | None]:
    """The state in which the file ends: a broken claim speaks against a good file, a kept one for a suspect file.

    Sums that may have been made from these very bytes settle no suspicion: zeros keep them too.
    """
    if outcome.state in {State.GOOD, State.SUSPECT}:
        for claim in claims:
            if claim.holds is False:
                computed = _computed(claim, outcome.record) or ""
                words = f"{claim.algorithm} {computed[:12]} is not the recorded {claim.expected[:12]} ({claim.origin})"
                return State.DIGEST_MISMATCH, words
        if any(claim.holds and settles(claim) for claim in claims):
            return State.GOOD, None
        if outcome.record and outcome.record.earlier:
            return State.DIGEST_MISMATCH, corruption(outcome.record, outcome.record.earlier)
    if outcome.state is State.GOOD and outcome.record and outcome.file.header:
        unwritten = written_zeros(outcome.file.header, outcome.record.segments)
        if unwritten:
            return State.SUSPECT, unwritten
    return outcome.state, outcome.error


def corruption(record: Record, earlier: Earlier) -> str:
    """What it means that a file reads as other bytes under the same stat; the new ones may be the right ones."""
    before, now = (time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(one.hashed_at)) for one in (earlier, record))
    return (
        f"corruption: size, times and inode have not moved, and its bytes have. xxh3 {earlier.digest.hex()[:12]} as of "
        f"{before}, {record.digest.hex()[:12]} as of {now}"
    )


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


class Frame(NamedTuple):
    """What a result says beside the files."""

    host: str
    #: What tells this host from others (`digest.host.host_id`).
    host_id: str
    tool: str
    created: float
    warnings: tuple[str, ...]
    bytes_read: int
    seconds: float
    threads: int


def scan_result(
    survey: Survey,
    outcomes: Sequence[Outcome],
    files: Sequence[FileResult],
    *,
    frame: Frame,
    sha256: bool,
    logical: Callable[[bytes, Callable[[], bytes]], bytes],
) -> ScanResult:
    """The result of a scan. `files` are the outcomes' own, in the same order.

    `logical` gives the logical content for a content, by the function it is handed or from what it remembers.
    """
    checkpoint = survey.checkpoint
    counted = [(o, f) for o, f in zip(outcomes, files, strict=True) if f.state not in APART]
    weights = [(o, f) for o, f in counted if f.role is Role.WEIGHTS]
    whole = [(o, o.record) for o, f in weights if o.record and f.state in _WHOLE]
    # Where an index is not known any more there may be others.
    unnamed = any(f.digest is None and f.name in checkpoint.named_by for f in files)
    if len(whole) < len(weights) or unnamed or not checkpoint.settled:
        whole = []
    stale = any(f.state is State.CHANGED for _, f in counted)
    content = layout.content([_member(o, r.digest) for o, r in whole])
    tabled = all(r.segmentation is Segmentation.SAFETENSORS for _, r in whole)
    located = [o for o, _ in weights if o.location]
    return ScanResult(
        schema=SCAN_SCHEMA,
        host=frame.host,
        tool=frame.tool,
        digest_layout=DIGEST_LAYOUT,
        created=frame.created,
        checkpoint=checkpoint.ref,
        identity=None if stale else survey.identity,
        content=_hex(content),
        logical_content=_hex(logical(content, lambda: _logical(whole)) if content and tabled else None),
        sidecars=_sidecars([o for o, f in counted if f.role is Role.SIDECAR]),
        files=tuple(files),
        findings=_findings(checkpoint.findings, outcomes, files),
        not_compared=checkpoint.not_compared,
        totals=Totals(
            files=len(counted),
            bytes=sum(f.size for _, f in counted),
            files_cached=sum(o.source is Source.CACHE for o, _ in counted),
            bytes_read=frame.bytes_read,
            seconds=round(frame.seconds, 6),
            threads=frame.threads,
        ),
        content_sha256=_content_sha256(whole) if sha256 else None,
        copy_id=_copy_id(located, frame.host_id) if len(located) == len(weights) else None,
        file_system=", ".join(dict.fromkeys(str(o.location.file_system) for o in located if o.location)) or None,
        warnings=frame.warnings,
    )


def _hex(digest: bytes | None) -> str | None:
    return digest.hex() if digest else None


def _member(outcome: Outcome, digest: bytes) -> layout.Member:
    return layout.Member(outcome.file.raw_name, outcome.file.size, digest)


def _content_sha256(whole: Sequence[tuple[Outcome, Record]]) -> str | None:
    members = [_member(outcome, record.sha256) for outcome, record in whole if record.sha256]
    return _hex(layout.content_sha256(members)) if len(members) == len(whole) else None


def _logical(whole: Sequence[tuple[Outcome, Record]]) -> bytes:
    """Over the tensors of all files. A file that is whole holds its header and then its tensors, and no gaps."""
    tables = [outcome.file.header.tensors for outcome, _ in whole if outcome.file.header]
    return layout.logical_content(
        layout.TensorFacts(
            names=joined([table.names for table in tables]),
            dtypes=[*chain.from_iterable(table.dtypes for table in tables)],
            shapes=[*chain.from_iterable(table.shapes for table in tables)],
            digests=b"".join(record.segments[layout.WIDTH :] for _, record in whole),
        )
    )


def _sidecars(outcomes: Sequence[Outcome]) -> str | None:
    members = [_member(outcome, outcome.record.digest) for outcome in outcomes if outcome.record]
    return layout.sidecars(members).hex() if len(members) == len(outcomes) else None


def _copy_id(outcomes: Sequence[Outcome], host_id: str) -> str | None:
    places = []
    for outcome in outcomes:
        if outcome.location:
            file_system, device, inode = outcome.location
            source = file_system.shared_source
            where, device = (source, 0) if source else (host_id, device)
            places.append(layout.Place(outcome.file.raw_name, where.encode(), device, inode))
    return _hex(layout.copy_id(places))


def _findings(
    audited: Sequence[Finding], outcomes: Sequence[Outcome], files: Sequence[FileResult]
) -> tuple[Finding, ...]:
    """What the audit found, less what a kept claim cleared up, and what came to light while the bytes were read."""
    cleared = {
        file.name
        for outcome, file in zip(outcomes, files, strict=True)
        if outcome.state is State.SUSPECT and file.state is State.GOOD
    }
    findings = Findings(found for found in audited if not (found.code == State.SUSPECT.value and found.file in cleared))
    for outcome, file in zip(outcomes, files, strict=True):
        earlier = outcome.record.earlier if outcome.record else None
        if outcome.record and earlier:
            message = f"{file.name}: {corruption(outcome.record, earlier)}"
            findings.add("corruption", Severity.ERROR, message, file=file.name)
        broken = any(claim.holds is False for claim in file.claims)
        if file.state is not outcome.file.state and file.state is not State.GOOD and (broken or not earlier):
            findings.state(file.state, file.error or "", file.name)
    return tuple(findings)
