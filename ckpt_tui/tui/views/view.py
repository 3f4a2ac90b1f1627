"""What every view can do."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.message import Message

from ...stream.state import Changes
from ..keys import HINTS
from ..rows import lines
from ..widgets.table import Table

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual import events

    from ...stream.messages import Command
    from ..desk import Desk
    from ..keys import Hint
    from ..rows.spans import TableRow


class View(Vertical):
    """A table and what belongs to it. `update_rows` is called when something changed, ten times a second at most."""

    #: Whether its rows can be filtered by name, and sorted.
    filters: ClassVar[bool] = False
    sorts: ClassVar[bool] = False

    class Wish(Message):
        """A command for the worker; its answer arrives as state."""

        def __init__(self, command: Command) -> None:
            super().__init__()
            self.command = command

    class Left(Message):
        """`escape` at the top: back to where the view was entered from."""

    def __init__(self, desk: Desk, *, id: str) -> None:  # noqa: A002 (textual's word)
        super().__init__(id=id)
        self.desk = desk
        #: The part of a name that its rows are filtered by.
        self.needle = ""

    @classmethod
    def applies(cls, desk: Desk) -> bool:
        """Whether the view has anything to show; the tab of one that has not is dim."""
        del desk
        return True

    @property
    def hints(self) -> tuple[Hint, ...]:
        """The footer's keys: those that do something now."""
        state = self.desk.state
        reading = lines.pausable(state)
        listed = bool(self.needle or self.table.keys)
        works = {
            "/": self.filters and listed,
            "s": self.sorts and listed,
            "[ ]": lines.turns(state),
            "p": reading is not None,
            "y": self.copied() is not None,
            "e": state.result is not None,
        }
        words = {"p": "go on"} if reading is not None and reading.paused else {}
        return tuple((number, key, words.get(key, word)) for number, key, word in HINTS if works.get(key, True))

    def new_table(self, *, follow: bool = False) -> Table:
        """The view's table; it takes the focus."""
        desk = self.desk
        return Table(f"{self.id}-table", self.row_of, desk.charset, desk.clock.monotonic, follow=follow)

    @property
    def table(self) -> Table:
        """The view's table."""
        return self.query_one(Table)

    @abstractmethod
    def row_of(self, key: Hashable) -> TableRow:
        """The row of a key that `update_rows` gave to the table."""

    @abstractmethod
    def update_rows(self, changes: Changes, *, force: bool = False) -> None:
        """Draw what changed; with `force`, all of it in its order."""

    @abstractmethod
    def details(self) -> tuple[str, list[tuple[str, str]]] | None:
        """What `enter` shows of the row under the cursor: a title, and pairs of a word and a value."""

    @abstractmethod
    def copied(self) -> tuple[str, str] | None:
        """What `y` copies of the row under the cursor, and what it is."""

    def deeper(self) -> bool:
        """What `enter` does beside showing details; whether it did anything."""
        return False

    def next_difference(self, by: int) -> str | None:
        """The next or previous row that differs: the cursor goes there. The file to look into; None for none."""
        del by
        return None

    def shown(self) -> None:
        """Somebody has turned to this view."""

    def on_resize(self, event: events.Resize) -> None:
        """A view that was hidden has its size only now."""
        if self.display and event.size.width:
            self.update_rows(Changes(all=True), force=True)

    def turn_fold(self) -> None:
        """Open or fold the row under the cursor, where rows fold."""

    def set_filter(self, needle: str) -> None:
        """Keep the rows that contain this."""
        self.needle = needle

    def turn_sort(self) -> None:
        """The next order, where rows are sorted."""

    def back(self) -> None:
        """Out of where `enter` led, where it leads anywhere."""
