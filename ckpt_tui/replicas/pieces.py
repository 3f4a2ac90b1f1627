"""The bytes of a strided tensor in logical order, piece by piece: where they lie, or copied through a small buffer.

No tensor is ever copied as a whole. A piece of one that is not contiguous is gathered by at most two copies a
dimension; conjugates and negatives are resolved as they are copied.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import torch

from .values import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: Bytes of one of the two buffers between a device and the hashing threads.
STAGE = 8 << 20
#: Where in such a buffer a tensor may begin: any element is aligned there.
_ALIGNED = 16


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of its elements."""
    size: int = tensor.nbytes
    return size


def in_place(tensor: torch.Tensor) -> memoryview | None:
    """A CPU tensor's bytes where they lie, if they lie there in logical order. The tensor has to outlive the view."""
    if tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg() or not tensor.is_contiguous():
        return None
    size = size_of(tensor)
    if size == 0:
        return memoryview(b"")
    address = tensor.data_ptr()
    if not address:
        raise Unreadable("its storage has no address")
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


def copied(buffer: torch.Tensor, tensor: torch.Tensor, start: int, size: int) -> memoryview:
    """`size` bytes of a tensor from byte `start` on, waited for, by way of `buffer` (1-D bytes on the CPU)."""
    _fill(_window(buffer, 0, size, tensor.dtype), tensor, start // tensor.element_size(), wait=True)
    return _bytes(buffer, 0, size)


def taken(tensor: torch.Tensor, start: int, size: int) -> bytes:
    """`size` bytes of a tensor on any device, from byte `start` on."""
    buffer = torch.empty(size, dtype=torch.uint8, device="cpu")
    return bytes(copied(buffer, tensor, start, size))


def _window(buffer: torch.Tensor, at: int, size: int, dtype: torch.dtype) -> torch.Tensor:
    return buffer[at : at + size].view(dtype)


def _bytes(buffer: torch.Tensor, at: int, size: int) -> memoryview:
    return memoryview((ctypes.c_ubyte * size).from_address(buffer.data_ptr() + at)).cast("B")


def _fill(target: torch.Tensor, source: torch.Tensor, start: int, *, wait: bool) -> None:
    """Copy the elements from `start` on, in logical order, until `target` (1-D, of the same dtype) is full."""
    count = target.numel()
    if source.dim() <= 1:
        target.copy_(source.reshape(-1)[start : start + count], non_blocking=not wait)
        return
    row = source[0].numel()
    done = 0
    first, inside = divmod(start, row)
    if inside:
        done = min(row - inside, count)
        _fill(target[:done], source[first], inside, wait=wait)
        first += 1
    rows = (count - done) // row
    if rows:
        block = target[done : done + rows * row].view(rows, *source.shape[1:])
        block.copy_(source[first : first + rows], non_blocking=not wait)
        done += rows * row
    if done < count:
        _fill(target[done:], source[first + rows], 0, wait=wait)


class Slot(NamedTuple):
    """Bytes of one tensor on their way: `key` tells whose, `start` where in it they begin."""

    key: int
    start: int
    data: memoryview


class _Load(NamedTuple):
    """What lies, or will lie, in one buffer; `arrived` is None where the copies were waited for."""

    slots: list[Slot]
    arrived: torch.cuda.Event | None


def staged(
    tensors: Iterable[tuple[int, torch.Tensor]], piece: int, failed: Callable[[int, Exception], None]
) -> Iterator[list[Slot]]:
    """The bytes of tensors on a device, some MiB at a time, in pieces of at most `piece` bytes each.

    While the caller works on one load the next one is on its way. Copies are queued on the stream that is current for
    the caller, after whatever it has queued there. A load is valid until the next one is asked for. A tensor that
    cannot be copied is told to `failed`, and the others go on.
    """
    buffers: dict[torch.device, list[torch.Tensor]] = {}
    waiting: deque[_Load] = deque()
    for place, batch in enumerate(_batches(tensors, piece)):
        device = batch[0][1].device
        if device not in buffers:
            pinned = device.type == "cuda"
            buffers[device] = [torch.empty(STAGE, dtype=torch.uint8, device="cpu", pin_memory=pinned) for _ in range(2)]
        waiting.append(_sent(buffers[device][place % 2], batch, failed))
        if len(waiting) == 2:
            yield _arrived(waiting.popleft())
    while waiting:
        yield _arrived(waiting.popleft())


_Cut = tuple[int, torch.Tensor, int, int, int]


def _batches(tensors: Iterable[tuple[int, torch.Tensor]], piece: int) -> Iterator[list[_Cut]]:
    """Key, tensor, first byte, size and place in the buffer of each piece, as many as fit into a buffer."""
    batch: list[_Cut] = []
    at = 0
    for key, tensor in tensors:
        whole = size_of(tensor)
        for start in range(0, whole, piece):
            size = min(piece, whole - start)
            if batch and (at + size > STAGE or batch[0][1].device != tensor.device):
                yield batch
                batch, at = [], 0
            batch.append((key, tensor, start, size, at))
            at += -(-size // _ALIGNED) * _ALIGNED
    if batch:
        yield batch


def _sent(buffer: torch.Tensor, batch: list[_Cut], failed: Callable[[int, Exception], None]) -> _Load:
    device = batch[0][1].device
    cuda = device.type == "cuda"
    slots = []
    for key, tensor, start, size, at in batch:
        try:
            window = _window(buffer, at, size, tensor.dtype)
            _fill(window, tensor, start // tensor.element_size(), wait=not cuda)
        except Exception as error:  # noqa: BLE001 - whatever a kind's copy raises concerns that tensor alone
            failed(key, error)
        else:
            slots.append(Slot(key, start, _bytes(buffer, at, size)))
    if not cuda:
        return _Load(slots, None)
    arrived = torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(device))
    return _Load(slots, arrived)


def _arrived(load: _Load) -> list[Slot]:
    if load.arrived is not None:
        load.arrived.synchronize()
    return load.slots
