"""The Files view: one row a weight file, the sidecars folded into one."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from ...facts.files import MissReason, Role, State
from ...facts.status import Cell
from ...present import units, words
from ...present.glyphs import CELLS, RECORDED, Mark, state_mark
from .names import Fold, fold
from .spans import Column, Line, TableRow, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...facts.files import Claim
    from ...stream.messages import FileRow
    from .charset import Charset

#: The key of the one row that stands for all sidecars; files have their index as key.
SIDECARS = "sidecars"
#: Trouble first, then what moves, what waits, and what is done.
_ORDER = {
    Cell.BAD: 0, Cell.UNREADABLE: 1, Cell.READING: 3, Cell.WAITING: 4, Cell.CACHED: 5, Cell.READ: 5, Cell.SHARED: 5,
}  # fmt: skip
_DONE = {Cell.CACHED, Cell.READ, Cell.SHARED}
#: The rate needs a screen this wide; digest and recorded hashes need this.
_RATE, _WIDE = 64, 100


class Sort(StrEnum):
    """How files are sorted."""

    TROUBLE = "trouble first"
    NAME = "name"
    SIZE = "size"

    def next(self) -> Sort:
        """The order that the sort key turns to."""
        every = list(Sort)
        return every[(every.index(self) + 1) % len(every)]


class Look(NamedTuple):
    """What all rows of the table share, decided once so that columns do not dance."""

    fold: Fold
    size_unit: units.Unit
    size_width: int
    rate_unit: units.Unit
    name_width: int
    sha256: bool


def look(files: Iterable[FileRow], charset: Charset, *, sha256: bool, peak_rate: float) -> Look:
    """The shared look of these files. `peak_rate` is the highest rate so far, so that its unit never goes back."""
    rows = list(files)
    weights = [charset.name(file.name) for file in rows if file.role is Role.WEIGHTS]
    common = fold(weights)
    shorts = [len(common.short(name)) for name in weights]
    unit = units.size_unit(max((file.size for file in rows), default=0))
    sidecars = sum(file.size for file in rows if file.role is Role.SIDECAR)
    sizes = [f"{units.in_unit(file.size, unit)} {unit[0]}" for file in rows] + [units.size(sidecars)]
    wide = max([len(common.pattern) + 2, 24, *shorts])
    return Look(common, unit, max(map(len, sizes)), units.rate_unit(peak_rate), min(wide, 48), sha256)


def columns(shape: Look, sort: Sort, charset: Charset, room: int) -> tuple[Column, ...]:
    """The table's columns on a screen that is `room` cells wide; the sorted one carries a mark."""
    down = f" {charset.down}"
    name = (shape.fold.pattern or "file") + (down if sort is Sort.NAME else "")
    size = f"{charset.down} size" if sort is Sort.SIZE else "size"
    state = "state" + (down if sort is Sort.TROUBLE else "")
    # Names get what they need as long as a state keeps room for its bar.
    others = (
        16 + (9 if room >= _RATE else 0) + (25 if room >= _WIDE else 0) + _bar_width(room) + (8 if room >= 110 else 14)
    )
    size_width = max(shape.size_width, 8)
    return (
        Column((), 1),
        Column(line(name), max(min(shape.name_width, room - others - size_width), 6)),
        Column(line(size), size_width, right=True, gap=3 if room >= _RATE else 2),
        Column(line(state), 8, grow=1),
        Column(line(f"{shape.rate_unit[0]}/s"), 6, right=True, needs=_RATE, gap=3),
        Column(line("recorded"), 10, needs=_WIDE),
        Column(line("sha256" if shape.sha256 else "xxh3"), 12, needs=_WIDE, gap=1),
    )


def _bar_width(room: int) -> int:
    return 18 if room >= 110 else 12 if room >= _RATE else 0


def file_row(file: FileRow, shape: Look, charset: Charset, now: float, room: int) -> TableRow:
    """One file as a row. Done rows are dim, troubled ones speak up."""
    mark = _mark(file)
    troubled = mark.tone in {"bad", "warn"}
    tone = "dim" if file.cell in _DONE and not troubled else "plain"
    result = file.result
    digest = (result.sha256 if shape.sha256 else result.digest) if result else None
    return TableRow(
        file.index,
        (
            line((charset.mark(mark), mark.tone)),
            line((shape.fold.short(charset.name(file.name)), "strong" if troubled else "")),
            line(f"{units.in_unit(file.size, shape.size_unit)} {shape.size_unit[0]}"),
            _state(file, charset, now, room),
            line(units.rate_in(file.rate, shape.rate_unit) if file.rate > 0 else ""),
            _recorded(file.claims, charset) if result else (),
            line((digest or "")[:12]),
        ),
        tone,
    )


def _mark(file: FileRow) -> Mark:
    """The mark of what the audit or its bytes say of a file, else of what is done with it.

    Of another rank's file no more may be known than that it is bad.
    """
    return CELLS[file.cell] if file.state is State.GOOD else state_mark(file.state)


