"""The arithmetic of a safetensors layout: bytes against shapes and dtypes, holes, overlaps, the file's length. Pure."""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING, NamedTuple

from ..facts.files import State
from ..present.safe import escape
from ..present.units import count
from .columns import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .model import Header

#: Bits of one element. A dtype is compared as it is written, so this table grows by a line and nothing else.
DTYPE_BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

_U64 = (1 << 64) - 1


class Problem(NamedTuple):
    """One contradiction in a header's layout. `tensor` and `message` are escaped text."""

    tensor: str | None
    message: str


class Placed(NamedTuple):
    """An entry as it is written, offsets counting from the end of the header. Sorts as the layout is walked."""

    begin: int
    end: int
    name: str
    dtype: str
    shape: tuple[int, ...]


def placed(tensors: Sequence[Placed]) -> Table[Placed]:
    """Entries by column."""
    return Table(Placed, [*zip(*tensors, strict=True)] or [()] * len(Placed._fields))


def is_sound(written: Table[Placed]) -> bool:
    """Whether the entries lie in the order of the layout, and `entry_problems` and `layout_problems` find nothing.

    For files as their writers make them, at native speed; false for some that are right all the same.
    """
    if not written:
        return True
    begins, ends, _, dtypes, shapes = written.columns
    lengths = [*map(sub, ends, begins)]
    return (
        begins[0] == 0
        and begins[1:] == ends[:-1]
        and min(lengths) > 0  # several that are empty at one place go by their names
        and ends[-1] <= _U64
        and not any(entry_problems(_distinct(dtypes, shapes, lengths)))
    )


def _distinct(dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]], lengths: Sequence[int]) -> Iterator[Placed]:
    """An entry of each kind: a file has few."""
    for dtype, shape, length in set(zip(dtypes, shapes, lengths, strict=True)):
        yield Placed(0, length, "", dtype, shape)


def entry_problems(tensors: Iterable[Placed]) -> Iterator[Problem]:
    """What is wrong with each entry by itself: signs, order, and bytes against shape and dtype."""
    right: dict[tuple[str, tuple[int, ...]], int] = {}  # a file has few pairs of dtype and shape
    for begin, end, name, dtype, shape in tensors:
        if right.get((dtype, shape)) == end - begin and 0 <= begin <= end <= _U64:
            continue
        if not 0 <= begin <= end <= _U64:
            shown = escape(name)
            yield Problem(shown, f"the data_offsets of {shown} make no range: {_numbers((begin, end))}")
            continue
        bits = DTYPE_BITS.get(dtype, 0)
        total = 1
        for dim in shape:
            total *= dim
            if not 0 <= dim <= _U64 or total > _U64:
                break
        else:
            if not bits or total * bits == (end - begin) * 8:
                if bits:
                    right[dtype, shape] = end - begin
                continue
        yield _size_problem(escape(name), escape(dtype), shape, end - begin)


def _size_problem(shown: str, dtype: str, shape: tuple[int, ...], length: int) -> Problem:
    words = f"{dtype} {_numbers(shape)}"
    if any(not 0 <= dim <= _U64 for dim in shape):
        return Problem(shown, f"{shown} has an impossible shape: {words}")
    total = 1
    for dim in shape:
        total *= dim
        if total > _U64:
            return Problem(shown, f"{shown} is larger than 64 bits can count: {words} over {count(length, 'byte')}")
    bits = total * DTYPE_BITS[dtype]
    if bits > _U64:
        return Problem(shown, f"{shown} is larger than 64 bits can count: {words} over {count(length, 'byte')}")
    if bits % 8:
        return Problem(shown, f"{shown} does not fill whole bytes: {words} is {bits:,} bits")
    return Problem(shown, f"{shown} needs {count(bits // 8, 'byte')} ({words}) and its offsets give {length:,}")


def _numbers(values: tuple[int, ...]) -> str:
    # Python refuses to write out what has thousands of digits, and nobody would read it.
    shown = [str(value) if abs(value) <= _U64 else "…" for value in values[:8]]
    return f"[{', '.join(shown + ['…'] * (len(values) > 8))}]"


def layout_problems(tensors: Iterable[Placed]) -> Iterator[Problem]:
    """Holes and overlaps, over tensors in order of (begin, end, name bytes)."""
    position, last = 0, None
    for tensor in tensors:
        if tensor.begin == position and tensor.end >= position:  # nearly always
            position, last = tensor.end, tensor
            continue
        if tensor.begin > position:
            shown = escape(tensor.name)
            hole = count(tensor.begin - position, "byte")
            yield Problem(shown, f"a hole of {hole} before {shown}: [{position}, {tensor.begin}] belongs to no tensor")
        elif tensor.begin < position and last is not None:
            shown = escape(tensor.name)
            other, ranges = escape(last.name), f"[{last.begin}, {last.end}] and [{tensor.begin}, {tensor.end}]"
            same = (last.begin, last.end) == (tensor.begin, tensor.end)
            words = f"two names share bytes: {other} and {shown}" if same else f"{other} and {shown} overlap"
            yield Problem(shown, f"{words}: {ranges}")
        if last is None or tensor.end >= position:
            position, last = max(position, tensor.end), tensor


def unknown_dtypes(tensors: Table[Placed]) -> Iterator[Problem]:
    """A warning for every dtype that the table does not hold: a writer that is newer than this tool."""
    _, _, names, dtypes, _ = tensors.columns
    unknown: dict[str, list[str]] = {dtype: [] for dtype in {*dtypes} - DTYPE_BITS.keys()}
    for name, dtype in zip(names, dtypes, strict=True) if unknown else ():
        if dtype in unknown:
            unknown[dtype].append(name)
    for dtype, names in sorted(unknown.items()):
        first = escape(names[0])
        rest = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        yield Problem(first, f"unknown dtype {escape(dtype)} of {first}{rest}: its bytes are read, not counted")


def fit(header: Header, file_size: int) -> tuple[State, str | None]:
    """Whether the file is as long as its header needs: `good`, `truncated` or `overlong`, and the words for it."""
    needed = header.needed
    if file_size > needed:
        extra = file_size - needed
        return State.OVERLONG, f"{count(extra, 'byte')} after the last tensor, which ends at {needed:,}"
    if file_size == needed:
        return State.GOOD, None
    cut = [tensor for tensor in header.tensors if tensor.offset + tensor.length > file_size]
    return State.TRUNCATED, (
        f"{count(needed - file_size, 'byte')} short: {file_size:,} of {needed:,}; the first tensor that is cut is "
        f"{cut[0].name}, {len(cut):,} of {count(len(header.tensors), 'tensor')} affected"
    )
