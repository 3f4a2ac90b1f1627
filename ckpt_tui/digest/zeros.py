"""Tensors that are zeros throughout, told by their digests: what a preallocated file holds where nothing was written.

Holes show in the file's blocks (`checkpoint.holes`); zeros that were really written show only in the bytes. No byte
is read for this: a tensor's digest is compared with that of as many zeros. Pure.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ..present.units import count
from .layout import LEAF, leaf_digest, segment_digest, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..checkpoint.model import Header, TensorEntry

_ZEROS = memoryview(bytes(LEAF))
#: Smaller tensors are left alone, as in holes: biases are zero by nature.
_SMALLEST = 4096
#: A run of zero tensors is suspicious from this many bytes on: at the end of a file, where a download stopped; in the
#: middle, where several neighbours are zero as a part of a parallel download leaves them; and a lone tensor, which may
#: well be zero on purpose, only where it is huge. Tensors that are zero one by one, here and there, are an adapter
#: before its training, whose last one may be the last of the file.
_AT_THE_END, _NEIGHBOURS, _ALONE = 64 << 10, 1 << 20, 16 << 20


class _Run(NamedTuple):
    """Neighbours in a file that are zeros throughout."""

    tensors: Sequence[TensorEntry]
    last: bool

    @property
    def length(self) -> int:
        return sum(tensor.length for tensor in self.tensors)

    def is_suspicious(self, lone: int) -> bool:
        """Whether nobody would write this; `lone` counts the runs of one tensor in the file."""
        several = len(self.tensors) > 1
        if self.last and (several or lone == 1):
            return self.length >= _AT_THE_END
        return self.length >= (_NEIGHBOURS if several else _ALONE)


@lru_cache(maxsize=64)
def zeros_leaf(length: int) -> bytes:
    """The digest of one leaf of this many zeros."""
    return leaf_digest(_ZEROS[:length])


def zeros_digest(length: int) -> bytes:
    """The digest of a segment of this many zeros."""
    whole, rest = divmod(length, LEAF)
    leaves = [leaf_digest(_ZEROS)] * whole if whole else []
    return segment_digest(length, [*leaves, leaf_digest(_ZEROS[:rest])] if rest else leaves)


def written_zeros(header: Header, segments: bytes) -> str | None:
    """What of a whole safetensors file looks never written, in words; None where nothing does.

    `segments` are the digests of the header and of every tensor, in the file's order.
    """
    zeros = {length: zeros_digest(length) for length in header.lengths if length >= _SMALLEST}
    if not any(digest in segments for digest in zeros.values()):  # nearly always, and wherever they begin
        return None
    digests = split(segments)[1:]
    if len(digests) != len(header.tensors):
        return None
    tensors = [*header.tensors]
    empty = [zeros.get(tensor.length) == digest for tensor, digest in zip(tensors, digests, strict=True)]
    runs = list(_runs(tensors, empty))
    lone = sum(len(run.tensors) == 1 for run in runs)
    found = [tensor for run in runs if run.is_suspicious(lone) for tensor in run.tensors]
    if not found:
        return None
    end = found[-1].offset + found[-1].length
    until = "the end" if end == header.needed else f"{end:,}"
    return (
        f"{len(found):,} of {count(len(header.tensors), 'tensor')} are entirely zero, as if never written: "
        f"{count(sum(tensor.length for tensor in found), 'byte')}, from offset {found[0].offset:,} to {until}"
    )


def _runs(tensors: Sequence[TensorEntry], empty: Sequence[bool]) -> Iterator[_Run]:
    """The runs of zero tensors. Small ones neither break a run nor count in it: what they hold says little."""
    told = [place for place, tensor in enumerate(tensors) if tensor.length >= _SMALLEST]
    for zero, places in groupby(told, empty.__getitem__):
        run = list(places)
        if zero:
            yield _Run([tensors[place] for place in run], run[-1] == told[-1])
