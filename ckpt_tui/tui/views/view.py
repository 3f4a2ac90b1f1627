"""What every view can do."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from textual.containers import Vertical

from ..widgets.table import Table

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ...stream.state import Changes
    from ..desk import Desk
    from ..rows.spans import TableRow


class View(Vertical):
    """A table and what belongs to it. `update_rows` is called when something changed, ten times a second at most."""

    def __init__(self, desk: Desk, *, id: str) -> None:  # noqa: A002 (textual's word)
        super().__init__(id=id)
        self.desk = desk

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

    def turn_fold(self) -> None:
        """Open or fold the row under the cursor, where rows fold."""
