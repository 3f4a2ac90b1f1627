"""A box over the screen: pairs of a word and a value, closed by any key that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from ..rows.spans import Line, Span, flow, line
from .line_view import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult


class Box(ModalScreen[None]):
    """Facts, one below the other, each shown whole: long values go on in the next line."""

    BINDINGS: ClassVar = [
        Binding("escape,enter,q,question_mark", "app.pop_screen", "back"),
        Binding("y", "app.copy", "copy", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
    ]

    def __init__(self, title: str, pairs: Sequence[tuple[str, str]], hint: str = "esc back") -> None:
        super().__init__()
        self._title, self._pairs, self._hint = title, tuple(pairs), hint

    def compose(self) -> ComposeResult:
        """One scrolling column of text."""
        with VerticalScroll() as scroll:
            yield LineView(self._lines)
        # As Text: a str would be read as markup.
        scroll.border_title = Text(self._title)
        scroll.border_subtitle = self._hint

    def _lines(self, width: int, _height: int) -> list[Line]:
        wide = max(len(what) for what, _ in self._pairs)
        wide += 3 if wide else 0
        # The box's border and padding, and the margin that keeps it from the screen's edge.
        room = max(min(width, self.app.size.width * 94 // 100 - 6) - wide, 8)
        lines = []
        for what, value in self._pairs:
            for number, piece in enumerate(flow((Span(value),), room)):
                lines.append((Span(f"{what if number == 0 else '':<{wide}}", "dim"), *piece))
        return lines

    def action_scroll(self, by: int) -> None:
        """Further down or up, where the box is higher than the screen."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


class Keys(Box):
    """All keys: side by side in two columns where there is room."""

    #: Cells between the columns, and of a screen that is wide enough for two.
    _GAP, _WIDE = 6, 110

    def _lines(self, width: int, height: int) -> list[Line]:
        if self.app.size.width < self._WIDE:
            return super()._lines(width, height)
        half = -(-len(self._pairs) // 2)
        columns = self._pairs[:half], self._pairs[half:]
        wide = max(len(what) for what, _ in self._pairs) + 3
        first = max(cell_len(value) for _, value in columns[0]) + self._GAP
        return [
            line(
                (f"{what:<{wide}}", "active"),
                set_cell_size(value, first),
                *(((f"{columns[1][at][0]:<{wide}}", "active"), columns[1][at][1]) if at < len(columns[1]) else ()),
            )
            for at, (what, value) in enumerate(columns[0])
        ]


class Leave(Box):
    """A box that leaves the app on a second `q`, and goes away on `esc`."""

    BINDINGS: ClassVar = [
        Binding("q,enter", "app.leave", "leave"),
        Binding("escape", "app.pop_screen", "stay"),
    ]

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__("leave?", pairs, "q leave   esc stay")


class ReadAgain(Box):
    """A box that starts over on a second `R`, and goes away on `esc`."""

    BINDINGS: ClassVar = [
        Binding("R,enter", "app.start_over", "read again"),
        Binding("escape,q", "app.pop_screen", "back"),
    ]

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__("read again?", pairs, "R read again   esc back")
