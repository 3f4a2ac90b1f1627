"""Replicas that begin alike and step alike: rank 0's parameters to all, and gradients summed after accumulation.

Without DDP's hooks: each is one call, in which no collective is entered before every rank is known to come to the same
one. CPU tensors travel in the control group. CUDA tensors travel in the default group where that has the same ranks
and a backend for them (NCCL); else in the control group as well, where Gloo takes them through host memory.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from ..facts import ranksets
from ..present.safe import error_text, is_safe
from .buckets import Slot, flattened, plan
from .control import Control, ControlLost, lost
from .schema import Member, StepRefused, agree, by_text, overlaps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from .schema import Parameters

BUCKET_BYTES = 32 << 20

#: What a rank says of a gradient. MAX over the ranks: what one refuses, all refuse; what one uses, all step.
_UNUSED, _USED, _REFUSED = 0, 1, 2


def broadcast_trainable_parameters(
    parameters: Parameters, *, control_group: dist.ProcessGroup, bucket_bytes: int = BUCKET_BYTES
) -> None:
    """Give every rank the values, bit for bit, that the first rank of `control_group` has in trainable parameters.

    Collective. `parameters` is what `model.named_parameters()` or `model.parameters()` gives, in the same order on all
    ranks; those with `requires_grad=False` are compared and left as they are. Memory on top: one bucket, or the largest
    parameter.

    Raises ValueError where `control_group` is no Gloo group of this process, StepRefused on all ranks with the same
    text, nothing changed, where count, names, shapes, dtypes, order, devices or `requires_grad` differ or a parameter
    is no plain tensor or expanded, and ControlLost where a rank is gone, does not come within the groups' timeout or
    lacks the memory: some parameters may then have been filled.
    """
    control = Control(control_group)
    what = "the broadcast of parameters"
    members = [m for m in agree(control, parameters, bucket_bytes=bucket_bytes, what=what) if m.tensor.requires_grad]
    slots = [Slot(i, m.tensor.device, m.tensor.dtype, m.tensor.numel()) for i, m in enumerate(members)]
    buckets = plan(slots, bucket_bytes)
    with torch.no_grad():
        for number, bucket in enumerate(buckets, 1):
            tensors = [members[slot.place].tensor.detach() for slot in bucket]
            _together(
                control,
                flattened(tensors, bucket[0].dtype),
                # As bytes: Gloo knows few dtypes, and none may change a bit.
                lambda flat, group: dist.broadcast(flat.view(torch.uint8), src=control.ranks[0], group=group),
                f"{what}, bucket {number} of {len(buckets)}",
            )


def synchronize_gradients(
    parameters: Parameters, *, control_group: dist.ProcessGroup, bucket_bytes: int = BUCKET_BYTES
) -> None:
    """Replace every gradient by its sum over the ranks of `control_group`. Nothing is divided.

    Collective, once after accumulation, with gradients that are already normalised for all ranks together. A
    parameter without a gradient on this rank counts as zero and gets the sum; one that has none on any rank keeps
    None, so that the optimizer does not touch it. dtypes narrower than float32 are summed in float32 and rounded once.

    Raises as `broadcast_trainable_parameters` does; sparse gradients, and those that are not of their parameter's
    shape, dtype and device, are refused on all ranks too, before any is summed. After ControlLost some gradients may
    have been summed: do not step.
    """
    control = Control(control_group)
    what = "the sum of gradients"
    members = agree(control, parameters, bucket_bytes=bucket_bytes, what=what)
    used = _used(control, members, what)
    slots = [Slot(i, m.tensor.device, m.gradient_dtype, m.tensor.numel()) for i, m in enumerate(members) if used[i]]
    buckets = plan(slots, bucket_bytes)
    with torch.no_grad():
        for member in (members[slot.place] for slot in slots if not slot.elements):
            _hand_back(member, _gradient(member))
        for number, bucket in enumerate(buckets, 1):
            _together(
                control,
                _to_be_summed([members[slot.place] for slot in bucket], _summed_in(bucket[0].dtype)),
                lambda flat, group: dist.all_reduce(flat, op=dist.ReduceOp.SUM, group=group),
                f"{what}, bucket {number} of {len(buckets)}",
            )


def _used(control: Control, members: Sequence[Member], what: str) -> list[bool]:
    """Which parameters have a gradient on any rank; StepRefused on all where one cannot be summed on some."""
    if not members:
        return []
    troubles = [_trouble(member) for member in members]
    codes = bytearray(
        _REFUSED if trouble else _UNUSED if member.tensor.grad is None else _USED
        for member, trouble in zip(members, troubles, strict=True)
    )
    mask = torch.frombuffer(codes, dtype=torch.uint8)
    _together(
        control,
        nullcontext(mask),
        lambda flat, group: dist.all_reduce(flat, op=dist.ReduceOp.MAX, group=group),
        f"{what}, the mask",
    )
    if _REFUSED not in codes:
        return [code == _USED for code in codes]
    place = codes.index(_REFUSED)
    said = control.gather(troubles[place].encode(), what=f"{what}, what is refused")
    held = by_text(control.ranks, [raw.decode("utf-8", "replace") for raw in said])
    words = ", ".join(
        f"{text if is_safe(text) else 'cannot be read'} on {ranksets.named(ranks)}"
        for text, ranks in held.items()
        if text
    )
    raise StepRefused(f"{what} is refused, and nothing was changed: the gradient of {members[place].label} {words}")


def _trouble(member: Member) -> str:
    """Why a gradient cannot be summed; '' if it can, or is not there."""
    parameter, gradient = member.tensor, member.tensor.grad
    if gradient is None:
        return ""
    if gradient.layout is not torch.strided:
        return "is sparse (make the embedding with sparse=False)"
    if type(gradient).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return "is no plain tensor"
    wanted = (parameter.shape, member.gradient_dtype, parameter.device)
    if (gradient.shape, gradient.dtype, gradient.device) != wanted:
        return f"is {gradient.dtype} {list(gradient.shape)} on {gradient.device}, which is not as its parameter"
    return "is expanded" if overlaps(tuple(gradient.shape), gradient.stride()) else ""


def _gradient(member: Member) -> torch.Tensor:
    """The gradient to be summed in place: zeros where there is none, and no lazy conjugate, which has no real view."""
    gradient = member.tensor.grad
    if gradient is None:
        return torch.zeros_like(member.tensor, dtype=member.gradient_dtype, requires_grad=False)
    if gradient.is_conj() or gradient.is_neg():
        member.tensor.grad = gradient = gradient.resolve_conj().resolve_neg()
    return gradient.detach()


@contextmanager
def _to_be_summed(members: Sequence[Member], dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """The members' gradients in one piece; what is in it afterwards is theirs."""
    gradients = [_gradient(member) for member in members]
    with flattened([_real(gradient) for gradient in gradients], dtype) as flat:
        yield flat
    for member, gradient in zip(members, gradients, strict=True):
        _hand_back(member, gradient)


