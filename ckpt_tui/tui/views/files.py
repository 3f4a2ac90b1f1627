"""The Files view: the whole's progress, what the cache saved, and one row a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...facts.files import Role
from ...facts.status import Cell
from ...present import units
from ..rows import files as rows
from ..rows import lines
from ..rows.spans import Line, TableRow, line
from ..widgets.line_view import LineView
from .view import View

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import ComposeResult

    from ...stream.messages import FileRow
    from ...stream.state import Changes
    from ..desk import Desk

#: Seconds between two sorts, and for how long sorting rests after a key.
_SORT_EVERY, _REST = 1.0, 3.0


class FilesView(View):
    """The files of the watched rank."""

    filters = True
    sorts = True

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="files")
        self._sort = rows.Sort.TROUBLE
        self._unfold = False
        self._look = rows.look((), desk.charset, sha256=True, peak_rate=0.0)
        self._known = 0
        self._sorted_at = float("-inf")

    @classmethod
    def applies(cls, desk: Desk) -> bool:
        """Whether files are told one by one: of a saved agreement only those that differ are known."""
        return desk.state.survey is not None or desk.agreement is None

    def compose(self) -> ComposeResult:
        """The bar, its legend, the table."""
        yield LineView(self._overall, id="overall", height=1)
        yield LineView(self._legend, id="legend", height=1)
        yield self.new_table()

    @property
    def sort(self) -> rows.Sort:
        """How the files are sorted."""
        return self._sort

    def update_rows(self, changes: Changes, *, force: bool = False) -> None:
        """Draw what changed; sort at most once a second, and not right after a key."""
        self.query_one("#overall", LineView).redraw()
        self.query_one("#legend", LineView).redraw()
        now = self.desk.clock.monotonic()
        files = self.desk.files
        if changes.all or force or len(files) != self._known:
            self._known, force = len(files), True
            survey = self.desk.state.survey
            sha256 = survey.sha256 if survey else True
            self._look = rows.look(files.values(), self.desk.charset, sha256=sha256, peak_rate=self.desk.peak_rate)
        self._look = self._look._replace(rate_unit=units.rate_unit(self.desk.peak_rate))
        self.table.set_columns(rows.columns(self._look, self._sort, self.desk.charset, self.size.width))
        due = now - self._sorted_at >= _SORT_EVERY and now - self.table.touched >= _REST
        if force or due:
            self._sorted_at = now
            self.table.set_keys(rows.order(files, self._sort, self._look, self.needle, unfold=self._unfold))
        else:
            self.table.redraw()

    def row_of(self, key: Hashable) -> TableRow:
        """A file, or the one row of all quiet sidecars."""
        desk = self.desk
        file = desk.files.get(key) if isinstance(key, int) else None
        if file is not None:
            if desk.watched is not None and desk.watched.paused and file.cell is Cell.READING:
                file = msgspec.structs.replace(file, rate=0.0)  # none is the rate of what rests
            return rows.file_row(file, self._look, desk.charset, desk.clock.time(), self.size.width)
        return rows.sidecars_row([one for one in desk.files.values() if one.role is Role.SIDECAR], desk.charset)

    def turn_sort(self) -> None:
        """The next order."""
        self._sort = self._sort.next()

    def turn_fold(self) -> None:
        """Show the sidecars one by one, or as one row."""
        self._unfold = not self._unfold

    def next_difference(self, by: int) -> str | None:
        """The next file that differs between groups; the one under the cursor is the first of them."""
        found = self.desk.agreement
        differing = {one.file for one in found.differences} if found else set[str]()
        ordered = self.table.from_cursor(by)
        key = next((key for key in ordered if isinstance(key, int) and self._named(key) in differing), None)
        if not isinstance(key, int):
            return None
        self.table.go_to(key)
        return self._named(key)

    def _named(self, key: int) -> str:
        file = self.desk.files.get(key)
        return file.name if file else ""

    def details(self) -> tuple[str, list[tuple[str, str]]] | None:
        """What `enter` shows of the row under the cursor."""
        file = self._current()
        if file is None:
            return None
        return file.name, rows.details(file, self.desk.charset, self.desk.clock.time())

    def copied(self) -> tuple[str, str] | None:
        """What `y` copies of the row under the cursor: a digest, and its name."""
        file = self._current()
        result = file.result if file else None
        if result is None or not (result.sha256 or result.digest):
            return None
        return (result.sha256, "sha256") if result.sha256 else (str(result.digest), "xxh3")

    def _current(self) -> FileRow | None:
        key = self.table.cursor_key
        return self.desk.files.get(key) if isinstance(key, int) else None

    def _overall(self, width: int, _height: int) -> list[Line]:
        return [lines.overall(self.desk.watched, self.desk.rates, self.desk.charset, width)]

    def _legend(self, width: int, _height: int) -> list[Line]:
        desk = self.desk
        if not self.applies(desk):
            return [line((" a saved agreement lists no files but those that differ", "dim"))]
        drawn = lines.legend(desk.watched, desk.state.survey, desk.mean_rate, desk.charset, width)
        if self.needle:
            shown = sum(isinstance(key, int) for key in self.table.keys)
            drawn = line(
                (f" {shown:,} of {len(self.desk.files):,} files contain ", "dim"),
                (desk.charset.name(self.needle), "active"),
            )
        return [drawn]
