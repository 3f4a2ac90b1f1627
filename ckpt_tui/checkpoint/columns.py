"""Tables that are held by column, as a checkpoint may have a hundred thousand tensors: no object a row until asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

Row = TypeVar("Row", bound=tuple[Any, ...])


class Table(Sequence[Row], Generic[Row]):
    """Rows of one NamedTuple, made when they are looked at. `columns` are in the order of its fields, of one length."""

    __slots__ = ("_row", "columns")

    def __init__(self, row: type[Row], columns: Sequence[Sequence[Any]]) -> None:
        self._row = row
        self.columns = columns

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.columns[0])

    def __iter__(self) -> Iterator[Row]:
        """All rows, in order."""
        make: Any = self._row
        return map(make._make, zip(*self.columns, strict=True))

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """One row, or a table of some."""
        if isinstance(index, slice):
            return Table(self._row, [[*column][index] for column in self.columns])
        return self._row(*(column[index] for column in self.columns))
