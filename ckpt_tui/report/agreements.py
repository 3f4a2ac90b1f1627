"""An agreement as a document: verdict, groups, each difference with its bytes and its cause, and who took part."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..facts import ranksets
from ..facts.agreement import Between, CauseCode, Verdict
from ..facts.files import Severity
from ..present import drills, units, words
from ..present.sides import Sides, minority_first
from .document import Block, Code, Document, Heading, Inline, Line, Listing, Paragraph, Part, Room, Table, line
from .matrix import matrix

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..facts.agreement import Agreement, Difference, DifferingSegment, RankReport
    from ..facts.drill import Drill, SideDifference

_TONES = {
    Verdict.AGREE: "good",
    Verdict.DIFFER: "bad",
    Verdict.DAMAGED: "bad",
    Verdict.INCOMPLETE: "warn",
    Verdict.UNDECIDED: "warn",
}
_DIGITS = 12


def document(agreement: Agreement, room: Room) -> Document:
    """The whole report; what does not fit the room is counted where it would stand."""
    return Document(
        title=f"ckpt-tui: {agreement.verdict.value}",
        word=words.verdict_word(agreement),
        tone=_TONES[agreement.verdict],
        sentence=room.cut(Sides.of(agreement).told(words.agreement_headline(agreement))),
        parts=tuple(_Writer(agreement, room).parts()),
    )


def moment(seconds: float) -> str:
    """A time that reads the same everywhere: `2026-11-30 23:02:22 UTC`."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):  # a peer or a file says so
        return "at no time that there is"


