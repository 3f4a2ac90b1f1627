"""torch, imported when the first rank needs it, and without its word on a numpy that nobody uses here."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def load_torch() -> ModuleType:
    """The `torch` module with `torch.distributed` in it. Takes a second the first time."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Failed to initialize NumPy", category=UserWarning)
        import torch
        import torch.distributed
    module: ModuleType = torch
    return module
