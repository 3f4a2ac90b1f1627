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
    "assert_rank_equal",
    "broadcast_trainable_parameters",
    "synchronize_gradients",
)
__all__ = [
    "RanksDiffer",
    "__version__",
    "assert_rank_equal",
    "broadcast_trainable_parameters",
    "check_ranks",
    "compare",
    "scan",
    "synchronize_gradients",
]

if TYPE_CHECKING:
    from .library import RanksDiffer, check_ranks, compare, scan
    from .replicas import assert_rank_equal, broadcast_trainable_parameters, synchronize_gradients


def __getattr__(name: str) -> Any:
    if name in _REPLICAS:
        from . import replicas

        return getattr(replicas, name)
    if name in __all__:
        from . import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
