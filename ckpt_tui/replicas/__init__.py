"""Live tensors inside a training job: do all ranks hold the same bits? `docs/replicas.md` is its page.

The entrances are imported when they are first used: torch, which they need, takes a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..facts.outcome import RanksDiffer

#: Where each entrance is.
_HOMES = {
    "ControlLost": "control",
    "Kind": "kinds",
    "Named": "kinds",
    "ReplicaCheck": "loop",
    "StepRefused": "schema",
    "assert_rank_equal": "check",
    "broadcast_trainable_parameters": "synchronize",
    "replica_state": "training",
    "synchronize_gradients": "synchronize",
    "where_they_differ": "check",
}

__all__ = [
    "ControlLost",
    "Kind",
    "Named",
    "RanksDiffer",
    "ReplicaCheck",
    "StepRefused",
    "assert_rank_equal",
    "broadcast_trainable_parameters",
    "replica_state",
    "synchronize_gradients",
    "where_they_differ",
]

if TYPE_CHECKING:
    from .check import assert_rank_equal, where_they_differ
    from .control import ControlLost
    from .kinds import Kind, Named
    from .loop import ReplicaCheck
    from .schema import StepRefused
    from .synchronize import broadcast_trainable_parameters, synchronize_gradients
    from .training import replica_state


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
