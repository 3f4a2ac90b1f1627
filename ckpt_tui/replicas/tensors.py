"""From any kind of tensor to what tells it apart, and to the plain tensors that hold its bytes.

Nothing is copied in here, and no byte is read. Every kind is named in docs/replicas.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..present.safe import escape
from .values import Unreadable, encoded

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Integers of each width: bits travel in them as they are, where a float's might be made quiet.
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}
#: Quantized dtypes with one element to an integer.
_QUANTIZED = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}


class Part(NamedTuple):
    """A strided tensor whose elements, in logical order, are some of an entry's bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    tensor: torch.Tensor


@dataclass(frozen=True, slots=True)
class Entry:
    """What a value is (`tensor`, `none`, `value`, `meta`, `sparse_coo`, ...), and the parts that hold its bytes.

    `facts` tell it apart beside dtype and shape. `value` is what is shown of a plain Python value.
    """

    what: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    facts: tuple[tuple[str, bytes], ...] = ()
    parts: tuple[Part, ...] = ()
    value: Any = None

    @property
    def schema(self) -> str:
        """What it is, in words: `float32 [4, 4]`, `sparse_coo float32 [3]`, `none`."""
        words = [] if self.what == "tensor" else [self.what]
        if self.dtype:
            words += [self.dtype, str(list(self.shape))]
        return " ".join(words)

    @property
    def length(self) -> int:
        """Bytes of all its parts."""
        return sum(part.tensor.nbytes for part in self.parts)


_NONE = Entry("none")


def describe(value: object) -> Entry:
    """What a value is. Raises Unreadable where it cannot be told, or its bytes cannot be read."""
    if value is None:
        return _NONE
    if not isinstance(value, torch.Tensor):
        return Entry("value", facts=(("value", encoded(value)),), value=value)
    if torch.nn.parameter.is_lazy(value):
        return Entry("uninitialized")
    try:
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - what torch's own wrappers use
            return _described(value.detach())
    except Unreadable:
        raise
    except Exception as error:  # torch raises whatever it likes for a kind that lacks an operator
        raise Unreadable(f"{_kind_name(value)}: {escape(str(error).partition(chr(10))[0][:200])}") from error


def _kind_name(tensor: torch.Tensor) -> str:
    return escape(type(tensor).__qualname__)


