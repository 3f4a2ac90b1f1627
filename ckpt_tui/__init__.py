"""ckpt-tui: does every rank hold the same checkpoint, byte for byte, and if not, which bytes, on which rank, and why?

The library's entrances are imported when they are first used, so that `import ckpt_tui` costs nothing:
`scan`, `compare` and `check_ranks` for checkpoints; `assert_rank_equal` and what else `ckpt_tui.replicas` offers for
tensors in memory, which need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .facts import version

__version__ = version.VERSION

_REPLICAS = (
    "ReplicaCheck",
    "assert_rank_equal",
    "broadcast_trainable_parameters",
    "replica_state",
    "synchronize_gradients",
    "where_they_differ",
)
__all__ = [
    "RanksDiffer",
    "ReplicaCheck",
    "__version__",
    "assert_rank_equal",
    "broadcast_trainable_parameters",
    "check_ranks",
    "compare",
    "replica_state",
    "scan",
    "synchronize_gradients",
    "where_they_differ",
]

if TYPE_CHECKING:
    from .library import RanksDiffer, check_ranks, compare, scan
    from .replicas import (
        ReplicaCheck,
        assert_rank_equal,
        broadcast_trainable_parameters,
        replica_state,
        synchronize_gradients,
        where_they_differ,
    )


def __getattr__(name: str) -> Any:
    if name in _REPLICAS:
        from . import replicas

        return getattr(replicas, name)
    if name in __all__:
        from . import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
