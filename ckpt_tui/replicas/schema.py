"""Do all ranks hold the same parameters, as far as collectives care? Asked before any is entered.

A collective whose sizes differ between ranks hangs or aborts the process, so count, names, shapes, dtypes, order,
devices and `requires_grad` are compared first. What one rank cannot do is refused on all, with the same text.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import torch
import xxhash
from torch.nn.parameter import is_lazy

from ..facts import ranksets
from ..facts.outcome import CkptError, Exit
from ..present import units
from ..present.safe import error_text, escape, is_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .control import Control

    #: What `model.parameters()` and `model.named_parameters()` give.
    Parameters = Iterable[torch.Tensor] | Iterable[tuple[str, torch.Tensor]]

#: Differing parameters that an error names.
_NAMED = 3
#: Characters of a name that are shown and compared as they are; its digest stands behind those of a longer one.
_NAME = 200


class StepRefused(CkptError, RuntimeError):
    """The ranks cannot do this step together. Every rank raises it with the same text; no tensor was changed."""

    code = Exit.DIFFERENT


class Member(NamedTuple):
    """A parameter: its place among those given, its name if it has one, and the dtype of its gradients."""

    place: int
    name: str | None
    tensor: torch.Tensor
    gradient_dtype: torch.dtype

    @property
    def label(self) -> str:
        """How errors name it."""
        return f"parameter {self.place}" if self.name is None else self.name


class _Unfit(CkptError):
    """A parameter that cannot take part, in words."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """What has to be equal of one parameter. `device` is its type, and which of several a rank uses."""

    name: str | None
    kind: str
    shape: tuple[int, ...]
    trainable: bool
    device: str

    def __str__(self) -> str:
        name = "" if self.name is None else f"{self.name} "
        device = "" if self.device == "cpu" else f" on {self.device}"
        return f"{name}{self.kind} {list(self.shape)}{device}{'' if self.trainable else ', frozen'}"


class Listing(msgspec.Struct, frozen=True, array_like=True):
    """What one rank says: its parameters, the size of its buckets, and what keeps it from taking part."""

    rows: tuple[Row, ...]
    bucket_bytes: int
    trouble: str = ""


def agree(control: Control, parameters: Parameters, *, bucket_bytes: int, what: str) -> list[Member]:
    """This rank's parameters, each once, where those of all ranks are alike; StepRefused on all ranks where not.

    `what` names the step. Collective: one exchange of digests, and one of the listings where these are not equal.
    """
    members: list[Member] = []
    trouble, cause = "", None
    try:
        members = _members(parameters)
    except Exception as error:  # noqa: BLE001 - an iterator is anybody's code, and all ranks have to hear of it
        trouble, cause = error_text(error), error
    if not trouble and not (isinstance(bucket_bytes, int) and 0 < bucket_bytes < 1 << 63):
        trouble = "bucket_bytes has to be a positive number of bytes"
    size = bucket_bytes if not trouble else 0
    mine = msgspec.msgpack.encode(Listing(_rows(members), size, trouble))
    digest = hashlib.sha256(mine).digest()
    heard = control.gather(digest + bool(trouble).to_bytes(1, "little"), what=f"{what}: digests of the parameters")
    if len(set(heard)) == 1 and not trouble:
        return members
    told = [_decoded(raw) for raw in control.gather(mine, what=f"{what}: lists of the parameters")]
    raise StepRefused(f"{what} is refused, and nothing was changed: {_difference(control.ranks, told)}") from cause


def _members(parameters: Parameters) -> list[Member]:
    """Each parameter once, as an optimizer would take them."""
    found: dict[int, Member] = {}
    for place, given in enumerate(parameters):
        name, tensor = given if isinstance(given, tuple) else (None, given)
        if not isinstance(tensor, torch.Tensor):
            raise _Unfit(f"parameter {place} is no tensor but a {type(tensor).__name__}")
        if id(tensor) not in found:
            gradient_dtype = getattr(tensor, "grad_dtype", None) or tensor.dtype
            member = Member(place, None if name is None else _shown(name), tensor, gradient_dtype)
            _check(member)
            found[id(tensor)] = member
    return list(found.values())


def _shown(name: str) -> str:
    text = escape(name)
    return text if len(text) <= _NAME else f"{escape(name[:_NAME])}... ({xxhash.xxh3_128_hexdigest(text.encode())})"


def _check(member: Member) -> None:
    """Raise where a tensor cannot be packed into a bucket and filled from one."""
    tensor = member.tensor
    if is_lazy(tensor):
        raise _Unfit(f"{member.label} is not initialized")
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        kind = escape(type(tensor).__qualname__)
        raise _Unfit(f"{member.label} is no plain tensor but a {kind}: a shard, for one, is no replica")
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        raise _Unfit(f"{member.label} is no plain tensor, but sparse, nested or quantized")
    if tensor.is_meta:
        raise _Unfit(f"{member.label} is on the meta device: it has no values")
    shape, strides = tuple(tensor.shape), tensor.stride()
    if overlaps(shape, strides):
        raise _Unfit(f"{member.label} is expanded: several of its elements are one in memory")
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    ends = (tensor.storage_offset() + last + 1) * tensor.element_size()
    if tensor.numel() and tensor.untyped_storage().nbytes() < ends:
        raise _Unfit(f"{member.label} has no memory of its own now: it was freed, as those of sharded modules are")


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements of a strided tensor may share memory, as those of an expanded one do."""
    reach = 0
    if 0 in shape:
        return False
    for stride, size in sorted((stride, size) for size, stride in zip(shape, strides, strict=True) if size > 1):
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


