"""Live tensors inside a training job: do all ranks hold the same bits? `docs/replicas.md` is its page.

The entrances are imported when they are first used: torch, which they need, takes a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..facts.outcome import RanksDiffer

#: Where each entrance is.
_HOMES: dict[str, str] = {}

__all__ = ["RanksDiffer"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
