"""Files that are one rank's own by their names: `model-rank-0-part-0.bin`, `states-TP-001.pt`. Pure."""

from __future__ import annotations

import re

#: The parts of a job that checkpoints are split by, with a number: a rank, or a place in a parallel layout.
_OWN = re.compile(r"(?:^|[-_./])((?:mp_?)?rank|[tpedcz]p)[-_]?(\d+)(?=[-_./]|$)", re.IGNORECASE)


def pattern(name: str) -> str | None:
    """The pattern that takes in this file and its like on other ranks; None for a name that tells of no rank."""
    if any(char in name for char in "*?[]\\"):
        return None  # no pattern matches just it
    found = list(_OWN.finditer(name))
    if not found:
        return None
    for match in reversed(found):
        name = name[: match.start(2)] + "*" + name[match.end(2) :]
    return name
