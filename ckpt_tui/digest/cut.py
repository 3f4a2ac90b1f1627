"""How a file is cut into segments: by its safetensors header, or where it is opaque into fixed extents. Pure."""

from __future__ import annotations

from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from ..checkpoint.columns import Table
from ..facts.files import Segment, Segmentation, SegmentKind
from ..native.names import behind
from .layout import name_bytes, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


class Spans(Table[Span]):
    """Segments by column. Columns are of one length, and never changed."""

    __slots__ = ()

    def __init__(  # noqa: PLR0917 - the fields of a Span
        self,
        kinds: Sequence[SegmentKind],
        names: Sequence[str],
        offsets: Sequence[int],
        lengths: Sequence[int],
        dtypes: Sequence[str | None],
        shapes: Sequence[tuple[int, ...] | None],
    ) -> None:
        super().__init__(Span, (kinds, names, offsets, lengths, dtypes, shapes))

    @classmethod
    def of(cls, spans: Iterable[Span]) -> Spans:
        """The table of these rows."""
        columns: Sequence[Sequence[Any]] = [*zip(*spans, strict=True)] or [()] * len(Span._fields)
        return cls(*columns)

    @property
    def kinds(self) -> Sequence[SegmentKind]:
        """What each holds."""
        return self.columns[0]

    @property
    def names(self) -> Sequence[str]:
        """Escaped text; empty for all but tensors."""
        return self.columns[1]

    @property
    def offsets(self) -> Sequence[int]:
        """In bytes from the file's start."""
        return self.columns[2]

    @property
    def lengths(self) -> Sequence[int]:
        """In bytes."""
        return self.columns[3]


class Cut(NamedTuple):
    """All segments of a file, in order of (offset, length, name bytes): every byte lies in exactly one."""

    segmentation: Segmentation
    spans: Spans


def cut(header: Header | None, size: int) -> Cut:
    """How a file of `size` bytes is cut.

    A file that ends early keeps its table, in which what is cut off has no bytes; bytes after the last tensor are a
    gap. Where tensors overlap or the header does not fit, no table can hold, and the file is opaque.
    """
    spans = None if header is None else _by_header(header, size)
    if spans is not None:
        return Cut(Segmentation.SAFETENSORS, spans)
    return Cut(Segmentation.EXTENTS, _by_extents(size))


def _by_extents(size: int) -> Spans:
    return Spans.of(
        Span(SegmentKind.EXTENT, "", offset, min(EXTENT, size - offset)) for offset in range(0, size, EXTENT)
    )


def _by_header(header: Header, size: int) -> Spans | None:
    end = len(header.raw)
    if end > size or any(shape and max(shape) > _LARGEST for shape in {*header.tensors.shapes}):
        return None
    return _gapless(header, size) or _with_gaps(header, size)


def _gapless(header: Header, size: int) -> Spans | None:
    """The spans of a file whose tensors fill it, as nearly all do: made at once, as there may be very many."""
    end, tensors = len(header.raw), header.tensors
    *starts, last = accumulate(tensors.lengths, initial=end)
    if last != size or starts != [*tensors.offsets]:
        return None
    return Spans(
        [SegmentKind.HEADER, *repeat(SegmentKind.TENSOR, len(tensors))],
        behind("", tensors.names),
        [0, *tensors.offsets],
        [end, *tensors.lengths],
        [None, *tensors.dtypes],
        [None, *tensors.shapes],
    )


def _with_gaps(header: Header, size: int) -> Spans | None:
    end = len(header.raw)
    spans = [Span(SegmentKind.HEADER, "", 0, end)]
    for name, dtype, shape, offset, length in header.tensors:
        if offset < end:
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
    return Spans.of(spans)


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
