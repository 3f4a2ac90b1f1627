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
    "StepRefused": "schema",
    "broadcast_trainable_parameters": "synchronize",
    "synchronize_gradients": "synchronize",
}

__all__ = ["ControlLost", "RanksDiffer", "StepRefused", "broadcast_trainable_parameters", "synchronize_gradients"]

if TYPE_CHECKING:
    from .control import ControlLost
    from .schema import StepRefused
    from .synchronize import broadcast_trainable_parameters, synchronize_gradients


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
