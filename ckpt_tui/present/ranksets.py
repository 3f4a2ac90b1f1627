"""Rank sets as people write them: `[0-3,5]`. They lie in `facts`, since the verdict's sentences need them too."""

from __future__ import annotations

from ..facts.ranksets import fold, named

__all__ = ["fold", "named"]
