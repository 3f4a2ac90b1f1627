"""Checkpoints that one machine sees side by side: each is scanned or loaded, and then answers as a rank would."""

from .comparison import Comparison, LookProgress

__all__ = ["Comparison", "LookProgress"]
