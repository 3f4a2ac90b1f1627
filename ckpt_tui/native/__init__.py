"""Hashing, packing and parsing in bulk: in C where that was built, in Python everywhere else, with the same results.

What goes into which digest is `digest.layout`'s to say, and what a header means `checkpoint.header`'s. `plain` says
what each function does. The C lies in `src/`; a build that fails for want of a compiler leaves a package that works.
"""

from __future__ import annotations

from contextlib import suppress

#: Whether the compiled code is there.
COMPILED = True
try:
    from ._compiled import header_columns, leaf_digests, leaf_ends, pack_rows, segment_digests
except ImportError:
    COMPILED = False
    from .plain import header_columns, leaf_digests, leaf_ends, pack_rows, segment_digests

#: How many messages' SHA-256 a core computes at once in less time than one after the other. `Sha256` does two of them.
ABREAST = 1
with suppress(ImportError):  # nor has every processor the instructions
    from ._compiled import ABREAST, Sha256

__all__ = [
    "ABREAST",
    "COMPILED",
    "Sha256",
    "header_columns",
    "leaf_digests",
    "leaf_ends",
    "pack_rows",
    "segment_digests",
]
