"""Ranks that compare their checkpoints: real processes, torch's store, a Gloo group of their own.

torch itself is imported when a session joins, never by importing this.
"""

from .environment import Flags, Place, find_place
from .session import Session

__all__ = ["Flags", "Place", "Session", "find_place"]
