"""Tables of what the sides hold, laid beside each other, name by name. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .messages import Row

#: Digits of a digest in words.
_DIGITS = 12
NOT_THERE = "not there"


class Line(NamedTuple):
    """One name that is not the same on all sides: what each holds, in words."""

    name: str
    held: dict[str, str]
    #: Bytes of it on the first side that has it.
    length: int
    #: A name that is missing on a side; dtypes, shapes or kinds that differ; else bits, or values.
    missing: bool
    schema: bool
    tensor: bool
    #: Why it could not be read, by side.
    reasons: dict[str, str]


class Laid(NamedTuple):
    """What differs for certain, and what cannot be told, in order of name."""

    differing: tuple[Line, ...]
    undecided: tuple[Line, ...]


def lay(tables: Mapping[str, Sequence[Row]]) -> Laid:
    """Hold every name against itself on all sides."""
    rows: dict[str, dict[str, Row]] = {}
    for label, table in tables.items():
        for row in table:
            rows.setdefault(row.name, {})[label] = row
    differing, undecided = [], []
    for name in sorted(rows):
        held = rows[name]
        known = {held[label].digest if label in held else None for label in tables} - {b""}
        blurred = any(not row.digest for row in held.values())
        if len(known) > 1:
            differing.append(_line(name, held, tables))
        elif blurred:
            undecided.append(_line(name, held, tables))
    return Laid(tuple(differing), tuple(undecided))


def _line(name: str, held: Mapping[str, Row], tables: Mapping[str, Sequence[Row]]) -> Line:
    first = next(iter(held.values()))
    schemas = {row.schema for row in held.values() if row.digest}
    missing = len(held) < len(tables)
    words = {label: _words(held.get(label), whole=missing or len(schemas) > 1) for label in tables}
    if len(set(words.values())) == 1:  # values that read alike, as two NaN do
        words = {label: f"{text}  {held[label].digest.hex()[:_DIGITS]}" for label, text in words.items()}
    return Line(
        name=name,
        held=words,
        length=first.length,
        missing=missing,
        schema=len(schemas) > 1,
        tensor=any(row.schema not in {"value", "none"} for row in held.values()),
        reasons={label: row.note for label, row in held.items() if not row.digest},
    )


def _words(row: Row | None, *, whole: bool) -> str:
    """What one side holds: its dtype and shape where they differ, else its value or the beginning of its digest."""
    if row is None:
        return NOT_THERE
    if not row.digest:
        return f"not readable: {row.note}"
    if row.schema == "value":
        return row.note
    words = [row.schema] if whole or not row.length else []
    words += [row.note] if row.note else []
    words += [row.digest.hex()[:_DIGITS]] if row.length else []
    return "  ".join(words)