def _hand_back(member: Member, summed: torch.Tensor) -> None:
    """A gradient that was there has been summed in place; one that was not is put there."""
    if member.tensor.grad is None:
        member.tensor.grad = summed


def _real(gradient: torch.Tensor) -> torch.Tensor:
    """Real numbers only: MAX and SUM of complex ones are not to be had everywhere."""
    return torch.view_as_real(gradient) if gradient.is_complex() else gradient


def _summed_in(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype in {torch.float64, torch.complex128} else torch.float32


def _together(
    control: Control,
    packed: AbstractContextManager[torch.Tensor],
    collective: Callable[[torch.Tensor, Any], object],
    what: str,
) -> None:
    """Enter a collective once all ranks have packed what goes into it, and leave it when it is done on the device too.

    A rank that is early would otherwise carry its next bucket into one that is unfinished elsewhere. One that cannot
    pack, for want of memory, says so, and no rank enters.
    """
    with ExitStack() as stack:
        try:
            flat = stack.enter_context(packed)
            _settle(flat.device)
        except Exception as error:
            control.barrier(what=what, trouble=error_text(error))
            raise
        control.barrier(what=what)
        try:
            collective(flat, carrier(control, flat.device))
            _settle(flat.device)
        except RuntimeError as error:
            raise ControlLost(lost(what, error)) from error


def _settle(device: torch.device) -> None:
    """Return when all that was queued on the device is done."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def carrier(control: Control, device: torch.device) -> Any:
    """The group in which tensors of a device travel."""
    world = dist.group.WORLD
    if device.type == "cpu" or world is None:
        return control.group
    if sorted(dist.get_process_group_ranks(world)) != sorted(control.ranks):
        return control.group
    backends = dict(pair.split(":") for pair in dist.get_backend_config(world).split(","))
    return world if device.type in backends else control.group
