"""A table on the line API: fixed columns, a cursor that holds a row, and only changed lines drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip

from ..rows.spans import Line, TableRow, compose, layout
from ..theme import TONE_CLASSES, tone_style

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from textual import events

    from ..rows.charset import Charset
    from ..rows.spans import Column

TABLE_KEYS = (
    Binding("down,j", "move(1)", "next row"),
    Binding("up,k", "move(-1)", "previous row"),
    Binding("pagedown", "page(1)", "a page down"),
    Binding("pageup", "page(-1)", "a page up"),
    Binding("g,home", "edge(0)", "first row"),
    Binding("G,end", "edge(1)", "last row"),
    Binding("enter", "open", "details"),
)

#: What stands left of every row.
_INDENT = "  "


class PlainScrollBar(ScrollBarRender):
    """A thumb of whole cells: the parent's has glyphs of an eighth of one."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8


class Table(ScrollView, can_focus=True):
    """Rows under a fixed head. The owner gives keys in their order, and makes the rows that are seen.

    The cursor stays with its row's key.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {*TONE_CLASSES, "table--cursor"}
    #: Whether a row is marked; without one the keys scroll.
    CURSOR: ClassVar[bool] = True
    BINDINGS: ClassVar = [*TABLE_KEYS]

    class Opened(Message):
        """`enter` or a second click on a row."""

        def __init__(self, table: Table, key: Hashable) -> None:
            super().__init__()
            self.table, self.key = table, key

        @property
        def control(self) -> Table:
            """The widget, so that handlers can name it."""
            return self.table

    class Moved(Message):
        """The cursor is on another row."""

    def __init__(
        self,
        name: str,
        row_of: Callable[[Hashable], TableRow],
        charset: Charset,
        monotonic: Callable[[], float],
        *,
        follow: bool = False,
    ) -> None:
        super().__init__(id=name)
        self._row_of = row_of
        self._ellipsis = charset.ellipsis
        self._monotonic = monotonic
        self._columns: tuple[Column, ...] = ()
        self._widths: tuple[int, ...] = ()
        self._keys: Sequence[Hashable] = ()
        #: The rows as they were last drawn, by their places.
        self._drawn: dict[int, TableRow] = {}
        self._places: dict[Hashable, int] = {}
        self._cursor: Hashable | None = None
        #: Whether the view stays at the end while the cursor was not moved, as a log does.
        self._follow = follow
        #: When a key last moved the cursor: sorting rests for a while after it.
        self.touched = float("-inf")

    @property
    def keys(self) -> Sequence[Hashable]:
        """The keys of the rows, in their order."""
        return self._keys

    @property
    def cursor_key(self) -> Hashable | None:
        """The key of the row under the cursor; the first one's as long as nobody moved it."""
        return self._keys[self._place()] if self._keys else None

    def _place(self) -> int:
        fallback = len(self._keys) - 1 if self._follow else 0
        return self._places.get(self._cursor, max(fallback, 0))

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Other columns, or other titles for them."""
        if tuple(columns) != self._columns:
            self._columns, self._widths = tuple(columns), ()
            self.refresh()

    def set_keys(self, keys: Sequence[Hashable]) -> None:
        """The rows in their order; lines that look the same are left alone."""
        was, count = self._place(), len(self._keys)
        self._keys = keys
        self._places = {key: place for place, key in enumerate(keys)}
        if count != len(keys):
            self.virtual_size = Size(self.size.width, len(keys) + 1)
            self.refresh()
        if was != self._place():
            self.refresh_line(was + 1)
            self.refresh_line(self._place() + 1)
        self.redraw()

    def redraw(self) -> None:
        """Make the rows again that are seen, and draw those that are not as they were."""
        if self._follow and self._cursor is None and not self.is_vertical_scroll_end:
            self.scroll_end(animate=False)
        top = self.scroll_offset.y
        for place in range(top, min(top + self.size.height, len(self._keys))):
            if self._drawn.get(place) != self._row_of(self._keys[place]):
                self.refresh_line(place + 1)

    def on_resize(self, event: events.Resize) -> None:
        """Other widths."""
        self._widths = ()
        self.virtual_size = Size(event.size.width, len(self._keys) + 1)
        self.refresh()
        if self._cursor is not None:
            self.call_after_refresh(self._into_view)

    def render_line(self, y: int) -> Strip:
        """The head on the first line, rows on the others."""
        if not self._columns or not self._keys:
            return Strip.blank(self.size.width, self.rich_style)
        if not self._widths:
            room = self.scrollable_content_region.width - len(_INDENT)
            self._widths = layout(self._columns, room, self.app.size.width)
        if y == 0:
            titles = [column.title for column in self._columns]
            return self._strip(compose(titles, self._columns, self._widths, self._ellipsis), "head")
        place = self.scroll_offset.y + y - 1
        if place >= len(self._keys):
            return Strip.blank(self.size.width, self.rich_style)
        row = self._drawn[place] = self._row_of(self._keys[place])
        on = self.CURSOR and place == self._place() and self.has_focus
        return self._strip(compose(row.cells, self._columns, self._widths, self._ellipsis), row.tone, on=on)

    def _strip(self, spans: Line, tone: str, *, on: bool = False) -> Strip:
        base = self.rich_style
        if on:
            base += self.get_component_rich_style("table--cursor", partial=True)
        whole = base + tone_style(self, tone)
        segments = [Segment(_INDENT, base)]
        segments += [Segment(text, whole + tone_style(self, own) if own else whole) for text, own in spans]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def _go(self, place: int) -> None:
        if not self._keys:
            return
        before, after = self._place(), min(max(place, 0), len(self._keys) - 1)
        if self._row_of(self._keys[after]).passed:
            after = min(max(after + (1 if after > before else -1), 0), len(self._keys) - 1)
        self.touched = self._monotonic()
        self._cursor = self._keys[after]
        self.post_message(self.Moved())
        self.refresh_line(before + 1)
        self.refresh_line(after + 1)
        self._into_view()

    def _into_view(self) -> None:
        """Scroll to where the cursor is."""
        room, top, place = max(self.size.height - 1, 1), self.scroll_offset.y, self._place()
        if place < top:
            self.scroll_to(y=place, animate=False)
        elif place >= top + room:
            self.scroll_to(y=place - room + 1, animate=False)

    def from_cursor(self, by: int) -> Sequence[Hashable]:
        """The keys from the cursor's on, downwards or upwards, and then the others."""
        keys, place = list(self._keys), self._place()
        return [*keys[place:], *keys[:place]] if by > 0 else [*keys[place::-1], *keys[:place:-1]]

    def go_to(self, key: Hashable) -> None:
        """The cursor to the row of that key, if there is one."""
        if key in self._places:
            self._go(self._places[key])

    def action_move(self, by: int) -> None:
        """The cursor up or down."""
        self._go(self._place() + by)

    def action_page(self, by: int) -> None:
        """The cursor a page up or down."""
        self._go(self._place() + by * max(self.size.height - 2, 1))

    def action_edge(self, last: int) -> None:
        """The cursor to the first or last row."""
        self._go(len(self._keys) - 1 if last else 0)

    def action_open(self) -> None:
        """Say that the row under the cursor is to be opened."""
        if self._keys:
            self.post_message(self.Opened(self, self._keys[self._place()]))

    def on_click(self, event: events.Click) -> None:
        """The cursor to the row under the mouse; a second click opens it."""
        place = self.scroll_offset.y + event.y - 1
        if event.y > 0 and place < len(self._keys):
            self._go(place)
            if event.chain > 1:
                self.action_open()

    def on_focus(self) -> None:
        """The cursor shows where the focus is."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor shows where the focus is."""
        self.refresh()


class Page(Table):
    """Lines to read: the same keys, which scroll, and no cursor."""

    CURSOR = False

    def _go(self, place: int) -> None:
        """Scroll so that the line is at the top."""
        self.scroll_to(y=min(max(place, 0), len(self._keys)), animate=False)

    def _place(self) -> int:
        return min(round(self.scroll_offset.y), max(len(self._keys) - 1, 0))
