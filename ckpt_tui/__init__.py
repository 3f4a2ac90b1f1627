"""ckpt-tui: does every rank hold the same checkpoint, byte for byte, and if not, which bytes, on which rank, and why?

The library's entrances are imported when they are first used, so that `import ckpt_tui` costs nothing:
`scan`, `compare` and `check_ranks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .facts import version

__version__ = version.VERSION

__all__ = ["RanksDiffer", "__version__", "check_ranks", "compare", "scan"]

if TYPE_CHECKING:
    from .library import RanksDiffer, check_ranks, compare, scan


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
