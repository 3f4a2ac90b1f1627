"""The tabs above the views: which one is shown, and which have something to say. A click turns to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from ..keys import TABS
from ..rows import lines
from .line_view import LineView

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events

    from ..keys import ViewName
    from ..rows.charset import Charset
    from ..rows.spans import Line


class TabBar(LineView):
    """Two lines: the words, and the rule under them."""

    class Turned(Message):
        """Another view is wanted."""

        def __init__(self, view: ViewName) -> None:
            super().__init__()
            self.view = view

    def __init__(self, charset: Charset, applies: Callable[[ViewName], bool]) -> None:
        super().__init__(self._words_and_rule, id="tabs", height=2)
        self._charset, self._applies = charset, applies
        #: The view that is shown.
        self.view: ViewName = "files"

    def _tabs(self) -> list[lines.Tab]:
        return [lines.Tab(tab.key, tab.word, self._applies(tab.view)) for tab in TABS]

    @property
    def _active(self) -> str:
        return next(tab.word for tab in TABS if tab.view == self.view)

    def _words_and_rule(self, width: int, _height: int) -> list[Line]:
        return list(lines.tabs(self._tabs(), self._active, self._charset, width))

    def on_click(self, event: events.Click) -> None:
        """The view whose tab it is on."""
        pressed = lines.tab_at(self._tabs(), self._active, self.size.width, event.x)
        for tab in TABS:
            if pressed is not None and tab.word == pressed.word:
                self.post_message(self.Turned(tab.view))
