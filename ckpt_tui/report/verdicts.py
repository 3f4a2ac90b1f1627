"""The verdict line's words: what is wrong so far, and how a scan or a session came out. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.agreement import Verdict
from ..facts.files import BROKEN_STATES, Severity
from ..facts.outcome import Exit, agreement_code, scan_code
from ..facts.ranksets import named
from ..facts.status import Phase
from ..present import words
from ..present.sides import Sides
from ..stream.messages import VerdictRow, Word
from . import records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..facts.agreement import Agreement
    from ..facts.files import Finding
    from ..facts.scan import ScanResult
    from ..facts.status import RankStatus
    from ..stream.messages import FileRow

#: Files, differences or findings named one by one on leaving.
_LISTED = 8


def scan_trouble(rows: Iterable[FileRow], findings: Iterable[Finding]) -> VerdictRow | None:
    """The outcome so far, if there is anything to say."""
    troubled = [row for row in rows if row.state in words.TROUBLED]
    if troubled:
        broken = any(row.state in BROKEN_STATES for row in troubled)
        return VerdictRow(word=Word.DAMAGED if broken else Word.UNDECIDED, text=words.problems(troubled))
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


def scan_verdict(result: ScanResult, now: float) -> VerdictRow:
    """How a scan came out."""
    code = scan_code(result)
    word = Word(words.scan_word(result))
    troubled = [file for file in result.files if file.state in words.TROUBLED]
    lines = [f"{file.name}: {words.state_words(file, file.error)}" for file in troubled]
    if code is not Exit.SAME:
        errors = [finding.message for finding in result.findings if finding.severity is Severity.ERROR]
        return VerdictRow(word=word, text=words.scan_headline(result, now), lines=_listed(lines or errors), code=code)
    if result.content is not None:
        lines.append(f"content   {result.content}")
    if result.identity is not None:
        lines.append(f"identity  {result.identity}")
    return VerdictRow(
        word=word,
        text=f"{words.saved(result, now)}; {records.summary(result) or 'nothing recorded to check against'}",
        also=words.problems(troubled),
        lines=_listed(lines),
        code=code,
    )


def _listed(lines: Sequence[str]) -> tuple[str, ...]:
    if len(lines) <= _LISTED:
        return tuple(lines)
    return (*lines[: _LISTED - 1], f"and {len(lines) - _LISTED + 1:,} more")


def agreement_verdict(agreement: Agreement, now: float, *, strict: bool = False) -> VerdictRow:
    """How a session came out: the sentence, who is missing, and where it differs. `strict` is `agreement_code`'s."""
    sides = Sides.of(agreement)
    text = sides.told(agreement.summary)
    if agreement.verdict is Verdict.AGREE:
        text += f"; {words.rested_on(agreement, now, sides.count(len(agreement.ranks)))}"
    lines = []
    for difference in agreement.differences:
        names = ", ".join(segment.name for segment in difference.segments[:2])
        left_out = len(difference.segments[2:]) + difference.segments_left_out
        more = f" and {left_out:,} more" if left_out else ""
        where = f": {names}{more}" if names else ""
        lines.append(f"{difference.file}{where}: {words.cause_words(difference)}")
    also = ""
    if agreement.absent and agreement.verdict is not Verdict.INCOMPLETE:
        also = f"{named(agreement.absent)} lost"
    elif agreement.errors and agreement.verdict is not Verdict.UNDECIDED:
        also = sides.told(f"{named(error.rank for error in agreement.errors)} failed")
    lines += agreement.absent_detail
    lines += [sides.told(f"rank {error.rank}: {error.message}") for error in agreement.errors]
    return VerdictRow(
        word=Word(words.verdict_word(agreement)),
        text=text,
        also=also,
        lines=_listed(lines),
        code=agreement_code(agreement, strict=strict),
    )
