"""Do the ranks hold the same? Pure: fingerprints go in, the verdict with its evidence comes out.

`judge()` is the one entrance. Where it finds differences, `descent` says which bytes to look at, and what they tell
goes back into `judge()`. Nothing in here opens a file or a socket, so that 4096 ranks can be tested in memory.
"""

from __future__ import annotations

from .fingerprint import content_table, failed, fingerprint, identity_fingerprint
from .groups import groups_of
from .judge import Testimony, judge
from .tables import files_to_descend

__all__ = [
    "Testimony",
    "content_table",
    "failed",
    "files_to_descend",
    "fingerprint",
    "groups_of",
    "identity_fingerprint",
    "judge",
]
