"""The Log view: age, rank, level, text; the worker's native output included."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...present import units
from ...stream.messages import Level, LogLine
from ..rows.spans import Column, TableRow, line
from .view import View

if TYPE_CHECKING:
    from collections.abc import Hashable

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

    def update_rows(self, changes: Changes, *, force: bool = False) -> None:
        """Put new lines at the end; ages move by themselves."""
        self.table.set_columns(_COLUMNS)
        if changes.logs or changes.all or force:
            ordered = sorted(self.desk.state.logs.values(), key=lambda entry: (entry.at, abs(entry.number)))
            self.table.set_keys([entry.number for entry in ordered])
        else:
            self.table.redraw()

    def row_of(self, key: Hashable) -> TableRow:
        """A line."""
        entry = self.desk.state.logs.get(cast("int", key))
        if entry is None:  # the oldest have just gone
            return TableRow(key, (line(),) * len(_COLUMNS))
        now = self.desk.clock.time()
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
