"""What a training loop holds, by name and kind: parameters, buffers, gradients, optimizer and scheduler state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .kinds import Kind, Named

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


def replica_state(
    model: torch.nn.Module,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    scheduler: Any = None,
    gradients: bool = False,
    buffers: bool = True,
) -> list[Named]:
    """Everything under one name each, for `assert_rank_equal`. Tied parameters are there under each of their names.

    Optimizer state is named after its parameter (`layers.0.weight.exp_avg`), groups' settings by their number
    (`group 0.lr`). Of a scheduler it is what its `state_dict` holds.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    found = [Named(name, one, Kind.PARAMETERS) for name, one in parameters.items()]
    if gradients:
        found += [Named(name, one.grad, Kind.GRADIENTS) for name, one in parameters.items() if one.requires_grad]
    if buffers:
        found += [Named(name, one, Kind.BUFFERS) for name, one in model.named_buffers(remove_duplicate=False)]
    if optimizer is not None:
        found += _optimizer(optimizer, {one: name for name, one in model.named_parameters()})
    if scheduler is not None:
        found += [Named(name, held, Kind.SCHEDULER) for name, held in _flat("", scheduler.state_dict())]
    return found


def _optimizer(optimizer: torch.optim.Optimizer, names: dict[torch.Tensor, str]) -> Iterator[Named]:
    for place, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            if key == "params":
                members = [names.get(one, "?") for one in value]
                yield Named(f"group {place}.params", members, Kind.OPTIMIZER)
            else:
                yield from (Named(name, held, Kind.OPTIMIZER) for name, held in _flat(f"group {place}.{key}", value))
        for at, parameter in enumerate(group["params"]):
            base = names.get(parameter, f"group {place}[{at}]")
            for key, value in optimizer.state.get(parameter, {}).items():
                yield from (Named(name, held, Kind.OPTIMIZER) for name, held in _flat(f"{base}.{key}", value))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What lies in dicts and lists, under a name of its own each. What holds nothing stays what it is."""
    if isinstance(value, dict) and value:
        for key, held in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), held)
    elif isinstance(value, list | tuple) and value:
        for place, held in enumerate(value):
            yield from _flat(f"{name}.{place}", held)
    else:
        yield name, value
