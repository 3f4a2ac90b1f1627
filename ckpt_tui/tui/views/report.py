"""The Report view: the report as it will read, its format, and the file that it goes to."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from ...report.saving import preview
from ..aside import aside
from ..rows import report as rows
from ..rows.spans import Column, Line, TableRow, labelled, line, pieces
from ..widgets.line_view import LineView
from ..widgets.table import Page
from .view import View

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import ComposeResult

    from ...report.document import Document
    from ...stream.state import Changes
    from ..desk import Desk
    from ..widgets.table import Table

_COLUMNS = (Column(line(), 10, grow=1, gap=0),)


class ReportView(View):
    """Lines to read."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="report")
        #: What is shown, or being made: the result by its identity, and whether hosts are named.
        self._wanted: tuple[object, bool] = (None, False)
        self._made: tuple[Document, str] | None = None
        self._failure = ""
        self._lines: list[Line] = []

    @classmethod
    def applies(cls, desk: Desk) -> bool:
        """Whether there is a result to report."""
        return desk.state.result is not None

    def compose(self) -> ComposeResult:
        """What it will be, and the text."""
        yield LineView(self._head, id="report-head", height=2)
        yield self.new_table()

    def new_table(self, *, follow: bool = False) -> Table:
        """Lines to scroll."""
        del follow
        return Page("report-table", self.row_of, self.desk.charset, self.desk.clock.monotonic)

    def update_rows(self, changes: Changes, *, force: bool = False) -> None:
        """Make the text when there is another result, and lay it out when the screen is another."""
        del changes
        self.query_one("#report-head", LineView).redraw()
        result, redact = self.desk.state.result, self.desk.draft.redact
        if (result, redact) != self._wanted:
            self._wanted, self._failure = (result, redact), ""
            if result is None:
                self._made = None
            else:  # thousands of ranks take a while to redact
                aside(self.app, partial(preview, result, redact=redact), partial(self._take, self._wanted))
            force = True
        if force:
            self._lay_out()

    def _take(self, wanted: tuple[object, bool], made: tuple[Document, str] | None, error: str) -> None:
        if wanted == self._wanted:
            self._made, self._failure = made, error
            self._lay_out()

    def _lay_out(self) -> None:
        desk, room = self.desk, max(self.size.width - 5, 20)
        if self._made is not None:
            self._lines = rows.drawn(self._made[0], desk.charset, room)
        elif self._failure:
            self._lines = rows.wrapped_texts([f"the report could not be made: {self._failure}"], desk.charset, room)
        elif desk.state.result is not None:
            self._lines = [line(("making the report", "dim"))]
        else:
            self._lines = rows.wrapped_texts(rows.coming(desk.path), desk.charset, room)
        self.table.set_columns(_COLUMNS)
        self.table.set_keys(range(len(self._lines)))
        self.table.refresh()

    def row_of(self, key: Hashable) -> TableRow:
        """A line."""
        place = cast("int", key)
        return TableRow(place, (self._lines[place] if place < len(self._lines) else line(),))

    def details(self) -> tuple[str, list[tuple[str, str]]] | None:
        """A line has none."""
        return None

    def copied(self) -> tuple[str, str] | None:
        """The whole report, as Markdown."""
        return (self._made[1], "the report as Markdown") if self._made is not None else None

    def _head(self, width: int, _height: int) -> list[Line]:
        desk = self.desk
        if desk.state.result is None:
            return [labelled("report", line(("not yet", "dim")))]
        kind = rows.format_named(desk.report_name)
        word = rows.FORMATS[kind][0] if kind else "no format that is known"
        named = "without hosts and paths" if desk.draft.redact else "with hosts and paths"
        parts = [
            (0, line((word, "strong"))),
            (2, line(("f", "active"), (" another", "dim"))),
            (1, line((named, "strong" if desk.draft.redact else ""))),
            (3, line(("x", "active"), (" turns it", "dim"))),
        ]
        to = [
            (0, line((desk.charset.name(desk.report_name), "strong"))),
            (1, line(("e", "active"), (" writes it", "dim"))),
        ]
        if desk.written:
            to.append((2, line((desk.charset.name(f"written: {desk.written[-1]}"), "dim"))))
        return [labelled("file", pieces(to, width - 15)), labelled("format", pieces(parts, width - 15))]
