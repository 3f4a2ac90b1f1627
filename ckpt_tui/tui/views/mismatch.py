"""The Mismatch view: from the groups down to the bit, each step asked of those that are held ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.containers import Horizontal, VerticalScroll

from ...facts.agreement import Agreement
from ...stream.messages import Descend, Mode, Place, Release
from ..rows import mismatch as rows
from ..rows import mismatch_rows
from ..rows.mismatch import Kind, Known, Node
from ..rows.mismatch_detail import Detail
from ..rows.spans import Line, TableRow, wrapped
from ..widgets.line_view import LineView
from .view import View

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual import events
    from textual.app import ComposeResult

    from ...stream.state import Changes
    from ..desk import Desk
    from ..keys import Hint
    from ..widgets.table import Table

#: Below this width the two panes lie one above the other, below both this width and height one is seen at a time.
_WIDE, _HIGH = 100, 22


class MismatchView(View):
    """The tree of what differs, and beside it all that is known of the row under the cursor."""

    filters = True
    sorts = True

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="mismatch")
        self._sort = rows.Sort.JUDGED
        self._opened: set[Node] = set()
        self._known: Known | None = None
        self._listed: list[Node] = []
        #: Where there is room for one pane: whether it is the right one.
        self._inside = False

    @classmethod
    def applies(cls, desk: Desk) -> bool:
        """Whether there is an agreement over groups that differ."""
        found = desk.agreement
        return found is not None and bool(found.differences or len(found.groups) > 1)

    def compose(self) -> ComposeResult:
        """The tree, and the detail, which scrolls."""
        with Horizontal(id="mismatch-panes"):
            yield self.new_table()
            with VerticalScroll(id="mismatch-detail"):
                yield LineView(self._detail, id="mismatch-lines")

    @property
    def known(self) -> Known | None:
        """All that is known below the verdict; None before it."""
        return self._known

    @property
    def hints(self) -> tuple[Hint, ...]:
        """The footer's keys that do something now: what `escape` does here is said before it is done."""
        top = self._current().parent is None and not (self._single and self._inside)
        lets_go = top and self.desk.held_since is not None and not self._visiting
        found = len(self._known.differences) if self._known is not None else 0
        works = {
            "enter": self._leads_on(), "n N": found, "y": self.copied() is not None, "/": found, "s": found > 1,
        }  # fmt: skip
        hints: tuple[Hint, ...] = (
            (3, "enter", "deeper"), (2, "esc", "let them go" if lets_go else "back"), (4, "n N", "difference"),
            (5, "y", "copy"), (6, "/", "filter"), (7, "s", "sort"), (1, "?", "help"), (0, "q", "quit"),
        )  # fmt: skip
        return tuple(hint for hint in hints if works.get(hint[1], True))

    def _leads_on(self) -> bool:
        """Whether `enter` does anything."""
        known, node = self._known, self._current()
        if known is None:
            return False
        asks = known.held and known.wish(node) is not None
        below = known.children(node) or (node.kind is Kind.ROOT and known.differences)
        return bool(asks or below or (self._single and not self._inside))

    @property
    def _visiting(self) -> bool:
        """Whether this screen looks at somebody else's session, whose ranks are not its own to let go."""
        hello = self.desk.state.hello
        return hello is not None and hello.mode is Mode.ATTACH

    @property
    def _single(self) -> bool:
        """Whether one pane is seen at a time."""
        return self.has_class("-single")

    def on_resize(self, event: events.Resize) -> None:
        """Side by side, one above the other, or one at a time."""
        narrow = event.size.width < _WIDE
        self.set_class(narrow and event.size.height >= _HIGH - 6, "-stacked")
        self.set_class(narrow and event.size.height < _HIGH - 6, "-single")
        self._turn(inside=self._inside and narrow)
        if self._known is not None:
            self._rows(self._known)

    def update_rows(self, changes: Changes, *, force: bool = False) -> None:
        """Take in what is known when anything of it changed."""
        state = self.desk.state
        found = self.desk.agreement
        if (changes.all or force) and found is not None:
            fresh = self._known is None or self._known.agreement is not found
            self._known = Known(found, dict(state.drills), state.holding)
            if fresh:
                self._begin(self._known)
            self._rows(self._known)
        self.set_class(self._known is None, "-empty")
        self._redraw()

    def _begin(self, known: Known) -> None:
        """The first look: as deep into the first difference as anybody has looked."""
        self._opened = set()
        files = known.agreement.differences
        if files:
            self._rows(known)
            self._reveal(rows.first_stop(known, files[0].file))

    def _reveal(self, node: Node) -> None:
        """Open what a row lies in, and put the cursor there."""
        above = node.parent
        while above is not None:
            self._opened.add(above)
            above = above.parent
        if self._known is not None:
            self._rows(self._known)
        self.table.go_to(node)

    def _rows(self, known: Known) -> None:
        self._listed = rows.tree(known, self._opened, self.needle, self._sort)
        self.table.set_columns(mismatch_rows.columns(known, self._sort, self.desk.charset))
        self.table.set_keys(self._listed)
        self.table.styles.height = len(self._listed) + 1 if self.has_class("-stacked") else "1fr"

    def _redraw(self) -> None:
        shown = self.query_one("#mismatch-lines", LineView)
        before = len(shown.lines)
        shown.redraw()
        if len(shown.lines) != before:
            shown.refresh(layout=True)

    def on_table_moved(self, event: Table.Moved) -> None:
        """Another row, another detail, from its top on."""
        event.stop()
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self._redraw()

    def row_of(self, key: Hashable) -> TableRow:
        """A row of the tree."""
        node = cast("Node", key)
        if self._known is None:
            return TableRow(key, ((), ()))
        return mismatch_rows.row(node, self._known, self.desk.charset, opened=node in self._opened)

    def _current(self) -> Node:
        key = self.table.cursor_key
        return key if isinstance(key, Node) else Node(Kind.ROOT)

    def _detail(self, width: int, _height: int) -> list[Line]:
        if self._known is None:
            return wrapped("", self._empty(), width, "dim")
        return Detail(self._known, self.desk.charset, width).lines(self._current())

    def _empty(self) -> str:
        """Why there is nothing to see yet."""
        state = self.desk.state
        if state.hello is not None and state.hello.mode is Mode.SCAN:
            return "one checkpoint alone has nothing to differ from: ckpt-tui compare A B, or ckpt-tui ranks"
        if isinstance(state.result, Agreement) or state.over:
            return "nothing was compared to its end"
        return "every byte has to be known first: what differs is shown here when all have been compared"

    # --- keys

    def deeper(self) -> bool:
        """Open the row, ask for what is not known, go to the first row below."""
        known = self._known
        node = self._current()
        if known is None:
            return True
        wish = known.wish(node)
        if wish is not None and known.held:
            self.post_message(self.Wish(Descend(place=wish)))
        children = known.children(node)
        if children and node not in self._opened:
            self._opened.add(node)
            self._rows(known)
        elif children:
            self.table.go_to(children[0])
        elif node.kind is Kind.ROOT and known.agreement.differences:
            self._reveal(Node(Kind.FILE, Place(file=known.agreement.differences[0].file)))
        else:
            self._turn(inside=True)
        return True

    def back(self) -> None:
        """Up the tree; at its top those that are held ready are let go, and the view is left."""
        if self._single and self._inside:
            self._turn(inside=False)
            return
        node = self._current()
        parent = node.parent
        if parent is not None:
            self._opened.discard(node)
            self.table.go_to(parent)
            return
        if self.desk.held_since is not None and not self._visiting:
            self.post_message(self.Wish(Release()))
        self.post_message(self.Left())

    def _turn(self, *, inside: bool) -> None:
        self._inside = inside
        self.set_class(inside, "-inside")
        self.query_one("#mismatch-lines", LineView).refresh(layout=True)
        self.call_after_refresh(self._redraw)

    def turn_fold(self) -> None:
        """Open or fold the row, or what it lies in."""
        known, node = self._known, self._current()
        if known is None:
            return
        if node in self._opened:
            self._opened.remove(node)
        elif known.children(node):
            self._opened.add(node)
        elif node.parent is not None:
            self._opened.discard(node.parent)
            self.table.go_to(node.parent)
        self._rows(known)

    def turn_sort(self) -> None:
        """The next order of the files."""
        self._sort = self._sort.next()
        self.notify(f"files sorted: {self._sort}", timeout=2)

    def next_difference(self, by: int) -> str | None:
        """The next segment that differs, in the files as they are listed."""
        known = self._known
        halts = rows.stops(known, self._listed) if known is not None else []
        if not halts or known is None:
            return None
        node = self._current()
        here = node if node in halts else node.parent
        if here in halts:
            place = halts.index(here) + by
        else:
            file = node.place.file
            after = [number for number, one in enumerate(halts) if one.place.file == file]
            place = after[0] if after and by > 0 else (after[0] + by if after else 0 if by > 0 else len(halts) - 1)
        if 0 <= place < len(halts):
            self._reveal(halts[place])
        else:
            self.notify("that was the last difference" if by > 0 else "that was the first difference", timeout=2)
        return halts[min(max(place, 0), len(halts) - 1)].place.file

    def show(self, file: str) -> None:
        """The cursor to what differs in a file."""
        if self._known is not None and file in self._known.differences:
            self._reveal(rows.first_stop(self._known, file))

    def details(self) -> tuple[str, list[tuple[str, str]]] | None:
        """The right pane has them all."""
        return None

    def copied(self) -> tuple[str, str] | None:
        """The command that mends what the cursor is in; of a group, its content's digest."""
        known, node = self._known, self._current()
        if known is None:
            return None
        if node.kind is Kind.GROUP:
            group = known.group(node.side)
            return (group.content, "content") if group is not None and group.content else None
        difference = known.differences.get(node.place.file) or next(iter(known.agreement.differences), None)
        mend = difference.cause.mend if difference is not None else ""
        return (mend, "mend command") if mend else None