def _rows(members: Sequence[Member]) -> tuple[Row, ...]:
    devices: dict[str, dict[torch.device, int]] = defaultdict(dict)
    rows = []
    for _, name, tensor, gradient in members:
        kind = str(tensor.dtype).removeprefix("torch.")
        if gradient != tensor.dtype:
            kind += f" (gradients {str(gradient).removeprefix('torch.')})"
        number = devices[tensor.device.type].setdefault(tensor.device, len(devices[tensor.device.type]))
        device = f"{tensor.device.type}{f' ({number + 1})' if number else ''}"
        rows.append(Row(name, kind, tuple(tensor.shape), tensor.requires_grad, device))
    return tuple(rows)


def _decoded(raw: bytes) -> Listing:
    """What a rank says; what cannot be read or shown becomes its trouble."""
    try:
        listing = msgspec.msgpack.decode(raw, type=Listing)
    except msgspec.DecodeError:
        return Listing((), 0, "its list of parameters cannot be read")
    texts = [listing.trouble, *(text for row in listing.rows for text in (row.name or "", row.kind, row.device))]
    return listing if all(map(is_safe, texts)) else Listing((), 0, "its list of parameters cannot be shown")


def _difference(ranks: Sequence[int], told: Sequence[Listing]) -> str:
    """What to say of listings that are not equal, or of ranks in trouble."""
    troubles = by_text(ranks, [listing.trouble for listing in told])
    if len(troubles) > 1 or "" not in troubles:
        return _sides({text: held for text, held in troubles.items() if text})
    if len(sizes := by_text(ranks, [f"bucket_bytes={listing.bucket_bytes}" for listing in told])) > 1:
        return _sides(sizes)
    counts = by_text(ranks, [units.count(len(listing.rows), "parameter") for listing in told])
    words = [_sides(counts)] if len(counts) > 1 else []
    if len(counts) == 1 and len({frozenset(Counter(listing.rows).items()) for listing in told}) == 1:
        words.append("the same parameters in another order")
    apart = [place for place in range(max(len(listing.rows) for listing in told)) if len(set(_at(told, place))) > 1]
    words += [f"parameter {place} is {_sides(by_text(ranks, _at(told, place)))}" for place in apart[:_NAMED]]
    if len(apart) > _NAMED and len(counts) == 1:
        words.append(f"and {len(apart) - _NAMED:,} more differ")
    return "; ".join(words)


def _at(told: Sequence[Listing], place: int) -> list[str]:
    return [str(listing.rows[place]) if place < len(listing.rows) else "not there" for listing in told]


def by_text(ranks: Sequence[int], words: Sequence[str]) -> dict[str, list[int]]:
    """The ranks of each text, in order."""
    held: dict[str, list[int]] = {}
    for rank, text in zip(ranks, words, strict=True):
        held.setdefault(text, []).append(rank)
    return held


def _sides(held: dict[str, list[int]]) -> str:
    return ", ".join(f"{text} on {ranksets.named(ranks)}" for text, ranks in held.items())
