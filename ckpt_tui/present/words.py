"""Sentences about results: what the command line prints and the screen shows is said once, here. Pure on facts.

Names in facts are escaped text already; nothing in here adds a colour or an escape code.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from ..facts import ranksets
from ..facts.agreement import Between, CauseCode, DifferenceKind, Stage
from ..facts.files import BROKEN_STATES, UNDECIDED_STATES, MissReason, Role, Severity, Source, State
from ..facts.outcome import Exit, scan_code
from . import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..facts.agreement import Agreement, Difference, DifferingSegment, Group, RankReport
    from ..facts.files import Claim, FileResult
    from ..facts.scan import NotCompared, ScanResult


#: Findings that say nothing of a file's bytes (`checkpoint.presence`), and their word; the first that applies is said.
_PRESENCE = {"expected-missing": "MISSING", "unexpected": "EXTRA"}


def scan_word(result: ScanResult) -> str:
    """The one word for a scan: DAMAGED, UNDECIDED, VERIFIED (every shard keeps a recorded hash) or DONE.

    Where nothing is wrong but what was expected and is not there, or there and not expected: MISSING or EXTRA.
    """
    code = scan_code(result)
    if code is Exit.DIFFERENT:
        return _failure(result)
    if code is not Exit.SAME:
        return "UNDECIDED"
    weights = weight_files(result)
    verified = weights and all(file.state is State.GOOD and kept(file.claims) for file in weights)
    return "VERIFIED" if verified else "DONE"


def _failure(result: ScanResult) -> str:
    errors = {finding.code for finding in result.findings if finding.severity is Severity.ERROR}
    if not errors or errors - _PRESENCE.keys() or any(file.state in BROKEN_STATES for file in result.files):
        return "DAMAGED"
    return next(word for code, word in _PRESENCE.items() if code in errors)


def kept(claims: Iterable[Claim]) -> bool | None:
    """Whether a file keeps the hashes on record of it: one that is broken decides; None where none was checked."""
    checked = {claim.holds for claim in claims} - {None}
    return None if not checked else False not in checked


def recorded_by(claims: Sequence[Claim]) -> str:
    """Who speaks in the end, in a word each: `hub`, `hub, sums`; where a hash is broken, whose it is."""
    held = kept(claims)
    said = [claim.kind.partition("-")[0] for claim in claims if claim.holds is held]
    return ", ".join(dict.fromkeys(said))


def scan_headline(result: ScanResult, now: float) -> str:
    """What goes beside the word: what is wrong, then `33/33 cached, 0.0 GiB read, 0.1 s, oldest digest 3 d`."""
    errors = (finding.message for finding in result.findings if finding.severity is Severity.ERROR)
    wrong = problems(result.files) or next(errors, "")
    return "; ".join(part for part in (wrong, saved(result, now)) if part)


def saved(result: ScanResult, now: float) -> str:
    """What the cache saved, in the field's words."""
    weights = weight_files(result)
    cached = sum(file.source is Source.CACHE for file in weights)
    if weights and not any(file.source for file in weights):
        return f"{units.count(len(weights), 'weight file')}, no tensor byte read"
    read = result.totals.bytes_read
    parts = [
        f"{cached:,}/{len(weights):,} cached",
        f"{units.size(read) if read else '0.0 GiB'} read",
        units.duration(result.totals.seconds),
    ]
    if cached:
        times = [file.hashed_at for file in weights if file.source is Source.CACHE and file.hashed_at is not None]
        parts += [f"oldest digest {units.age(now - min(times))}"] if times else []
    return ", ".join(parts)


def weight_files(result: ScanResult) -> list[FileResult]:
    """The weight files that count."""
    apart = {State.EXTRA, State.IGNORED}
    return [file for file in result.files if file.role is Role.WEIGHTS and file.state not in apart]


#: Why the cache could not answer.
MISSES = {
    MissReason.NEW: "not read before",
    MissReason.CHANGED: "changed since",
    MissReason.CORRUPT_RECORD: "damaged record",
    MissReason.OTHER_LAYOUT: "record of another version",
    MissReason.LACKS_SHA256: "record without sha256",
    MissReason.EXPIRED: "record too old",
    MissReason.FORCED: "asked to be read again",
    MissReason.WEAK_FS: "file system not trusted",
    None: "cache not asked",
}


def miss_words(reason: MissReason | None, detail: str | None) -> str:
    """`changed since: mtime`."""
    return f"{MISSES[reason]}: {detail}" if detail else MISSES[reason]


class Stated(Protocol):
    """Whatever has a role, a state and claims: a file's result, or its row on the screen."""

    @property
    def role(self) -> Role: ...
    @property
    def state(self) -> State: ...
    @property
    def claims(self) -> tuple[Claim, ...]: ...


#: What somebody has to know of.
TROUBLED = BROKEN_STATES | UNDECIDED_STATES | {State.SUSPECT}


def state_word(file: Stated) -> str:
    """The state in a word for people. Two things make a digest mismatch: a recorded hash, and what was read before."""
    if file.state is not State.DIGEST_MISMATCH:
        return file.state.value
    return "not as recorded" if kept(file.claims) is False else "corrupt"


