"""The Mismatch view's right side: all there is to say of the row under the cursor, down to the bits of an element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...facts.agreement import Between, CauseCode
from ...facts.drill import LEAF
from ...present import drills, units, words
from ...stream.messages import DrillState
from . import bits
from .mismatch import Kind
from .ranks import STANDINGS
from .spans import Line, Span, clip, labelled, line, spread, width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...facts.agreement import Difference, DifferingSegment
    from ...facts.drill import Drill, FirstElement, SideDifference
    from .charset import Charset
    from .mismatch import Known, Node, Run

#: Files named one by one in the overview.
_FILES = 12
#: Characters of a name or a sentence that are shown.
_CHARS = 1500


class Detail:
    """Draws what is known of one row, `room` cells wide."""

    def __init__(self, known: Known, charset: Charset, room: int) -> None:
        self._known, self._charset, self._room = known, charset, room

    @property
    def _up(self) -> str:
        """What points at what stands above it."""
        return "^" if self._charset.ascii_only else "▴"

    def lines(self, node: Node) -> list[Line]:
        """All lines, each no wider than the room."""
        drawn: list[Line] = []
        for one in self._drawn(node):
            if one or (drawn and drawn[-1]):  # never two blank lines
                drawn.append(one)
        return [clip(one, self._room - 1, self._charset.ellipsis) for one in drawn]

    def _drawn(self, node: Node) -> Iterator[Line]:
        match node.kind:
            case Kind.GROUP:
                yield from self._group(node.side)
            case Kind.ROOT | Kind.GAP:
                yield from self._overview()
            case Kind.FILE:
                yield from self._file(self._known.differences[node.place.file], node)
            case _:
                yield from self._inside(node)

    def _name(self, text: str) -> str:
        """A text as it is shown; of one that would fill the screen many times over, its beginning."""
        cut = text if len(text) <= _CHARS else f"{text[:_CHARS]}{self._charset.ellipsis} ({len(text):,} characters)"
        return self._charset.name(cut)

    def _text(self, label: str, text: str, tone: str = "") -> list[Line]:
        return wrapped(label, self._name(text), self._room, tone)

    def _heading(self, name: str, right: str, below: str = "") -> Iterator[Line]:
        """A name whole, and what it is: beside it where there is room, else below."""
        whole = line("  ", (self._name(name), "strong"))
        side = line((self._name(right), "dim"))
        if width(whole) + width(side) + 6 <= self._room:
            yield spread(whole, side, self._room - 3, ellipsis=self._charset.ellipsis)
        else:
            for one in _broken(self._name(name), self._room - 4):
                yield line("  ", (one, "strong"))
            if right:
                yield line("  ", *side)
        if below:
            yield line("  ", (self._name(below), "dim"))
        yield ()

    # --- a group, all of them, a file

    def _group(self, letter: str) -> Iterator[Line]:
        group = self._known.group(letter)
        if group is None:
            return
        mark = STANDINGS[group.standing]
        yield from self._heading(self._known.sides.holder(letter, self._known.agreement.groups), "group")
        yield labelled("standing", line((f"{self._charset.mark(mark)} {mark.word}", mark.tone)))
        for phrase in group.evidence:
            yield from self._text("", self._known.sides.told(phrase))
        who = "copies" if self._known.sides.named else "ranks"
        yield from self._text(who, self._known.sides.listed(group.ranks).strip("[]"))
        if not self._known.sides.named:
            yield from self._text("copies", f"{group.copies:,}")
        reports = [report for report in self._known.agreement.ranks if report.rank in group.ranks]
        yield from self._text("hosts", ", ".join(dict.fromkeys(report.host for report in reports)))
        yield from self._text("paths", ", ".join(dict.fromkeys(report.path for report in reports)))
        yield ()
        yield from self._digest("identity", group.identity)
        yield from self._digest("content", group.content)
        holds = [one for one in self._known.agreement.differences if letter in one.groups]
        yield ()
        for place, one in enumerate(holds[:_FILES]):
            yield from self._text("" if place else "holds", f"{one.file}: {one.groups[letter]}")
        yield from self._more(len(holds) - _FILES, words.unit_of(self._known.agreement))

    def _digest(self, label: str, digest: str | None) -> Iterator[Line]:
        for place, part in enumerate(_broken(digest or "not known", self._room - 16)):
            yield labelled("" if place else label, line((part, "plain")))

    def _more(self, left: int, noun: str) -> Iterator[Line]:
        if left > 0:
            yield labelled("", line((f"and {units.count(left, f'more {noun}')}", "dim")))

    def _overview(self) -> Iterator[Line]:
        known = self._known
        yield from self._heading(known.agreement.verdict.value, "the verdict")
        yield from self._text("", known.sides.told(known.agreement.summary))
        yield ()
        for one in known.agreement.differences[:_FILES]:
            yield from self._text(words.unit_of(known.agreement), one.file, "strong")
            yield from self._cause(one, facts=False)
        yield from self._more(len(known.agreement.differences) - _FILES, words.unit_of(known.agreement))

    def _file(self, difference: Difference, node: Node) -> Iterator[Line]:
        yield from self._heading(difference.file, difference.role.value)
        yield from self._held(difference.groups)
        yield ()
        left = self._known.left_out(difference.file)
        segments = len(self._known.segments(difference.file))
        if segments + left:
            listed = f"; {left:,} of them not listed" if left else ""
            said = "segment differs" if segments + left == 1 else "segments differ"
            yield from self._text("differs", f"{segments + left:,} {said}{listed}")
        yield from self._asked(node)
        yield from self._cause(difference)

    def _held(self, groups: dict[str, str]) -> Iterator[Line]:
        known = self._known
        names = {letter: self._name(known.sides.holder(letter, known.agreement.groups)) for letter in groups}
        wide = min(max(map(len, names.values()), default=0), self._room // 3)
        for letter, held in groups.items():
            group = known.group(letter)
            mark = STANDINGS[group.standing] if group is not None else None
            chip = line((f"{self._charset.mark(mark)} {mark.word}", mark.tone)) if mark else ()
            who = clip(line((names[letter], "strong")), wide, self._charset.ellipsis)
            pad = Span(" " * (wide - width(who)))
            yield line("  ", *who, pad, "  ", *chip, Span(" " * max(11 - width(chip), 1)), self._name(held))

    # --- a segment, a run of bytes

    def _inside(self, node: Node) -> Iterator[Line]:
        known = self._known
        difference, segment = known.differences[node.place.file], known.segment(node.place)
        if segment is None:
            return
        drill = segment.drill
        run = known.run(node) if node.kind is Kind.RUN else None
        yield from self._heading(segment.name or segment.kind.value, _shape(segment), node.place.file)
        for held_by, held in segment.held.items():
            yield from self._text(held_by, held)
        if run is not None:
            yield from self._run(run)
            found = known.first_of(node.place, run)
            if found is not None:
                yield from self._element(*found)
            yield from self._asked(node)
        elif drill is not None:
            yield from self._found(segment, drill)
            yield from self._asked(node)
        else:
            where = "" if segment.held else f" at byte {segment.offset:,} of the file"
            yield from self._text("size", units.count(segment.length, "byte") + where)
            yield from self._asked(node)
        yield from self._cause(difference)

    def _found(self, segment: DifferingSegment, drill: Drill) -> Iterator[Line]:
        """What the first look into a segment has found, and its first element on each side."""
        told = drills.lines(segment)
        for label, text in told:
            if label == "differs":
                yield from self._text(label, text, "strong")
        for side in drill.sides:
            if side.first is not None:
                yield from self._element(drill, side, side.first)
        for label, text in told:
            if label not in {"differs", "first"}:
                yield from self._text(label, text)

    def _run(self, run: Run) -> Iterator[Line]:
        first, last = run.at // LEAF, (run.at + run.run.length - 1) // LEAF
        leaf = f"leaf {first:,}" if first == last else f"leaves {first:,} to {last:,}"
        inside = "" if run.run.bytes == run.run.length else f"{run.run.bytes:,} of "
        amount = f"{inside}{units.count(run.run.length, 'byte')}"
        where = f"byte {run.run.offset:,} of the file"
        where = f"at {where}" if run.run.length == 1 else f"from {where} on"
        yield from self._text("differs", f"{amount} in {leaf}, {where}", "strong")
        for label, zeros in (("zeros", run.run.zeros), ("zeros", run.run.reference_zeros)):
            if zeros is not None:
                who = run.side.side if zeros is run.run.zeros else "the reference"
                yield from self._text(label, f"{who}: bytes {zeros[0]:,} to {zeros[1]:,} are all zero")

    def _element(self, drill: Drill, side: SideDifference, first: FirstElement) -> Iterator[Line]:
        """One element on two sides: its place, values, hex, bits and the bytes about it."""
        yield ()
        index = f"[{', '.join(map(str, first.index))}]" if side.elements is not None else f"byte {first.offset:,}"
        cut = bits.fields(side.dtype, bits.width_of(first))
        named = bits.named(cut, first.bits)
        yield labelled("first", line((f"{index}  ", "strong"), (named, "bad")))
        pairs = ((drill.reference, first.reference), (side.side, first.other))
        values = [self._name(one.value) for _, one in pairs]
        shown = [*values, "value"] if any(values) else []
        value_wide = min(max(map(len, shown), default=0), 26)
        hex_wide = len(first.reference.hex) + 2
        label_wide = max(len(drill.reference), len(side.side))
        lead = label_wide + 2 + (value_wide + 3 if shown else 0) + hex_wide + 3
        bits_wide = bits.width_of(first) + len(cut) - 1
        bits_fit = width(labelled("", ())) + lead + bits_wide < self._room
        for place, (label, one) in enumerate(pairs):
            value = f"{self._name(one.value):>{value_wide}}   " if shown else ""
            spans = line(
                (f"{label:<{label_wide}}  ", "strong"), (value, "bad" if place else "plain"), (f"0x{one.hex}", "plain")
            )
            drawn = line("   ", *bits.drawn(one.hex, cut, first.bits)) if bits_fit else ()
            yield labelled("" if place else "element", (*spans, *drawn))
        if bits_fit:
            yield labelled("", line(" " * lead, (bits.pointer(cut, first.bits, self._up), "bad")))
        else:
            for place, (label, one) in enumerate(pairs):
                if width(labelled("", ())) + label_wide + 2 + bits_wide < self._room:
                    drawn = bits.drawn(one.hex, cut, first.bits)
                    yield labelled("" if place else "bits", line((f"{label:<{label_wide}}  ", "strong"), *drawn))
        yield from self._bytes(drill, side, label_wide)

    def _bytes(self, drill: Drill, side: SideDifference, label_wide: int) -> Iterator[Line]:
        """The bytes about it, one side below the other; what differs is pointed at."""
        around = drills.around(drill, side)
        if len(around) != 2:
            return
        yield ()
        mine, theirs = around
        lead = label_wide + 2 + len(f"{mine.offset:x}") + 2
        fit = max((self._room - 16 - lead - len(mine.element) - 3) // 6, 0)
        cut = len(mine.before.split()[:-fit]) if fit else len(mine.before.split())
        for place, (one, other) in enumerate(((mine, theirs), (theirs, mine))):
            spans = [Span(f"{one.label:<{label_wide}}  ", "strong"), Span(f"{one.offset + cut:x}  ", "dim")]
            spans += _marked(one.before, other.before, cut)
            spans += [Span(" [" if len(spans) > 2 else "[", "dim"), *_marked(one.element, other.element)]
            spans += [Span("] ", "dim"), *_marked(one.after, other.after, 0, fit)]
            yield labelled("" if place else "bytes", tuple(spans))
        before = " ".join(mine.before.split()[cut:])
        points = " " * (len(before) + (2 if before else 1)) + _points(mine.element, theirs.element, self._up)
        yield labelled(
            "", line(" " * (lead - len(f"{mine.offset:x}") + len(f"{mine.offset + cut:x}")), (points, "bad"))
        )
        yield ()

    # --- questions, cause and mend

    def _asked(self, node: Node) -> Iterator[Line]:
        """What became of a question, or what `enter` would ask."""
        known = self._known
        asked = known.asked(node)
        if asked is not None and asked.state is DrillState.PENDING:
            who = "the copies are read" if known.sides.named else "the ranks that hold it are asked"
            yield labelled("asking", line((f"{who}{self._charset.ellipsis}", "active")))
        elif asked is not None and asked.state is DrillState.FAILED:
            yield from self._text("no answer", asked.error, "warn")
        elif known.wish(node) is not None:
            if known.held:
                yield labelled("deeper", line(("enter", "active"), (" asks for it", "dim")))
            else:
                why = known.holding.reason if known.holding is not None and known.holding.reason else ""
                said = f"nobody is held ready{f': {why}' if why else ''}. This is as deep as was looked."
                yield from self._text("deeper", said, "dim")

    def _cause(self, difference: Difference, *, facts: bool = True) -> Iterator[Line]:
        cause = difference.cause
        if facts:
            yield ()
        told = self._known.sides.told
        perhaps = "perhaps " if cause.candidate else ""
        if cause.code is CauseCode.UNKNOWN:
            # Of tensors in memory no cause is looked for: they have no file that could be damaged.
            in_memory = self._known.agreement.between is Between.REPLICAS
            label, lead = ("what", "") if in_memory else ("cause", "not known: ")
            yield from self._text(label, f"{lead}{told(cause.summary)}")
        else:
            yield from self._text(
                "cause", f"{perhaps}{cause.code.value}: {told(cause.summary)}", "strong" if facts else ""
            )
        if not facts:
            return
        for fact in cause.facts:
            for place, one in enumerate(self._text("", told(fact), "dim")):
                yield (*one[:1], Span(f"{self._charset.dot} " if place == 0 else "  ", "dim"), *one[1:])
        if cause.mend:
            yield ()
            for number, part in enumerate(_broken(self._name(cause.mend), self._room - 15)):
                yield labelled("" if number else "mend", line((part, "good")))
            yield labelled("", line(("y", "active"), (" copies it", "dim")))


def _shape(segment: DifferingSegment) -> str:
    side = next(iter(segment.drill.sides), None) if segment.drill is not None else None
    if side is None or side.dtype is None:
        return segment.kind.value
    return f"{side.dtype} [{', '.join(f'{size:,}' for size in side.shape)}]"


def _broken(text: str, room: int) -> list[str]:
    """A text of one piece on as many lines as it takes, broken at blanks and slashes where there are any."""
    made, rest = [], text
    room = max(room, 12)
    while len(rest) > room:
        at = (rest.rfind(" ", room // 2, room) + 1) or (rest.rfind("/", room // 2, room) + 1) or room
        made.append(rest[:at])
        rest = rest[at:]
    return [*made, rest]


def _marked(mine: str, other: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Bytes in hex, from one to another; those that are not the other side's in the tone of trouble."""
    pairs = list(zip(mine.split(), other.split(), strict=False))[start:end]
    spans: list[Span] = []
    for place, (one, two) in enumerate(pairs):
        spans += [Span(" ")] * (place > 0) + [Span(one, "bad" if one != two else "plain")]
    return spans


def _points(mine: str, other: str, up: str) -> str:
    return " ".join(
        up * 2 if one != two else "  " for one, two in zip(mine.split(), other.split(), strict=False)
    ).rstrip()
