"""What `_compiled` does, in Python: for machines without a compiler, and what the compiled code is held against."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain, groupby, islice, repeat
from operator import add, sub
from struct import iter_unpack
from typing import TYPE_CHECKING, Any

import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .columns import Column, HeaderColumns

_WIDTH = 16


def leaf_ends(lengths: list[int], leaf: int, /) -> bytes:
    """Where the leaves end that segments of these lengths, one behind the other, are cut into; the first number is 0.

    Packed unsigned integers of 64 bits. A leaf has at most `leaf` bytes and begins anew with its segment.
    """
    return array("Q", accumulate(_leaves(lengths, leaf), initial=0)).tobytes()


def leaf_digests(data: memoryview, ends: array[int], first: int, last: int, /) -> bytes:
    """The xxh3-128 of consecutive pieces, end to end: numbers `first` to `last - 1`.

    Piece i lies from `ends[i]` to `ends[i + 1]` (unsigned, 64 bits), and `data` begins at `ends[first]`.
    """
    cuts = [*map(sub, ends[first : last + 1], repeat(ends[first]))]
    return b"".join(map(xxhash.xxh3_128_digest, map(data.__getitem__, map(slice, cuts, islice(cuts, 1, None)))))


def segment_digests(domain: bytes, lengths: list[int], leaf: int, digests: bytes, /) -> bytes:
    """The xxh3-128 of segments of these lengths over the digests of their leaves, which stand end to end.

    Each is made of the domain, the segment's length, the number of its leaves (of at most `leaf` bytes), and their
    digests, each behind its length; integers are 8 bytes little-endian.
    """
    counts = {length: -(-length // leaf) for length in {*lengths}}
    if sum(map(counts.__getitem__, lengths)) * _WIDTH != len(digests):
        raise ValueError("these are not the digests of all leaves")
    heads = {length: domain + _integer(length) + _integer(count) for length, count in counts.items()}
    leaves = map(add, repeat(_integer(_WIDTH)), _split(digests))
    return b"".join(
        xxhash.xxh3_128_digest(heads[length] + b"".join(islice(leaves, counts[length]))) for length in lengths
    )


def pack_rows(pattern: str, order: list[int] | bytes | None, /, *columns: Column) -> bytes:
    """The rows of a table end to end, as they come or in `order`. The first column is a list.

    The pattern has a letter a column: `s` for strings (bytes, or text as UTF-8) behind their length, `q` for integers,
    `t` for tuples of integers behind their count, `d` for packed digests, each behind its length. Integers, lengths
    and counts are 8 bytes little-endian.
    """
    fields = chain.from_iterable(map(_fields, pattern, columns))
    table = zip(*fields, strict=True)
    if order is not None:
        table = map([*table].__getitem__, order)  # type: ignore[assignment]
    return b"".join(chain.from_iterable(table))


def header_columns(_raw: bytes, _start: int, /) -> HeaderColumns | None:
    """A safetensors header by column, where it is as every writer makes it; here None, as if it were not."""
    return None


def _leaves(lengths: Iterable[int], leaf: int) -> Iterator[int]:
    """The lengths of all leaves."""
    for longer, run in groupby(lengths, leaf.__lt__):
        if not longer:
            yield from filter(None, run)
            continue
        for length in run:
            whole, rest = divmod(length, leaf)
            yield from repeat(leaf, whole)
            if rest:
                yield rest


def _fields(letter: str, column: Any) -> Iterator[Iterable[bytes]]:
    match letter:
        case "d":
            yield repeat(_integer(_WIDTH), len(column) // _WIDTH)
            yield _split(column)
        case "q":
            yield map(_integer, column)
        case "t":
            written: dict[tuple[int, ...], bytes] = {
                numbers: b"".join(map(_integer, (len(numbers), *numbers))) for numbers in {*column}
            }
            yield map(written.__getitem__, column)
        case _:
            raw = [item.encode() if isinstance(item, str) else item for item in column]
            sizes = [*map(len, raw)]
            lengths = {size: _integer(size) for size in {*sizes}}
            yield map(lengths.__getitem__, sizes)
            yield raw


def _split(digests: bytes) -> Iterator[bytes]:
    return chain.from_iterable(iter_unpack(f"{_WIDTH}s", digests))


def _integer(value: int) -> bytes:
    return value.to_bytes(8, "little")
