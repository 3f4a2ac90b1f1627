"""Hashing, packing and parsing in bulk: in C where that was built, in Python everywhere else, with the same results.

What goes into which digest is `digest.layout`'s to say, and what a header means `checkpoint.header`'s. `plain` says
what each function does. The C lies in `src/`; a build that fails for want of a compiler leaves a package that works.
"""

from __future__ import annotations

#: Whether the compiled code is there.
COMPILED = True
try:
    from ._compiled import headed_digests, header_columns, leaf_digests, leaf_ends, pack_rows
except ImportError:
    COMPILED = False
    from .plain import headed_digests, header_columns, leaf_digests, leaf_ends, pack_rows

#: Whether there is a `Sha256`: not without compiled code, nor where the processor has no instructions for it.
HAS_SHA256 = True
try:
    from ._compiled import Sha256
except ImportError:
    HAS_SHA256 = False

__all__ = [
    "COMPILED",
    "HAS_SHA256",
    "Sha256",
    "headed_digests",
    "header_columns",
    "leaf_digests",
    "leaf_ends",
    "pack_rows",
]
