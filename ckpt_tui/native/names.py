"""Columns of names: lists of text, or `Names`, which hold no object a name. What both are asked for, in bulk."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._compiled import Names

_PACKED: tuple[type[Names], ...] = ()
with suppress(ImportError):  # without compiled code there are lists only
    from ._compiled import Names

    _PACKED = (Names,)


def packed(names: Sequence[str]) -> Names | None:
    """The column, if it holds no object a name: then all are printable ASCII without a backslash."""
    return names if isinstance(names, _PACKED) else None


def joined(columns: Sequence[Sequence[str]]) -> Sequence[str]:
    """The names of all columns, one after another."""
    some = tuple(filter(None, map(packed, columns)))
    return Names.joined(some) if some and len(some) == len(columns) else [*chain.from_iterable(columns)]


def behind(first: str, names: Sequence[str]) -> Sequence[str]:
    """The names after another."""
    some = packed(names)
    return [first, *names] if some is None else some.behind(first)


def are_unique(names: Sequence[str]) -> bool:
    """Whether no two are equal."""
    some = packed(names)
    return len({*names}) == len(names) if some is None else some.unique()


def order_of(names: Sequence[str] | list[bytes]) -> list[int] | bytes | None:
    """The places of the names in the order of their bytes, for `pack_rows`; None where two are equal."""
    if isinstance(names, _PACKED):
        return names.order()
    return sorted(range(len(names)), key=names.__getitem__) if len({*names}) == len(names) else None
