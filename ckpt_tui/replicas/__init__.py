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
    "StepRefused": "schema",
    "assert_rank_equal": "check",
    "broadcast_trainable_parameters": "synchronize",
    "synchronize_gradients": "synchronize",
}

__all__ = [
    "ControlLost",
    "Kind",
    "Named",
    "RanksDiffer",
    "StepRefused",
    "assert_rank_equal",
    "broadcast_trainable_parameters",
    "synchronize_gradients",
]

if TYPE_CHECKING:
    from .check import assert_rank_equal
    from .control import ControlLost
    from .kinds import Kind, Named
    from .schema import StepRefused
    from .synchronize import broadcast_trainable_parameters, synchronize_gradients


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