class _Writer:
    """Writes one agreement, part by part."""

    def __init__(self, agreement: Agreement, room: Room) -> None:
        self._agreement = agreement
        self._room = room
        self._sides = Sides.of(agreement)
        self._in_memory = agreement.between is Between.REPLICAS

    def parts(self) -> Iterator[Part]:
        agreement = self._agreement
        yield self._summary()
        drawn = matrix(agreement, self._sides, self._room)
        if drawn is not None:
            yield drawn
        yield from self._groups()
        yield from self._unequal()
        yield from self._differences()
        yield from self._errors()
        yield from self._texts("Absent", agreement.absent_detail or [f"rank {rank}" for rank in agreement.absent])
        yield from self._texts("Warnings", agreement.warnings)
        if agreement.not_compared:
            yield Heading(2, ("Not compared",))
            yield Paragraph((words.not_compared(agreement),))
            rows = [(self._name(one.name), (units.size(one.size),)) for one in agreement.not_compared]
            noun = "name" if self._in_memory else "file"
            yield self._table((noun, "size"), rows, "<>", noun, self._room.items)
        yield from self._environment()

    def _name(self, text: str) -> Line:
        return line(Code(self._room.cut(text)))

    def _text(self, text: str) -> Line:
        return line(self._room.cut(self._sides.told(text)))

    def _table(
        self, head: tuple[str, ...], rows: Sequence[tuple[Line, ...]], align: str, noun: str, room: int
    ) -> Table:
        more = len(rows) - room
        left_out = f"and {units.count(more, f'more {noun}')}" if more > 0 else ""
        return Table(head, tuple(rows[:room]), align, left_out)

    def _summary(self) -> Table:
        agreement = self._agreement
        equal = {True: "yes", False: "no", None: "not known"}[agreement.weights_equal]
        depth = {
            "identity": "metadata alone; no tensor byte was compared",
            "content": "every bit of every entry" if self._in_memory else "every byte",
        }
        facts: list[tuple[str, Inline]] = [
            ("when", moment(agreement.created) if agreement.created else "not known"),
            ("compared", depth[agreement.stage.value]),
            ("weights equal", equal),
            ("who", words.rested_on(agreement, agreement.created, self._sides.count(len(agreement.ranks)))),
        ]
        if agreement.absent:
            facts.append(("absent", ranksets.named(agreement.absent)))
        facts.append(("tool", agreement.tool))
        return Table(("", ""), tuple((line(label), line(fact)) for label, fact in facts), "<<")

    def _groups(self) -> Iterator[Part]:
        groups = minority_first(self._agreement.groups)
        if not groups:
            return
        yield Heading(2, ("Groups",))
        rows = [
            (
                (group.name,),
                line(self._room.cut(self._sides.listed(group.ranks))),
                (f"{group.copies:,}",),
                (group.standing.value if len(groups) > 1 else "",),
                line(Code((group.identity or "")[:_DIGITS])),
                line(Code((group.content or "")[:_DIGITS])),
                self._text("; ".join(group.evidence)),
            )
            for group in groups
        ]
        who = "copy" if self._sides.named else "ranks"
        head = ("group", who, "copies", "standing", "identity", "content", "evidence")
        yield self._table(head, rows, "<<><<<<", "group", self._room.items)

    def _unequal(self) -> Iterator[Part]:
        """Facts that were given to be equal too, and are not."""
        rows = [
            (self._name(one.key), self._name(held.value) if held.value is not None else ("not given",),
             line(self._room.cut(self._sides.listed(held.ranks))))
            for one in self._agreement.unequal
            for held in one.values
        ]  # fmt: skip
        if rows:
            yield Heading(2, ("Given facts that are not equal",))
            yield self._table(("fact", "value", "ranks"), rows, "<<<", "row", self._room.items)

    def _differences(self) -> Iterator[Part]:
        differences = self._agreement.differences
        if not differences:
            return
        noun = words.unit_of(self._agreement)
        yield Heading(2, (f"Differences: {units.count(len(differences), noun)}",))
        rows = [
            (
                (f"{place}",),
                self._name(one.file),
                (words.state_of(one),),
                ("",) if self._in_memory and one.cause.code is CauseCode.UNKNOWN else self._text(_cause_word(one)),
                self._text(one.cause.summary),
            )
            for place, one in enumerate(differences, 1)
        ]
        yield self._table(("", noun, "differs in", "cause", ""), rows, "><<<<", noun, self._room.files)
        for place, one in enumerate(differences[: self._room.files], 1):
            yield from self._difference(place, one)

    def _difference(self, place: int, one: Difference) -> Iterator[Part]:
        yield Heading(3, line(f"{place}. ", *self._name(one.file)))
        yield Paragraph(line(*self._cause(one)), "bad" if one.severity is Severity.ERROR else "warn")
        if one.cause.facts:
            yield Listing(tuple(self._text(fact) for fact in one.cause.facts))
        if one.cause.mend:
            yield Paragraph(("What would mend it (read it before you run it):",))
            yield Block(self._room.cut(one.cause.mend), "sh")
        held = [
            (self._text(self._sides.holder(label, self._agreement.groups)), self._text(what))
            for label, what in one.groups.items()
        ]
        yield self._table(("held by", "what"), held, "<<", "group", self._room.items)
        if one.segments:
            rows = [
                (
                    (segment.kind.value,),
                    self._name(segment.name),
                    (self._text(words.place(segment)) if segment.held else (f"{segment.offset:,}",)),
                    (f"{segment.length:,}",),
                    line(_amounts(segment)),
                )
                for segment in one.segments
            ]
            noun, where, align = ("tensor", "held", "<<<><") if self._in_memory else ("segment", "at byte", "<<>><")
            table = self._table(("", "name", where, "bytes", "differs"), rows, align, noun, self._room.segments)
            more = len(rows) - len(table.rows) + one.segments_left_out
            left_out = f"and {units.count(more, f'more {noun}')}" if more else ""
            yield Table(table.head, table.rows, table.align, left_out)
        yield from self._drills(one)

    def _cause(self, one: Difference) -> Iterator[Inline]:
        cause = one.cause
        if cause.code is CauseCode.UNKNOWN:
            unknown = "" if self._in_memory else "Cause not known: "
            yield f"{unknown}{self._room.cut(cause.summary)}"
            return
        yield f"{'Perhaps ' if cause.candidate else 'Cause: '}{cause.code.value}: "
        yield from self._text(cause.summary)

    def _drills(self, one: Difference) -> Iterator[Part]:
        looked = [segment for segment in one.segments if segment.drill is not None and segment.drill.sides]
        for segment in looked[: self._room.drills]:
            if segment.drill is None:
                continue
            yield Paragraph(line("In ", Code(self._room.cut(segment.name or segment.kind.value)), ":"))
            yield Listing(tuple(line(f"{label}: ", self._room.cut(text)) for label, text in drills.lines(segment)))
            text = "\n".join(text for side in segment.drill.sides for text in _bytes(segment.drill, side))
            if text:
                yield Block(text)
        more = len(looked) - self._room.drills
        if more > 0:
            yield Paragraph(
                (f"and {units.count(more, 'more segment')} that {'was' if more == 1 else 'were'} looked into",)
            )

    def _errors(self) -> Iterator[Part]:
        folded: dict[str, list[int]] = {}
        for error in self._agreement.errors:
            folded.setdefault(error.message, []).append(error.rank)
        yield from self._texts("Errors", [f"{ranksets.named(ranks)}: {text}" for text, ranks in folded.items()])

    def _texts(self, title: str, texts: Sequence[str]) -> Iterator[Part]:
        if not texts:
            return
        yield Heading(2, (title,))
        more = len(texts) - self._room.items
        left_out = f"and {more:,} more" if more > 0 else ""
        yield Listing(tuple(self._text(text) for text in texts[: self._room.items]), left_out)

    def _environment(self) -> Iterator[Part]:
        """Who took part. Ranks that say the same are one row."""
        agreement = self._agreement
        if self._in_memory:
            yield from self._ranks()
            return
        yield Heading(2, ("Environment",))
        alike: dict[tuple[Line, ...], list[int]] = {}
        for report in agreement.ranks:
            alike.setdefault(self._place(report), []).append(report.rank)
        rows = [
            (line(self._room.cut(self._sides.listed(ranks))), *place)
            for place, ranks in sorted(alike.items(), key=lambda item: item[1])
        ]
        who = "copy" if self._sides.named else "ranks"
        head = (who, "host", "path", "file system", "group", "cached", "oldest digest")
        yield self._table(head, rows, "<<<<<>>", "row", self._room.ranks)

    def _ranks(self) -> Iterator[Part]:
        """The ranks whose tensors were compared."""
        yield Heading(2, ("Ranks",))
        rows = [
            (
                (f"{report.rank}",),
                self._name(report.host),
                line(report.group or "none"),
                (f"{report.files:,}",),
                (units.size(report.bytes),),
                (units.size(report.bytes_sent),),
            )
            for report in self._agreement.ranks
        ]
        head = ("rank", "host", "group", "entries", "in memory", "told")
        yield self._table(head, rows, "><<>>>", "rank", self._room.ranks)

    def _place(self, report: RankReport) -> tuple[Line, ...]:
        age = "" if report.oldest_digest is None else units.age(max(self._agreement.created - report.oldest_digest, 0))
        return (
            self._name(report.host),
            self._name(report.path),
            self._name(report.file_system),
            line(report.group or "none"),
            (f"{report.files_cached:,}/{report.files:,}",),
            line(age),
        )


def _cause_word(one: Difference) -> str:
    if one.cause.code is CauseCode.UNKNOWN:
        return "not known"
    return f"{'perhaps ' * one.cause.candidate}{one.cause.code.value}"


def _amounts(segment: DifferingSegment) -> str:
    """How much of it differs, on each side that was held against the reference."""
    if segment.drill is None:
        return "not looked into"
    several = len(segment.drill.sides) > 1
    return "; ".join(
        f"{side.side}: {drills.amount(segment, side)}" if several else drills.amount(segment, side)
        for side in segment.drill.sides
    )


def _bytes(drill: Drill, side: SideDifference) -> Iterator[str]:
    for part in drills.around(drill, side):
        yield f"{part.label}  {part.offset:#x}  {part.before} [{part.element}] {part.after}".rstrip()
