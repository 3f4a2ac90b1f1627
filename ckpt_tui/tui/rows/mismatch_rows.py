"""The Mismatch view's left side: one line a row of the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...facts.drill import LEAF
from ...present import units, words
from ...stream.messages import DrillState
from .mismatch import Kind, Known, Node, Sort
from .ranks import STANDINGS
from .spans import Column, Line, TableRow, line

if TYPE_CHECKING:
    from .charset import Charset

#: Cells of the right column: `1,234 bytes`.
_AMOUNT = 11
#: More of a name than this no row has room for.
_CHARS = 500


def columns(known: Known, sort: Sort, charset: Charset) -> tuple[Column, ...]:
    """The tree, and how much differs."""
    down = f" {charset.down}" if sort is Sort.BYTES else ""
    who = "copies" if known.sides.named else "ranks"
    return (
        Column(line(("groups", "head")), 8, grow=1),
        Column(line(f"differs{down}" if sort is Sort.BYTES else who), _AMOUNT, right=True, gap=1),
    )


def row(node: Node, known: Known, charset: Charset, *, opened: bool) -> TableRow:
    """One row of the tree."""
    match node.kind:
        case Kind.GROUP:
            return _group(node, known, charset)
        case Kind.GAP:
            return TableRow(node, ((), ()), passed=True)
        case Kind.ROOT:
            unit = words.unit_of(known.agreement)
            count = units.count(len(known.agreement.differences), f"{unit} differs", f"{unit}s differ")
            return TableRow(node, (line((count, "head")), line(("differs", "head"))))
        case Kind.FILE:
            return _file(node, known, charset, opened=opened)
        case Kind.SEGMENT:
            return _segment(node, known, charset, opened=opened)
        case Kind.RUN:
            return _run(node, known)
        case Kind.MORE:
            return TableRow(node, (line(f"{' ' * 6}{charset.ellipsis} more", *_fate(node, known)), ()), "dim")


def _group(node: Node, known: Known, charset: Charset) -> TableRow:
    group = known.group(node.side)
    if group is None:
        return TableRow(node, ((), ()))
    mark = STANDINGS[group.standing]
    who = charset.name(known.sides.listed(group.ranks))
    count = len(group.ranks)
    return TableRow(
        node,
        (
            line((charset.mark(mark), mark.tone), " ", (group.name, "strong"), "  ", who, "  ", (mark.word, mark.tone)),
            line((f"{count:,}", "dim")),
        ),
    )


def _fold(opened: bool, charset: Charset) -> str:
    return charset.down if opened else charset.right


def _fate(node: Node, known: Known) -> Line:
    """What became of the question that was asked here."""
    asked = known.asked(node)
    if asked is None or asked.state is DrillState.DONE:
        return ()
    return line(("  asking", "active")) if asked.state is DrillState.PENDING else line(("  no answer", "warn"))


def _file(node: Node, known: Known, charset: Charset, *, opened: bool) -> TableRow:
    name = charset.name(known.names.short(node.place.file)[:_CHARS])
    segments = len(known.segments(node.place.file)) + known.left_out(node.place.file)
    return TableRow(
        node,
        (
            line(f"{_fold(opened, charset)} ", (name, "strong"), *_fate(node, known)),
            line(
                (units.count(segments, "segment") if segments else known.differences[node.place.file].kind.value, "dim")
            ),
        ),
    )


def _segment(node: Node, known: Known, charset: Charset, *, opened: bool) -> TableRow:
    segment = known.segment(node.place)
    leaf = "" if known.children(node) else "  "
    drill = segment.drill if segment else None
    differing = sum(side.bytes for side in drill.sides) if drill else 0
    amount = units.count(differing, "byte") if differing else units.size(segment.length) if segment else ""
    return TableRow(
        node,
        (
            line(
                "  ",
                leaf or f"{_fold(opened, charset)} ",
                charset.name((node.place.name or str(node.place.kind))[:_CHARS]),
                *_fate(node, known),
            ),
            line((amount, "bad" if differing else "dim")),
        ),
    )


def _run(node: Node, known: Known) -> TableRow:
    run = known.run(node)
    if run is None:
        return TableRow(node, ((), ()))
    first, last = run.at // LEAF, (run.at + run.run.length - 1) // LEAF
    where = f"leaf {first:,}" if first == last else f"leaves {first:,} to {last:,}"
    who = f"{run.side.side}  " if len({one.side.side for one in known.runs(node.place)}) > 1 else ""
    return TableRow(
        node,
        (line(f"{' ' * 6}{who}{where}", *_fate(node, known)), line((units.count(run.run.bytes, "byte"), "bad"))),
    )
