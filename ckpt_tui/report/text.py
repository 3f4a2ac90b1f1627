"""Results as plain text for people: the verdict first, then what it rests on. No colour, no escape codes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts import ranksets
from ..facts.agreement import Between, DifferenceKind
from ..facts.files import Role, Severity, Source, State
from ..present import drills, units, words
from ..present.glyphs import RECORDED, state_mark
from ..present.sides import Sides, minority_first
from . import records
from .columns import table, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts.agreement import Agreement, Difference
    from ..facts.files import FileResult, Finding
    from ..facts.scan import CheckpointRef, NotCompared, ScanResult

#: Digits of a digest in a table; it is whole above the table and in the JSON.
DIGITS = 12
#: Files of one kind that are listed before the rest is counted; the JSON holds all.
LISTED = 20
#: Differing segments that are listed for a file.
SEGMENTS = 10


def scan_text(result: ScanResult, now: float, *, ascii_only: bool = False, hashes: bool = False) -> str:
    """A scan: the word, the digests, a line for each file, the findings, and what was left out.

    With `hashes` it ends with what is on record of the files, and whether they keep it.
    """
    lines = wrapped(f"{words.scan_word(result)}  ", words.scan_headline(result, now), indent=0)
    facts = [
        ("checkpoint", _named(result.checkpoint)),
        ("identity", result.identity or "not known"),
        ("content", result.content or "not known"),
        ("sha256", result.content_sha256 or ""),
        ("tensors", result.logical_content or ""),
        ("sidecars", result.sidecars or "not known"),
        ("recorded", records.summary(result)),
    ]
    lines += ["", *table([fact for fact in facts if fact[1]], "<<"), ""]
    lines += _files(result.files, now, ascii_only=ascii_only)
    lines += records.lines(result, ascii_only=ascii_only) if hashes else []
    lines += _findings(result.findings)
    lines += _section("warnings", result.warnings)
    lines += _not_compared(result.not_compared, words.not_named(result.not_compared))
    return "\n".join(lines) + "\n"


def _named(ref: CheckpointRef) -> str:
    if ref.repo_id is None:
        return ref.path
    return f"{ref.repo_id}@{(ref.revision or '')[:DIGITS]}  {ref.path}"


def _files(files: Sequence[FileResult], now: float, *, ascii_only: bool) -> list[str]:
    """The rows that need somebody first, then by name."""
    unit = units.size_unit(max((file.size for file in files), default=0))
    rows = [["", "state", unit[0], "digest from", "recorded", "sha256", "file"]]
    if all(file.sha256 is None for file in files):
        rows[0][5] = "xxh3"
    ordered = sorted(files, key=lambda file: (file.state is State.GOOD, file.role is not Role.WEIGHTS))
    for file in ordered:
        mark = state_mark(file.state)
        digest = file.sha256 if rows[0][5] == "sha256" else file.digest
        rows.append(
            [
                mark.char(ascii_only=ascii_only),
                words.state_word(file),
                units.in_unit(file.size, unit),
                _source(file, now),
                _recorded(file, ascii_only=ascii_only),
                (digest or "")[:DIGITS],
                file.name,
            ]
        )
    for column, title in ((3, "digest from"), (4, "recorded"), (5, rows[0][5])):
        if rows[0][column] == title and not any(row[column] for row in rows[1:]):
            rows[0][column] = ""
    if not any(file.claims for file in files):
        for row in rows:
            row[4] = ""
    return table(rows, "<<><<<<")


def _source(file: FileResult, now: float) -> str:
    if file.source is Source.CACHE:
        return f"cache, {units.age(now - file.hashed_at)}" if file.hashed_at is not None else "cache"
    if file.source is Source.READ:
        why = f": {file.miss_reason.value}" if file.miss_reason else ""
        return f"read{why}"
    return ""


def _recorded(file: FileResult, *, ascii_only: bool) -> str:
    mark = RECORDED[words.kept(file.claims)].char(ascii_only=ascii_only)
    if not file.claims or words.kept(file.claims) is not None:
        return f"{mark} {words.recorded_by(file.claims)}".rstrip()
    return f"{mark} not checked"


def _findings(findings: Sequence[Finding]) -> list[str]:
    order = list(Severity)
    ranked = sorted(findings, key=lambda finding: order.index(finding.severity))
    lines: list[str] = []
    for finding in ranked[:LISTED]:
        lines += wrapped(f"{finding.severity.value:<9}", finding.message, hang=11)
    more = len(ranked) - LISTED
    if more > 0:
        lines.append(f"  and {units.count(more, 'more finding')}")
    return ["", *lines] if lines else []


def _section(title: str, texts: Sequence[str]) -> list[str]:
    """A titled list; nothing where there is nothing to say."""
    lines: list[str] = []
    for text in texts[:LISTED]:
        lines += wrapped("", text, indent=4, hang=6)
    more = len(texts) - LISTED
    if more > 0:
        lines.append(f"    and {more:,} more")
    return ["", f"  {title}", *lines] if lines else []


def _not_compared(left_out: Sequence[NotCompared], what: str) -> list[str]:
    if not left_out:
        return []
    return _section(f"not compared: {what}", [f"{one.name}  {units.size(one.size)}" for one in left_out])


def agreement_text(agreement: Agreement, now: float) -> str:
    """An agreement: the verdict, the groups, what differs, who failed or is absent, and what it rests on."""
    sides = Sides.of(agreement)
    headline = sides.told(words.agreement_headline(agreement))
    lines = wrapped(f"{words.verdict_word(agreement)}  ", headline, indent=0)
    lines += ["", *_groups(agreement, sides)]
    given = [
        f"{one.key}: {'not given' if held.value is None else held.value} on {sides.listed(held.ranks)}"
        for one in agreement.unequal
        for held in one.values
    ]
    lines += _section("given facts that are not equal", given)
    lines += _differences(agreement, sides)
    hosts = {report.rank: report.host for report in agreement.ranks}
    errors = _folded([(error.rank, error.message) for error in agreement.errors], hosts)
    absent = agreement.absent_detail or [f"rank {rank}" for rank in agreement.absent]
    for title, texts in (("errors", errors), ("absent", absent), ("warnings", agreement.warnings)):
        lines += _section(title, [sides.told(text) for text in texts])
    lines += _not_compared(agreement.not_compared, words.not_compared(agreement))
    lines += ["", f"  {words.rested_on(agreement, now, sides.count(len(agreement.ranks)))}"]
    return "\n".join(lines) + "\n"


def _folded(said: Sequence[tuple[int, str]], hosts: dict[int, str]) -> list[str]:
    """Each text once, with its ranks; a rank that is alone with it gets its host, where hosts tell ranks apart."""
    ranks: dict[str, list[int]] = {}
    for rank, text in said:
        ranks.setdefault(text, []).append(rank)
    several = len(set(hosts.values())) > 1

    def host_of(those: list[int]) -> str:
        return f" ({hosts[those[0]]})" if several and len(those) == 1 and those[0] in hosts else ""

    return [f"{ranksets.named(those)}{host_of(those)}: {text}" for text, those in ranks.items()]


def _groups(agreement: Agreement, sides: Sides) -> list[str]:
    """Who holds what: the ranks of each group, and the folder where a group is one rank."""
    paths = {report.rank: report.path for report in agreement.ranks}
    listed = minority_first(agreement.groups)[:LISTED]
    rows = [["group", "name" if sides.named else "ranks", "copies", "content", "standing", "where"]]
    for group in listed:
        distinct = dict.fromkeys(paths.get(rank, "") for rank in group.ranks)
        where = next(iter(distinct), "") + (f" and {len(distinct) - 1:,} more" if len(distinct) > 1 else "")
        digest = group.content or group.identity or ""
        standing = group.standing.value if len(agreement.groups) > 1 else ""
        rows.append([group.name, sides.listed(group.ranks), f"{group.copies:,}", digest[:DIGITS], standing, where])
    if len(rows) == 1:
        return []
    if not any(group.content for group in agreement.groups):
        rows[0][3] = "identity" if any(row[3] for row in rows[1:]) else ""
    if len(agreement.groups) == 1:
        rows[0][4] = ""
    lines = table(rows, "<<><<<")
    if len(agreement.groups) > LISTED:
        lines.append(f"  and {units.count(len(agreement.groups) - LISTED, 'more group')}")
    for group in listed:
        if group.evidence:
            lines += wrapped(f"{group.name}  ", "; ".join(group.evidence), hang=7)
    return lines


def _differences(agreement: Agreement, sides: Sides) -> list[str]:
    """The files that differ; those that have one cause and nothing else to show share a paragraph."""
    if not agreement.differences:
        return []
    alike: dict[object, list[Difference]] = {}
    for one in agreement.differences:
        key = (one.cause, one.role, one.kind, one.severity) if not one.segments and one.cause.facts else one.file
        alike.setdefault(key, []).append(one)
    lines: list[str] = []
    for some in list(alike.values())[:LISTED]:
        said = _paragraph(some[0], agreement, sides) if len(some) == 1 else _alike(some, agreement, sides)
        lines += ["", *said]
    more = sum(map(len, list(alike.values())[LISTED:]))
    if more:
        noun = f"more {words.unit_of(agreement)}"
        lines += ["", f"  and {units.count(more, noun)}"]
    return lines


def _alike(some: Sequence[Difference], agreement: Agreement, sides: Sides) -> list[str]:
    noun = "weight file" if some[0].role is Role.WEIGHTS else "sidecar"
    lines = [f"  {units.count(len(some), noun)}"]
    lines += table([[one.file, _holders(one, agreement, sides)] for one in some[:LISTED]], "<<", 6)
    if len(some) > LISTED:
        lines.append(f"      and {len(some) - LISTED:,} more")
    return lines + _cause(some[0], sides)


def _holders(one: Difference, agreement: Agreement, sides: Sides) -> str:
    if one.kind is not DifferenceKind.MISSING:
        return one.kind.value
    there = [label for label, held in one.groups.items() if held[:1].isdigit()]
    return f"only in {', '.join(sides.holder(label, agreement.groups) for label in there)}"


def _paragraph(one: Difference, agreement: Agreement, sides: Sides) -> list[str]:
    in_memory = agreement.between is Between.REPLICAS
    state = words.state_of(one)
    lines = [f"  {one.file}  ({state})" if in_memory else f"  {one.file}  ({one.role.value}, {state})"]
    lines += table([[sides.holder(label, agreement.groups), held] for label, held in one.groups.items()], "<<", 6)
    shown = [
        [segment.kind.value, segment.name, f"{segment.length:,} bytes", words.place(segment)]
        for segment in one.segments[:SEGMENTS]
    ]
    lines += table(shown, "<<><" if in_memory else "<<>>", 6) if shown else []
    more = len(one.segments) - SEGMENTS + one.segments_left_out
    if more > 0:
        lines.append(f"      and {units.count(more, 'more tensor' if in_memory else 'more segment')}")
    return lines + _bytes(one) + _cause(one, sides)


def _bytes(one: Difference) -> list[str]:
    """What the bytes of the first segment that was looked into told."""
    looked = next((segment for segment in one.segments if segment.drill is not None and segment.drill.sides), None)
    if looked is None or looked.drill is None:
        return []
    said = [("in", looked.name)] * (len(one.segments) > 1) + drills.lines(looked)
    lines = [line for label, text in said for line in wrapped(f"{label:<8}  ", text, indent=6)]
    for place, part in enumerate(drills.around(looked.drill, looked.drill.sides[0])):
        label = "bytes" if place == 0 else ""
        lines.append(
            f"      {label:<8}  {part.label}  {part.offset:#x}  {part.before} [{part.element}] {part.after}".rstrip()
        )
    return lines


def _cause(one: Difference, sides: Sides) -> list[str]:
    lines = wrapped("cause     ", sides.told(words.cause_words(one)), indent=6)
    if one.cause.mend:
        lines.append(f"      mend      {one.cause.mend}")
    return lines
