"""The Ranks view: who does what, who holds what, and where it differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...facts.agreement import Standing
from ...present import units
from ...stream.messages import Mode
from ..rows import ranks as rows
from ..rows.differences import differences
from ..rows.matrix import matrix
from ..rows.spans import Line, line
from ..widgets.line_view import LineView
from .view import View

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import ComposeResult

    from ...facts.agreement import Difference
    from ...stream.state import Changes
    from ..desk import Desk
    from ..rows.spans import TableRow

#: Ages are drawn again this often, and thousands of ranks are put into rows again no more often.
_EVERY = 1.0
#: Rows of thousands of ranks are drawn again this often.
_MANY_EVERY = 0.3


class RanksView(View):
    """All ranks; those that are alike folded."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="ranks")
        self._unfolded: set[int] = set()
        self._bundles: dict[int, rows.Bundle] = {}
        self._changed = False
        self._drawn_at = self._bundled_at = self._mapped_at = float("-inf")

    @classmethod
    def applies(cls, desk: Desk) -> bool:
        """Whether there are any ranks beside this one."""
        hello = desk.state.hello
        return hello is None or hello.mode is not Mode.SCAN

    def compose(self) -> ComposeResult:
        """The table, and below it what differs and the matrix."""
        yield self.new_table()
        yield LineView(self._more, id="ranks-more")

    def update_rows(self, changes: Changes, *, force: bool = False) -> None:
        """Draw the ranks when one of them has changed, and once a second for their ages.

        Thousands change all the time, and a key may come at any: their rows, their order and the matrix take turns.
        """
        desk = self.desk
        now = desk.clock.monotonic()
        force = force or changes.all
        many = len(desk.state.ranks) > rows.MANY and not force
        self._changed = self._changed or force or bool(changes)
        every = _EVERY if not self._changed else _MANY_EVERY if many else 0.0
        if now - self._drawn_at < every:
            return
        self._drawn_at, self._changed = now, False
        if not many or now - self._bundled_at >= _EVERY:
            self._bundled_at = now
            self._bundle()
            if many:
                return
        elif now - self._mapped_at < _EVERY:
            self.table.redraw()
            return
        self._mapped_at = now
        self.query_one("#ranks-more", LineView).redraw()

    def _bundle(self) -> None:
        """Put the ranks into rows."""
        desk = self.desk
        bundles = rows.bundles(desk.state.ranks, desk.agreement, self._unfolded)
        self._bundles = {bundle.key: bundle for bundle in bundles}
        hosts = {row.status.host for row in desk.state.ranks.values()}
        widest = max((len(desk.charset.name(host)) for host in hosts), default=0)
        self.table.set_columns(rows.columns(self.size.width, widest, self._unit, decided=desk.agreement is not None))
        self.table.styles.height = len(bundles) + 1
        self.table.set_keys(list(self._bundles))

    @property
    def _unit(self) -> units.Unit:
        return units.rate_unit(self.desk.peak_rank_rate)

    def row_of(self, key: Hashable) -> TableRow:
        """The ranks of a bundle."""
        desk, bundle = self.desk, self._bundles[cast("int", key)].fresh(self.desk.state.ranks)
        return rows.rank_row(
            bundle,
            desk.agreement,
            desk.charset,
            roles=desk.state.survey.roles if desk.state.survey else "",
            unit=self._unit,
            now=desk.clock.time(),
            room=self.size.width,
        )

    def turn_fold(self) -> None:
        """Open the row under the cursor, or fold the rank under it with those that are alike."""
        key = self.table.cursor_key
        bundle = self._current()
        if bundle is None or not isinstance(key, int):
            return
        if len(bundle.ranks) > 1:
            self._unfolded.add(key)
        else:
            self._unfolded.clear()

    def next_difference(self, by: int) -> str | None:
        """The next ranks whose standing is doubtful, and the first file of theirs that differs."""
        found = self.desk.agreement
        if found is None or not found.differences:
            return None
        for key in self.table.from_cursor(by):
            group = self._bundles[cast("int", key)].group
            if group is not None and group.standing not in {Standing.RIGHT, Standing.MAJORITY}:
                self.table.go_to(key)
                theirs = (one.file for one in found.differences if _accused(one, group.name))
                return next(theirs, found.differences[0].file)
        return found.differences[0].file

    def details(self) -> tuple[str, list[tuple[str, str]]] | None:
        """What `enter` shows of the row under the cursor."""
        bundle = self._current()
        if bundle is None:
            return None
        desk = self.desk
        return "ranks" if len(bundle.ranks) > 1 else "rank", rows.details(
            bundle, desk.agreement, desk.charset, desk.clock.time()
        )

    def copied(self) -> tuple[str, str] | None:
        """What `y` copies of the row under the cursor: the content's digest."""
        bundle = self._under_cursor()  # asked for with each frame: of thousands of ranks none is looked up
        group = bundle.group if bundle else None
        if group is None:
            return None
        return (group.content, "content") if group.content else (group.identity or "", "identity")

    def _under_cursor(self) -> rows.Bundle | None:
        key = self.table.cursor_key
        return self._bundles.get(key) if isinstance(key, int) else None

    def _current(self) -> rows.Bundle | None:
        bundle = self._under_cursor()
        return bundle.fresh(self.desk.state.ranks) if bundle is not None else None

    def _more(self, width: int, height: int) -> list[Line]:
        """Differences first, since they are the answer; then as much of the matrix as there is room for."""
        desk = self.desk
        drawn: list[Line] = []
        found = desk.agreement
        places = {file.name: index for index, file in desk.files.items()} if found is not None else {}
        if found is None and desk.state.survey is not None:
            waited = desk.clock.time() - desk.opened
            drawn = rows.missing(desk.state.ranks, desk.state.survey.join, desk.charset, waited, width)
        roles = desk.state.survey.roles if desk.state.survey else ""
        wanted = min(len(self._bundles) + 1, max(height // 3, 3))
        if found is not None:
            said = differences(found, desk.charset, width, height - (wanted + 2 if height >= 12 else 1) - 1)
            drawn = [line(), *said] if said else []
        room = height - len(drawn) - 1
        lines = matrix(
            tuple(self._bundles.values()),
            found,
            desk.charset,
            roles=roles,
            places=places,
            room=width,
            rows=min(room, len(self._bundles) + 1),
        )
        return [*drawn, line(), *lines] if lines else drawn


def _accused(difference: Difference, letter: str) -> bool:
    """Whether a group holds something else than most sides of a file that differs."""
    held = list(difference.groups.values())
    return letter in difference.groups and held.count(difference.groups[letter]) <= len(held) // 2