def _described(tensor: torch.Tensor) -> Entry:
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return _wrapper(tensor)
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):  # noqa: SLF001
        raise Unreadable("a tensor inside a function transform (vmap, grad) has no bytes of its own")
    dtype, shape = _dtype(tensor), tuple(tensor.shape) if not tensor.is_nested else ()
    if tensor.device.type == "meta":
        return Entry("meta", dtype, shape)
    if tensor.is_nested:
        return _nested(tensor)
    if tensor.is_quantized:
        return _quantized(tensor)
    if tensor.layout == torch.strided:
        return Entry("tensor", dtype, shape, parts=(_part("", tensor),))
    if tensor.layout == torch.sparse_coo:
        found = (_part("indices", tensor._indices()), _part("values", tensor._values()))  # noqa: SLF001 - as they are
        return Entry("sparse_coo", dtype, shape, (("sparse_dim", b"%d" % tensor.sparse_dim()),), found)
    if tensor.layout in _COMPRESSED:
        parts = (
            *(_part(name, getattr(tensor, name)()) for name in _COMPRESSED[tensor.layout]),
            _part("values", tensor.values()),
        )
        return Entry(str(tensor.layout).removeprefix("torch."), dtype, shape, parts=parts)
    raise Unreadable(f"a tensor of layout {tensor.layout}")


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _part(name: str, tensor: torch.Tensor, dtype: str | None = None) -> Part:
    """A plain tensor. Its storage must hold it: that of a sharded parameter may have been freed."""
    shape = tuple(tensor.shape)
    if tensor.numel():
        last = sum((size - 1) * stride for size, stride in zip(shape, tensor.stride(), strict=True))
        needed = (tensor.storage_offset() + last + 1) * tensor.element_size()
        held = tensor.untyped_storage().nbytes()
        if held < needed:
            raise Unreadable(f"its storage holds {held:,} of {needed:,} bytes: freed, or not yet allocated")
    return Part(name, dtype or _dtype(tensor), shape, _raw(tensor))


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as integers of their width, where that is a view; conjugates and negatives stay what they are.

    They are resolved where they are copied, piece by piece.
    """
    if tensor.is_conj() or tensor.is_neg():
        return tensor
    if tensor.dtype == torch.complex128:
        tensor = torch.view_as_real(tensor)
    return tensor.view(_INTEGERS[tensor.element_size()])


def _wrapper(tensor: torch.Tensor) -> Entry:
    """Subclasses that make what they are of other tensors."""
    module = type(tensor).__module__
    if module.startswith("torch.distributed.tensor") and hasattr(tensor, "device_mesh"):
        return _dtensor(tensor)
    if module == "torch.distributed._functional_collectives" and hasattr(tensor, "trigger_wait"):
        return _described(tensor.trigger_wait())
    if tensor.is_nested and tensor.layout == torch.jagged:
        return _nested(tensor)
    raise Unreadable(f"a tensor of class {escape(type(tensor).__qualname__)}, whose bytes are its own affair")


def _dtensor(tensor: Any) -> Entry:
    """The local shard, the placements, and where in the mesh it lies, along the dimensions that are not replicated."""
    local = _described(tensor.to_local())
    mesh, placements = tensor.device_mesh, tensor.placements
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        raise Unreadable("a DTensor of whose mesh this rank is no part")
    where = [
        None if placement.is_replicate() else place for place, placement in zip(coordinate, placements, strict=True)
    ]
    facts = (
        ("placements", encoded([str(placement) for placement in placements])),
        ("mesh", encoded(list(mesh.shape))),
        ("coordinate", encoded(where)),
        ("local", encoded([local.what, local.dtype, list(local.shape)])),
        *((f"local {key}", value) for key, value in local.facts),
    )
    spot = ", ".join("*" if place is None else str(place) for place in where)
    words = ", ".join(str(placement) for placement in placements)
    return Entry("dtensor", _dtype(tensor), tuple(tensor.shape), facts, local.parts, value=f"{words} at ({spot})")


def _nested(tensor: torch.Tensor) -> Entry:
    """Each of its components. Their number and shapes are among the facts by way of the parts."""
    found = tuple(_components(tensor))
    return Entry("nested", _dtype(tensor), (len(found),), (("layout", str(tensor.layout).encode()),), found)


def _components(tensor: torch.Tensor) -> Iterator[Part]:
    for place, component in enumerate(tensor.unbind()):
        yield _part(str(place), component.detach())


def _quantized(tensor: torch.Tensor) -> Entry:
    """The integers, and what they stand for: scales, zero points and, where there are several, their axis."""
    scheme = tensor.qscheme()
    facts = [("scheme", str(scheme).encode())]
    more: tuple[Part, ...] = ()
    if scheme in {torch.per_tensor_affine, torch.per_tensor_symmetric}:
        facts += [("scale", encoded(tensor.q_scale())), ("zero_point", encoded(tensor.q_zero_point()))]
    else:
        facts.append(("axis", encoded(tensor.q_per_channel_axis())))
        more = (
            _part("scales", tensor.q_per_channel_scales()),
            _part("zero_points", tensor.q_per_channel_zero_points()),
        )
    if tensor.dtype in _QUANTIZED:
        integers = torch.empty(0, dtype=_QUANTIZED[tensor.dtype], device=tensor.device)
        integers.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())
    else:  # several elements to a byte
        integers = tensor.int_repr()
    parts = (_part("integers", integers, _dtype(tensor)), *more)
    return Entry("quantized", _dtype(tensor), tuple(tensor.shape), tuple(facts), parts)
