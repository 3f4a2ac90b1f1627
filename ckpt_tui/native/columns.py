"""Types of what is packed and parsed in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

#: A column for `pack_rows`.
Column: TypeAlias = Sequence[str | bytes] | Sequence[int] | Sequence[tuple[int, ...]] | bytes


class HeaderColumns(NamedTuple):
    """The tensors of a safetensors header: end to end, in the order in which they are listed, none of them empty."""

    #: As they are written. No two are known to differ.
    names: list[str]
    dtypes: list[str]
    shapes: list[tuple[int, ...]]
    #: In bytes from the file's start.
    offsets: list[int]
    lengths: list[int]
    #: The different dtypes and shapes, and how long every tensor of each is.
    kinds: list[tuple[str, tuple[int, ...], int]]
    #: Whether names and dtypes are printable ASCII without a backslash.
    plain: bool
    #: The JSON of `__metadata__`, an object of strings.
    metadata: bytes