def _state(file: FileRow, charset: Charset, now: float, room: int) -> Line:
    result, mark = file.result, _mark(file)
    if file.state is not State.GOOD:
        return line((charset.name(words.state_words(file, file.note)), mark.tone))
    if mark.tone in {"bad", "warn"}:
        return line((f"{mark.word} on rank {file.rank}", mark.tone))
    if file.cell is Cell.READING:
        share = units.percent(min(file.done, file.size - 1), file.size)
        size = _bar_width(room)
        return line(*charset.progress(file.done, file.size, size), f" {share:>5}") if size else line(share)
    if file.cell is Cell.CACHED and result is not None and result.hashed_at is not None:
        ago = units.age(now - result.hashed_at)
        return line("cached, just now" if ago == "now" else f"cached, {ago} ago")
    if file.cell is Cell.READ and result is not None and result.miss_reason not in {None, MissReason.NEW}:
        detail = f": {result.miss_detail}" if result.miss_detail else ""
        return line(charset.name(f"read again, {result.miss_reason}{detail}"))
    return line(CELLS[file.cell].word)


def _recorded(claims: tuple[Claim, ...], charset: Charset) -> Line:
    held = words.kept(claims)
    mark = RECORDED[held]
    tone = "bad" if held is False else "faint" if held is None else ""
    return line((f"{charset.mark(mark)} {words.recorded_by(claims)}".rstrip(), tone))


def sidecars_row(files: Iterable[FileRow], charset: Charset) -> TableRow:
    """All sidecars that are well as one row: how many, of which kinds, how far."""
    quiet = [file for file in files if file.role is Role.SIDECAR and _ORDER[file.cell] >= 3]
    done = all(file.cell in _DONE for file in quiet)
    kinds = ", ".join([charset.name(file.name) for file in quiet[:2]])
    more = f" {charset.ellipsis}" if len(quiet) > 2 else ""
    cached = all(file.cell is Cell.CACHED for file in quiet)
    word = ("cached" if cached else "read") if done else "waiting"
    mark = CELLS[Cell.CACHED if cached else Cell.READ if done else Cell.WAITING]
    total = sum(file.size for file in quiet)
    return TableRow(
        SIDECARS,
        (
            line((charset.mark(mark), mark.tone)),
            line(f"{units.count(len(quiet), 'sidecar')} ({kinds}{more})"),
            line(units.size(total)),
            line(word),
            line(),
            _recorded(tuple(claim for file in quiet if file.result for claim in file.result.claims), charset)
            if done
            else (),
            line(),
        ),
        "dim" if done else "plain",
    )


def order(files: Mapping[int, FileRow], sort: Sort, shape: Look, needle: str, *, unfold: bool) -> list[int | str]:
    """The keys of the rows in their order; `needle` keeps the names and findings that contain it."""
    kept = list(files.values())
    if needle:
        kept = [file for file in kept if shape.fold.contains(file.name, needle) or needle in (file.note or "")]
    own = [file for file in kept if unfold or file.role is Role.WEIGHTS or _ORDER[file.cell] < 3]
    folded = len(own) < len(kept)

    def key(file: FileRow) -> tuple[int, int]:
        side = 1 if file.role is Role.SIDECAR and _ORDER[file.cell] >= 3 else 0
        if sort is Sort.TROUBLE:
            return (side * 9 + (2 if file.note and _ORDER[file.cell] >= 3 else _ORDER[file.cell]), file.index)
        return (side, -file.size if sort is Sort.SIZE else file.index)

    keys: list[int | str] = [file.index for file in sorted(own, key=key)]
    return [*keys, SIDECARS] if folded else keys


def details(file: FileRow, charset: Charset, now: float) -> list[tuple[str, str]]:
    """All there is to say about a file, as (what, value) pairs for the box that `enter` opens."""
    facts = [
        ("name", file.name),
        ("size", f"{file.size:,} bytes"),
        ("state", words.state_words(file, file.note)),
    ]
    result = file.result
    if result is None:
        return [(what, charset.name(value)) for what, value in [*facts, ("progress", CELLS[file.cell].word)]]
    facts += [("sha256", result.sha256 or ""), ("xxh3", result.digest or "")]
    cut = f"{result.segments:,}, {result.segmentation}" if result.segmentation else ""
    facts += [("segments", cut), ("source", result.source or "")]
    if result.hashed_at is not None:
        ago = units.age(now - result.hashed_at)
        facts.append(("hashed", "just now" if ago == "now" else f"{ago} ago"))
    if result.miss_reason is not None:
        detail = f": {result.miss_detail}" if result.miss_detail else ""
        facts.append(("not cached", f"{result.miss_reason}{detail}"))
    for claim in result.claims:
        held = {True: "kept", False: "broken", None: "not checked"}[claim.holds]
        facts.append(("recorded", f"{claim.algorithm} {claim.expected} {held}: {claim.origin}"))
    if not result.claims:
        facts.append(("recorded", "nothing to check against"))
    return [(what, charset.name(value)) for what, value in facts if value]
