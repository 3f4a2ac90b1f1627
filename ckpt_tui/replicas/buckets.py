"""Tensors flattened into buckets of one device and dtype: which go together (pure), and how they go in and out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Slot(NamedTuple):
    """One tensor: its place in what was given, the device it lies on, its dtype and how many elements it has."""

    place: int
    device: torch.device
    dtype: torch.dtype
    elements: int


def plan(slots: Sequence[Slot], bucket_bytes: int) -> list[list[Slot]]:
    """Buckets of at most `bucket_bytes`, in the order given; a larger tensor has one of its own, an empty one none.

    The same on all ranks that hold the same tensors in the same order, wherever these lie in memory.
    """
    buckets: list[list[Slot]] = []
    open_buckets: dict[tuple[torch.device, torch.dtype], tuple[list[Slot], int]] = {}
    for slot in slots:
        if not slot.elements:
            continue
        size = slot.elements * slot.dtype.itemsize
        bucket, used = open_buckets.get((slot.device, slot.dtype), ([], 0))
        if not bucket or used + size > bucket_bytes:
            bucket, used = [], 0
            buckets.append(bucket)
        bucket.append(slot)
        open_buckets[slot.device, slot.dtype] = (bucket, used + size)
    return buckets


@contextmanager
def flattened(tensors: Sequence[torch.Tensor], dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """All elements of tensors of one device, one after the other, as `dtype`; what is in it goes back on leaving.

    One tensor that is contiguous and of this dtype is its own bucket, without a copy. Nothing goes back after an
    exception.
    """
    first = tensors[0]
    if len(tensors) == 1 and first.is_contiguous() and first.dtype is dtype and not (first.is_conj() or first.is_neg()):
        yield first.view(-1)
        return
    flat = torch.empty(sum(tensor.numel() for tensor in tensors), dtype=dtype, device=first.device)
    pieces = flat.split([tensor.numel() for tensor in tensors])
    for piece, tensor in zip(pieces, tensors, strict=True):
        piece.view(tensor.shape).copy_(tensor)
    yield flat
    for piece, tensor in zip(pieces, tensors, strict=True):
        tensor.copy_(piece.view(tensor.shape))
