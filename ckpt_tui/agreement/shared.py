"""Copies that ranks of several groups have read: one and the same files, and not the same bytes. Pure.

That accuses a host (its memory, its network, what its cache holds of the file) and never the file.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..facts.agreement import CauseCode
from ..facts.files import Role
from .scene import Finding
from .tables import contents_differ

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..facts.agreement import Fingerprint
    from .groups import Members, WeightClass
    from .scene import Scene
    from .tables import FileDifference

#: The first rank of each group, by its label, that has read one copy.
Readers = dict[str, "Fingerprint"]
#: What is said of these needs no other explanation: the machine was seen at fault, or nothing was read.
_SAID = frozenset({CauseCode.UNSTABLE_READ, CauseCode.UNREADABLE, CauseCode.CHANGED, CauseCode.MISSING})


def read_by_several(labels: Sequence[str], groups: Sequence[Members]) -> tuple[Readers, ...]:
    """The copies that more than one group has read."""
    readers: defaultdict[str, Readers] = defaultdict(dict)
    for label, group in zip(labels, groups, strict=True):
        for member in group.fingerprints:
            if member.copy_id is not None:
                readers[member.copy_id].setdefault(label, member)
    return tuple(one for one in readers.values() if len(one) > 1)


def phrases(shared: Sequence[Readers], weights: Mapping[int, WeightClass]) -> dict[str, str]:
    """By group, where its weights are proven to differ from what another read in the very same files, who did."""
    said: dict[str, str] = {}
    for readers in shared:
        known = {label: weights[one.rank] for label, one in readers.items() if one.rank in weights}
        for label, mine in known.items():
            other = next((name for name, theirs in known.items() if mine.differs(theirs)), None)
            if other is not None:
                who = f"{_who(readers[label])} read the very files that {_who(readers[other])} did"
                said.setdefault(label, f"{who}, and got other bytes")
    return said


def read_differently(found: FileDifference, likeliest: Finding, scene: Scene) -> Finding | None:
    """The cause where one file was read, and not alike; what the bytes tell is among its facts.

    Perhaps, where it was not read again on both sides: it may have been written between the two readings.
    """
    if found.role is not Role.WEIGHTS or likeliest.code in _SAID:
        return None
    for readers in scene.shared:
        rows = {label: row for label in readers if (row := found.rows.get(label)) is not None}
        if len(rows) < 2 or not contents_differ(rows.values()):
            continue
        told = " / ".join(f"{label}: {_who(readers[label])}" for label in rows)
        where = readers[next(iter(rows))].file_system
        return Finding(
            CauseCode.SAME_FILE_READ_DIFFERENTLY,
            f"one file, read differently by {' and '.join(rows)}: a host, not the file",
            [told, *([f"it lies on {where}"] if where else []), likeliest.summary, *likeliest.facts],
            candidate=not _stood_still(found.name, rows, scene),
        )
    return None


def _stood_still(name: str, labels: Mapping[str, object], scene: Scene) -> bool:
    """Whether all of these read it again, under the stat that it had, and got their own bytes once more."""
    drills = [drill for (file, _), drill in scene.drills.items() if file == name and drill.read_again]
    return all(any(drill.read_again.get(label) for drill in drills) for label in labels)


def _who(one: Fingerprint) -> str:
    return f"rank {one.rank} ({one.host})" if one.host else f"rank {one.rank}"
