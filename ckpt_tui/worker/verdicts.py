"""The verdict line's words: what is wrong so far, and how a scan or a session came out. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..facts.files import BROKEN_STATES, UNDECIDED_STATES, Role, Severity, State
from ..facts.outcome import Exit, agreement_code, scan_code
from ..facts.ranksets import named
from ..facts.status import Phase
from ..present import units
from ..stream.messages import FileRow, VerdictRow, Word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..facts.agreement import Agreement
    from ..facts.files import FileResult, Finding
    from ..facts.scan import ScanResult
    from ..facts.status import RankStatus

#: Files, differences or findings named one by one on leaving.
_LISTED = 8
_TROUBLED = BROKEN_STATES | UNDECIDED_STATES | {State.SUSPECT}


def scan_trouble(rows: Iterable[FileRow], findings: Iterable[Finding]) -> VerdictRow | None:
    """The outcome so far, if there is anything to say."""
    troubled = [(row.role, row.state) for row in rows if row.state in _TROUBLED]
    if troubled:
        broken = any(state in BROKEN_STATES for _, state in troubled)
        return VerdictRow(word=Word.DAMAGED if broken else Word.UNDECIDED, text=_counted(troubled))
    error = next((finding for finding in findings if finding.severity is Severity.ERROR), None)
    return VerdictRow(word=Word.DAMAGED, text=error.message) if error else None


def ranks_trouble(statuses: Iterable[RankStatus]) -> VerdictRow | None:
    """The outcome so far over all ranks: who is lost, who could not read, who has a bad file."""
    known = list(statuses)
    failed = [status.rank for status in known if status.phase is Phase.FAILED or status.error]
    lost = [status.rank for status in known if status.phase is Phase.LOST]
    bad = [status.rank for status in known if "!" in status.cells]
    if lost:
        return VerdictRow(word=Word.INCOMPLETE, text=f"{named(lost)} lost")
    if bad:
        return VerdictRow(word=Word.DAMAGED, text=f"bad files on {named(bad)}")
    return VerdictRow(word=Word.UNDECIDED, text=f"{named(failed)} failed") if failed else None


def _counted(troubled: Sequence[tuple[Role, State]]) -> str:
    """`1 shard truncated, 2 sidecars missing`."""
    nouns = {Role.WEIGHTS: "shard", Role.SIDECAR: "sidecar"}
    counts = Counter(troubled)
    return ", ".join(f"{units.count(number, nouns[role])} {state}" for (role, state), number in counts.items())


def scan_verdict(result: ScanResult, now: float) -> VerdictRow:
    """How a scan came out."""
    code = scan_code(result)
    troubled = [file for file in result.files if file.state in _TROUBLED]
    if code is not Exit.SAME:
        word = Word.DAMAGED if code is Exit.DIFFERENT else Word.UNDECIDED
        errors = [finding.message for finding in result.findings if finding.severity is Severity.ERROR]
        text = _counted([(file.role, file.state) for file in troubled]) or next(iter(errors), "see the findings")
        lines = [_file_line(file) for file in troubled] or errors
        return VerdictRow(word=word, text=f"{text}   {_work(result, now)}", lines=_listed(lines), code=code)
    weights = [file for file in result.files if file.role is Role.WEIGHTS]
    verified = bool(weights) and all(any(claim.holds for claim in file.claims) for file in weights)
    lines = [_file_line(file) for file in troubled]
    if result.content is not None:
        lines.append(f"content   {result.content}")
    if result.identity is not None:
        lines.append(f"identity  {result.identity}")
    against = "" if verified else "   nothing recorded to check against"
    return VerdictRow(
        word=Word.VERIFIED if verified else Word.DONE,
        text=_work(result, now) + against,
        also=_counted([(file.role, file.state) for file in troubled]),
        lines=_listed(lines),
        code=code,
    )


def _work(result: ScanResult, now: float) -> str:
    """`33/33 cached   0.0 GiB read   0.1 s   oldest digest 3 d`."""
    totals = result.totals
    unit = units.size_unit(totals.bytes)
    read = f"{units.in_unit(totals.bytes_read, unit)} {unit[0]} read"
    parts = [f"{totals.files_cached}/{totals.files} cached", read, units.duration(totals.seconds)]
    hashed = [file.hashed_at for file in result.files if file.hashed_at is not None]
    if totals.files_cached and hashed:
        parts.append(f"oldest digest {units.age(now - min(hashed))}")
    elif totals.seconds > 0 and totals.bytes_read:
        parts.append(units.rate(totals.bytes_read / totals.seconds))
    return "   ".join(parts)


def _file_line(file: FileResult) -> str:
    error = file.error or ""
    said = error if error.startswith(file.state) else f"{file.state}: {error}" if error else file.state.value
    return f"{file.name}: {said}"


def _listed(lines: Sequence[str]) -> tuple[str, ...]:
    if len(lines) <= _LISTED:
        return tuple(lines)
    return (*lines[: _LISTED - 1], f"and {len(lines) - _LISTED + 1:,} more")


def agreement_verdict(agreement: Agreement, now: float) -> VerdictRow:
    """How a session came out: the sentence, who is missing, and where it differs."""
    oldest = [report.oldest_digest for report in agreement.ranks if report.oldest_digest is not None]
    text = agreement.summary
    if agreement.verdict == "agree" and oldest:
        ago = units.age(now - min(oldest))
        text += "   every digest is new" if ago == "now" else f"   oldest digest {ago}"
    lines = []
    for difference in agreement.differences:
        names = ", ".join(segment.name for segment in difference.segments[:2])
        left_out = len(difference.segments[2:]) + difference.segments_left_out
        more = f" and {left_out:,} more" if left_out else ""
        where = f": {names}{more}" if names else ""
        lines.append(f"{difference.file}{where}: {difference.cause.summary}")
    also = ""
    if agreement.absent and agreement.verdict != "incomplete":
        also = f"{named(agreement.absent)} lost"
    elif agreement.errors and agreement.verdict != "undecided":
        also = f"{named(error.rank for error in agreement.errors)} failed"
    lines += agreement.absent_detail
    lines += [f"rank {error.rank}: {error.message}" for error in agreement.errors]
    return VerdictRow(
        word=Word(agreement.verdict.upper()), text=text, also=also, lines=_listed(lines), code=agreement_code(agreement)
    )
