"""The short way for what most tensors are: plain, on the CPU, whole in memory, and of one leaf.

With very many small tensors describing them is what takes time, not hashing. What is equal for all of one dtype and
shape is made once; digests are those of the long way (`tensors`, `hashing`, `digests`), to which all else is left.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .digests import LEAF, hash_of, plain_heads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .kinds import Algorithm

#: Classes that add nothing to a tensor. Others, and complex and quantized dtypes, may be more than their elements.
_CLASSES = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
_DTYPES = frozenset(
    {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool}
    | {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
)


class _Form(NamedTuple):
    """What all tensors of a dtype and shape have in common: bytes, what shows them as ctypes, and how digests begin.

    `seen` are the digests of those hashed so far, by address: tied tensors are hashed once.
    """

    size: int
    memory: Callable[[int], Any]
    part: bytes
    entry: bytes
    seen: dict[int, bytes]


class _Forms(dict[tuple[torch.dtype, torch.Size], _Form | None]):
    """By dtype and shape; None for those that have to go the long way."""

    def __init__(self, algorithm: Algorithm) -> None:
        super().__init__()
        self._algorithm = algorithm

    def __missing__(self, key: tuple[torch.dtype, torch.Size]) -> _Form | None:
        """Make it, once."""
        dtype, shape = key
        size = shape.numel() * dtype.itemsize
        form = None
        if dtype in _DTYPES and 0 < size <= LEAF:
            name = str(dtype).removeprefix("torch.")
            part, entry = plain_heads(self._algorithm, name, tuple(shape), size)
            form = _Form(size, (ctypes.c_ubyte * size).from_address, part, entry, {})
        self[key] = form
        return form


class Quick:
    """Digests of plain small tensors. `bytes` counts those of all, `hashed` without what is tied."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self._forms = _Forms(algorithm)
        self.bytes = 0
        self.hashed = 0

    def digests(self, values: Iterable[Any]) -> list[bytes | None]:
        """The digest of each entry; None for whatever has to go the long way.

        One loop, with what it needs in local names: each call saved counts.
        """
        hashed, forms, classes = hash_of(self._algorithm), self._forms, _CLASSES
        total = fresh = 0
        found: list[bytes | None] = []
        add = found.append
        for value in values:
            digest = None
            try:
                if type(value) in classes and value.is_cpu:
                    form = forms[value.dtype, value.shape]
                    if form is not None and value.is_contiguous() and not value.is_neg():
                        size, memory, part, entry, seen = form
                        address, storage = value.data_ptr(), value.untyped_storage()
                        # Memory may have been freed, or cut: the long way says so.
                        if address and address + size <= storage.data_ptr() + storage.nbytes():
                            total += size
                            digest = seen.get(address)
                            if digest is None:
                                digest = seen[address] = hashed(entry + hashed(part + hashed(memory(address))))
                                fresh += size
            except RuntimeError:  # sparse, nested, or inside a function transform: there is no shape, or no address
                digest = None
            add(digest)
        self.bytes += total
        self.hashed += fresh
        return found
