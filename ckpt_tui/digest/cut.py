"""How a file is cut into segments: by its safetensors header, or where it is opaque into fixed extents. Pure."""

from __future__ import annotations

from itertools import accumulate, repeat
from typing import TYPE_CHECKING, NamedTuple

from ..facts.files import Segment, Segmentation, SegmentKind
from .layout import WIDTH, name_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..checkpoint.model import Header

#: Opaque files are cut into extents of this many bytes.
EXTENT = 16 << 20
#: What an integer of the layout can hold.
_LARGEST = (1 << 64) - 1


class Span(NamedTuple):
    """A segment before it has a digest. Only tensors have a name (escaped text), a dtype and a shape."""

    kind: SegmentKind
    name: str
    offset: int
    length: int
    dtype: str | None = None
    shape: tuple[int, ...] | None = None


class Cut(NamedTuple):
    """All segments of a file, in order of (offset, length, name bytes): every byte lies in exactly one."""

    segmentation: Segmentation
    spans: tuple[Span, ...]


def cut(header: Header | None, size: int) -> Cut:
    """How a file of `size` bytes is cut.

    A file that ends early keeps its table, in which what is cut off has no bytes; bytes after the last tensor are a
    gap. Where tensors overlap or the header does not fit, no table can hold, and the file is opaque.
    """
    spans = None if header is None else _by_header(header, size)
    if spans is not None:
        return Cut(Segmentation.SAFETENSORS, spans)
    return Cut(Segmentation.EXTENTS, _by_extents(size))


def _by_extents(size: int) -> tuple[Span, ...]:
    return tuple(Span(SegmentKind.EXTENT, "", offset, min(EXTENT, size - offset)) for offset in range(0, size, EXTENT))


def _by_header(header: Header, size: int) -> tuple[Span, ...] | None:
    end = len(header.raw)
    if end > size:
        return None
    if spans := _gapless(header, size):
        return spans
    return _with_gaps(header, size)


def _gapless(header: Header, size: int) -> tuple[Span, ...] | None:
    """The spans of a file whose tensors fill it, as nearly all do: made at once, as there may be very many."""
    names, dtypes, shapes, offsets, lengths = zip(*header.tensors, strict=True) if header.tensors else ((),) * 5
    if any(shape and max(shape) > _LARGEST for shape in set(shapes)):
        return None
    *starts, end = accumulate(lengths, initial=len(header.raw))
    if end != size or starts != [*offsets]:
        return None
    fields = zip(repeat(SegmentKind.TENSOR), names, offsets, lengths, dtypes, shapes)
    return (Span(SegmentKind.HEADER, "", 0, len(header.raw)), *map(Span._make, fields))


def _with_gaps(header: Header, size: int) -> tuple[Span, ...] | None:
    end = len(header.raw)
    spans = [Span(SegmentKind.HEADER, "", 0, end)]
    for name, dtype, shape, offset, length in header.tensors:
        if offset < end or (shape and max(shape) > _LARGEST):
            return None
        start, stop = offset, offset + length
        if stop > size:
            start, stop = min(start, size), size
        if start > end:
            spans.append(Span(SegmentKind.GAP, "", end, start - end))
        spans.append(Span(SegmentKind.TENSOR, name, start, stop - start, dtype, shape))
        end = offset + length
    if end < size:
        spans.append(Span(SegmentKind.GAP, "", end, size - end))
    if end > size:  # what is cut off lies at the end of the file now, in the order of names
        spans.sort(key=lambda span: (span.offset, span.length, name_bytes(span.name)))
    return tuple(spans)


def segments(cut_: Cut, digests: bytes) -> tuple[Segment, ...]:
    """The segments with their digests (`WIDTH` bytes each, in the order of the spans)."""
    return tuple(
        Segment(
            kind=span.kind,
            name=span.name,
            offset=span.offset,
            length=span.length,
            digest=digest.hex(),
            dtype=span.dtype,
            shape=span.shape,
        )
        for span, digest in zip(cut_.spans, split(digests), strict=True)
    )


def split(digests: bytes) -> Sequence[bytes]:
    """The digests one by one."""
    return [digests[place : place + WIDTH] for place in range(0, len(digests), WIDTH)]
