"""The Log view: age, rank, level, text; the worker's native output included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...present import units
from ...stream.messages import Level, LogLine
from ..rows.spans import Column, TableRow, line
from .view import View

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from ...stream.state import Changes
    from ..desk import Desk

_COLUMNS = (
    Column(line("age"), 5, right=True),
    Column(line("rank"), 4, right=True, needs=64),
    Column(line("level"), 7),
    Column(line("text"), 10, grow=1, gap=1),
)
_TONES = {Level.INFO: "plain", Level.WARNING: "warn", Level.ERROR: "bad", Level.NATIVE: "dim"}


class LogView(View):
    """All lines, the newest last."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="log")

    def compose(self) -> ComposeResult:
        """The table."""
        yield self.new_table(follow=True)

    def update_rows(self, _changes: Changes, *, force: bool = False) -> None:
        """All lines anew: they are bounded, and ages move."""
        del force
        self.table.set_columns(_COLUMNS)
        now = self.desk.clock.time()
        ordered = sorted(self.desk.state.logs.values(), key=lambda entry: (entry.at, abs(entry.number)))
        self.table.set_rows([self._row(entry, now) for entry in ordered])

    def _row(self, entry: LogLine, now: float) -> TableRow:
        rank = "" if entry.level is Level.NATIVE else str(entry.rank)
        return TableRow(
            entry.number,
            (
                line((units.age(now - entry.at), "dim")),
                line((rank, "dim")),
                line((entry.level.value, _TONES[entry.level])),
                line(self.desk.charset.name(entry.text)),
            ),
        )

    def details(self) -> tuple[str, list[tuple[str, str]]] | None:
        """The line under the cursor, whole."""
        entry = self._current()
        return None if entry is None else ("log", [("level", entry.level.value), ("text", entry.text)])

    def copied(self) -> tuple[str, str] | None:
        """The text of the line under the cursor."""
        entry = self._current()
        return None if entry is None else (entry.text, "line")

    def _current(self) -> LogLine | None:
        key = self.table.cursor_key
        return self.desk.state.logs.get(key) if isinstance(key, int) else None
