"""Types of what is packed and parsed in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    #: A column for `pack_rows`.
    Column: TypeAlias = Sequence[str | bytes] | Sequence[str] | Sequence[int] | Sequence[tuple[int, ...]] | bytes

    #: The tensors of a safetensors header: end to end, in the order in which they are listed, none of them empty.
    #: Names as they are written, of which two may be equal (a list where some are no printable ASCII, else `Names`);
    #: dtypes; shapes; offsets from the file's start and lengths, in bytes; the different (dtype, shape) with the length
    #: of every tensor of it; and the JSON of `__metadata__`, an object of strings.
    HeaderColumns: TypeAlias = tuple[
        Sequence[str],
        list[str],
        list[tuple[int, ...]],
        list[int],
        list[int],
        list[tuple[str, tuple[int, ...], int]],
        bytes,
    ]
