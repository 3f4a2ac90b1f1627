"""A few lines of toned text that redraws only those that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ..rows.spans import width as cells_of
from ..theme import TONE_CLASSES, tone_style

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events
    from textual.geometry import Size

    from ..rows.spans import Line

    Draw = Callable[[int, int], Sequence[Line]]


class LineView(Widget):
    """Draws what its function says for a width and a height; `redraw` asks it again."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(TONE_CLASSES)

    def __init__(self, draw: Draw, *, id: str | None = None, height: int | None = None) -> None:  # noqa: A002 (textual's word)
        super().__init__(id=id)
        self._draw = draw
        self._lines: tuple[Line, ...] = ()
        if height is not None:
            self.styles.height = height

    @property
    def lines(self) -> tuple[Line, ...]:
        """What it shows."""
        return self._lines

    def redraw(self) -> None:
        """Draw again; lines that are the same are left alone."""
        if not self.size.width:
            return
        old, self._lines = self._lines, tuple(self._draw(self.size.width, self.size.height))
        for y in range(max(len(old), len(self._lines))):
            if old[y : y + 1] != self._lines[y : y + 1]:
                self.refresh(self.content_region_of_line(y))

    def content_region_of_line(self, y: int) -> Region:
        """The region of one line, in the widget's own coordinates."""
        return Region(0, y, self.size.width, 1)

    def on_resize(self, _event: events.Resize) -> None:
        """Another width is another text."""
        self._lines = ()
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 (textual's call)
        """As many lines as the function gives for this width."""
        return len(self._draw(width, viewport.height))

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 (textual's call)
        """As wide as the longest line."""
        return max(map(cells_of, self._draw(viewport.width, viewport.height)), default=0)

    def render_line(self, y: int) -> Strip:
        """One line in its colours."""
        base = self.rich_style
        if y >= len(self._lines):
            return Strip.blank(self.size.width, base)
        segments = [Segment(text, base + tone_style(self, tone or "plain")) for text, tone in self._lines[y]]
        return Strip(segments).adjust_cell_length(self.size.width, base)
