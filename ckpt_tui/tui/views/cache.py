"""The Cache view: what was not read, what was and why, and what this host remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...facts.files import Role
from ...stream.messages import Inventory, Mode
from ..rows import cache as rows
from ..rows import cache_rows
from ..rows.names import fold
from ..widgets.line_view import LineView
from .view import View

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import ComposeResult

    from ...facts.cached import CacheReport
    from ...stream.state import Changes
    from ..desk import Desk
    from ..rows.spans import Line, TableRow

#: Seconds between two questions: whoever turns to the view again wants to know again.
_AGAIN = 2.0
#: Screens narrower than this show of names what differs.
_NARROW = 100
#: So many misses are shown one by one.
_FEW = 12


class CacheView(View):
    """What the digest cache did and holds."""

    filters = True
    sorts = True

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="cache")
        self._sort = rows.Sort.AGE
        self._opened: set[rows.Key] = set()
        #: Reasons that were folded or opened by hand stay as they are.
        self._touched: set[rows.Key] = set()
        self._report: CacheReport | None = None
        self._asked_at = float("-inf")
        self._asked_final = False
        self._facts = self._gather(rows.stock(None))

    @classmethod
    def applies(cls, desk: Desk) -> bool:
        """Whether there is a cache of this host at work."""
        hello = desk.state.hello
        return hello is None or hello.mode in {Mode.SCAN, Mode.RANKS}

    def compose(self) -> ComposeResult:
        """The sums, and the table."""
        yield LineView(self._summary, id="cache-summary", height=3)
        yield self.new_table()

    def shown(self) -> None:
        """Ask again: records come and go."""
        if self.desk.clock.monotonic() - self._asked_at >= _AGAIN:
            self._asked_at = float("-inf")

    def update_rows(self, changes: Changes, *, force: bool = False) -> None:
        """Ask for what is not known yet; put the rows in order when something has come."""
        self._ask()
        summary = self.query_one("#cache-summary", LineView)
        summary.styles.height = len(self._summary(max(self.size.width, 1), 0))
        summary.redraw()
        report = self.desk.state.cached
        if force or changes.all or changes.files or report is not self._report:
            first = self._report is None
            known = self._facts.known if report is self._report else rows.stock(report)
            self._report = report
            self._facts = self._gather(known)
            if first and report is not None and self._facts.own is not None:
                self._opened.add(rows.Folder(self._facts.own))
            self.table.set_columns(cache_rows.columns(self._sort, self._facts.unit, self.desk.charset, self.size.width))
            self.table.set_keys(rows.order(self._facts, self._sort, self.needle))
        else:
            self.table.redraw()

    def _gather(self, known: rows.Stock) -> rows.Facts:
        desk = self.desk
        misses = rows.missed(desk.files.values())
        few = sum(map(len, misses.values())) <= _FEW
        for reason in misses:
            if reason not in self._touched:
                (self._opened.add if few else self._opened.discard)(reason)
        return rows.Facts(
            known,
            misses,
            desk.files,
            rows.names_of(desk.files.values()),
            self._opened,
            rows.size_unit(known, misses),
            rows.own_folder(desk.state.survey, known),
            fold([file.name for file in desk.files.values() if file.role is Role.WEIGHTS]),
            narrow=self.size.width < _NARROW,
        )

    def _ask(self) -> None:
        """Once when it is looked at, and once more when the verdict is there."""
        state = self.desk.state
        decided = state.verdict is not None and state.verdict.code is not None
        if not state.ranks or state.over or not self.applies(self.desk):
            return
        if self._asked_at == float("-inf") or (decided and not self._asked_final):
            self._asked_at = self.desk.clock.monotonic()
            self._asked_final = decided
            self.post_message(self.Wish(Inventory()))

    def row_of(self, key: Hashable) -> TableRow:
        """A reason, a file that was read, a folder, or a record."""
        return cache_rows.row(cast("rows.Key", key), self._facts, self.desk.charset, self.desk.clock.time())

    def turn_sort(self) -> None:
        """The next order."""
        self._sort = self._sort.next()

    def turn_fold(self) -> None:
        """Open or fold the checkpoint or the reason under the cursor, or that of the row under it."""
        key = self._current()
        match key:
            case rows.Kept(path):
                key = rows.Folder(rows.folder_of(path))
            case rows.Missed(index):
                result = self._facts.files[index].result
                key = rows.Reason(result.miss_reason if result else None)
            case None:
                return
        self._touched.add(key)
        self._opened ^= {key}
        self.table.go_to(key)

    def details(self) -> tuple[str, list[tuple[str, str]]] | None:
        """What `enter` shows of the row under the cursor."""
        key = self._current()
        return cache_rows.details(key, self._facts, self.desk.charset, self.desk.clock.time()) if key else None

    def copied(self) -> tuple[str, str] | None:
        """A record's digest, or a checkpoint's path."""
        match self._current():
            case rows.Kept(path):
                record = self._facts.known.files[path]
                return (record.sha256, "sha256") if record.sha256 else (record.digest, "xxh3")
            case rows.Folder(path):
                return path, "path"
            case rows.Missed(index):
                result = self._facts.files[index].result
                digest = (result.sha256 or result.digest) if result else None
                return (digest, "digest") if digest else None
            case _:
                return None

    def _current(self) -> rows.Key | None:
        return cast("rows.Key | None", self.table.cursor_key)

    def _summary(self, width: int, _height: int) -> list[Line]:
        desk = self.desk
        return cache_rows.summary(
            desk.watched,
            desk.state.survey,
            desk.state.cached,
            desk.charset,
            mean_rate=desk.mean_rate,
            room=width,
            note=self._note(),
        )

    def _note(self) -> str:
        """What there is to say of the question itself."""
        state = self.desk.state
        answer = state.cache_answer
        if state.hello is not None and state.hello.mode is Mode.ATTACH:
            return "each host of the session has a cache of its own: look there with `ckpt-tui cache list`"
        if answer is not None and answer.error:
            return f"could not be looked at: {answer.error}"
        if answer is not None and not answer.parts and not state.over:
            return "looking through the records"
        if state.cached is None:
            over = state.over or not self.applies(self.desk)
            return "`ckpt-tui cache list --files` tells it" if over else "not asked yet"
        return ""
