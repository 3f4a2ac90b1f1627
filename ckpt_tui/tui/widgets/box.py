"""A box over the screen: pairs of a word and a value, closed by any key that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import chop_cells
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from ..rows.spans import Line, line
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
            for number, piece in enumerate(chop_cells(value, room) or [""]):
                lines.append(line((f"{what if number == 0 else '':<{wide}}", "dim"), piece))
        return lines

    def action_scroll(self, by: int) -> None:
        """Further down or up, where the box is higher than the screen."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


class Question(Box):
    """A box that leaves the app on a second `q`, and goes away on `esc`."""

    BINDINGS: ClassVar = [
        Binding("q,enter", "app.leave", "leave"),
        Binding("escape", "app.pop_screen", "stay"),
    ]

    def __init__(self, title: str, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__(title, pairs, "q leave   esc stay")