def state_words(file: Stated, note: str | None) -> str:
    """`truncated: 12,345 bytes short`; a note that already begins with the state's word says it once."""
    word = state_word(file)
    note = note or word
    return note if note.startswith(word) else f"{word}: {note}"


def problems(files: Iterable[Stated]) -> str:
    """`1 shard truncated, 2 sidecars unreadable`; '' where all are good."""
    counts = Counter((file.role, state_word(file)) for file in files if file.state in TROUBLED)
    nouns = {Role.WEIGHTS: "shard", Role.SIDECAR: "sidecar"}
    return ", ".join(f"{units.count(count, nouns[role])} {word}" for (role, word), count in counts.items())


def verdict_word(agreement: Agreement) -> str:
    """The one word for an agreement."""
    return agreement.verdict.value.upper()


def agreement_headline(agreement: Agreement) -> str:
    """What goes beside the word: the agreement in one sentence, and who else is to be named."""
    absent = agreement.absent
    lost = f"{ranksets.named(absent)} {'is' if len(absent) == 1 else 'are'} absent" if absent else ""
    said = agreement.summary.startswith(ranksets.named(absent)) if absent else True
    return agreement.summary if said else f"{agreement.summary}; {lost}"


def rested_on(agreement: Agreement, now: float, who: str = "") -> str:
    """What an agreement rests on: ranks, hosts, what the caches saved and how old its oldest digest is.

    `who` says how many are compared where `3 ranks` would not be the word for it.
    """
    ranks = agreement.ranks
    if agreement.between is Between.REPLICAS:
        return _in_memory(ranks)
    hosts = len({report.host for report in ranks})
    parts = [f"{who or units.count(len(ranks), 'rank')} on {units.count(hosts, 'host')}"]
    files = sum(report.files for report in ranks)
    cached = sum(report.files_cached for report in ranks)
    if agreement.stage is Stage.CONTENT and files:
        parts.append(f"{cached:,}/{files:,} cached")
    else:
        parts.append("no tensor byte compared")
    oldest = min((report.oldest_digest for report in ranks if report.oldest_digest is not None), default=None)
    if oldest is not None:
        parts.append(f"oldest digest {units.age(max(now - oldest, 0.0))}")
    return ", ".join(parts)


def _in_memory(ranks: Sequence[RankReport]) -> str:
    """`4 ranks on 2 hosts, 210 entries, 1.2 GiB in memory each, 64 B sent at most`."""
    hosts = len({report.host for report in ranks} - {""})
    where = f" on {units.count(hosts, 'host')}" if hosts > 1 else ""
    parts = [
        f"{units.count(len(ranks), 'rank')}{where}",
        units.count(max((report.files for report in ranks), default=0), "entry", "entries"),
        f"{units.size(max((report.bytes for report in ranks), default=0))} in memory each",
        f"{units.size(max((report.bytes_sent for report in ranks), default=0))} told by each at most",
    ]
    return ", ".join(parts)


def not_compared(agreement: Agreement) -> str:
    """What was left out, and why: `2 weight files that no index names, 1.0 GiB`."""
    left_out = agreement.not_compared
    if agreement.between is not Between.REPLICAS:
        return not_named(left_out)
    return f"{units.count(len(left_out), 'name')} left out by pattern, {units.size(sum(one.size for one in left_out))}"


def not_named(left_out: Sequence[NotCompared]) -> str:
    """`2 weight files that no index names, 1.0 GiB`."""
    total = units.size(sum(one.size for one in left_out))
    return f"{units.count(len(left_out), 'weight file')} that no index names, {total}"


def unit_of(agreement: Agreement) -> str:
    """What differences are listed by: files, or of tensors in memory their kinds."""
    return "kind" if agreement.between is Between.REPLICAS else "file"


def place(segment: DifferingSegment) -> str:
    """Where a segment lies in its file; of a tensor in memory, who holds what."""
    if segment.held:
        return "   ".join(f"{label}: {what}" for label, what in segment.held.items())
    return f"at {segment.offset:,}"


def state_of(one: Difference) -> str:
    """How a file differs, or that it could not be compared; of replicas also that it decides nothing."""
    if one.severity is Severity.ERROR:
        in_memory = any(segment.held for segment in one.segments)
        return "kind, dtype or shape" if in_memory and one.kind is DifferenceKind.HEADER else one.kind.value
    return "judged apart" if one.severity is Severity.NOTE else "could not be compared"


def holder(label: str, groups: Sequence[Group]) -> str:
    """`A [0,2]`; a rank that belongs to no group stands for itself: `rank 3`."""
    ranks = next((group.ranks for group in groups if group.name == label), None)
    return label if ranks is None else f"{label} {ranksets.fold(ranks)}"


def cause_words(difference: Difference) -> str:
    """`truncated: the file is shorter than its header needs (B: 12 bytes)`; `perhaps` where metadata alone says so.

    A cause that is not known has no name, only what was seen.
    """
    cause = difference.cause
    facts = f" ({'; '.join(cause.facts)})" if cause.facts else ""
    if cause.code is CauseCode.UNKNOWN:
        return f"{cause.summary}{facts}"
    return f"{'perhaps ' if cause.candidate else ''}{cause.code.value}: {cause.summary}{facts}"
