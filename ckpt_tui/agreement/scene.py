"""What the rules for causes look at beside the one file: the sides, their standing, and what all differences share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..facts.agreement import CauseCode, Stage
    from .descent import Drills
    from .shared import Readers
    from .tables import Side


@dataclass(frozen=True, slots=True)
class Scene:
    """What all differences of one agreement have in common."""

    sides: tuple[Side, ...]
    stage: Stage
    #: Labels of groups that are wrong or a minority: those whose copy a repair would replace.
    blamed: frozenset[str]
    #: Logical contents are known and equal on all sides.
    same_tensors: bool
    #: How many tensors the sides hold in all, where all say the same number.
    tensors: int | None
    #: No tensor that was compared is equal.
    everything: bool
    #: Whether the sides' files carry the same names.
    same_files: bool
    #: `revision aaaaaaaaaaaa (rank 0) / bbbbbbbbbbbb (rank 1)`, where sides of one repository name several.
    revisions: str | None
    #: Each revision's copy keeps the hashes recorded for it.
    revisions_kept: bool
    #: Copies that more than one side has read.
    shared: tuple[Readers, ...] = ()
    #: What the bytes of segments told, as far as they were looked at.
    drills: Drills = field(default_factory=dict)
    #: By side, the names of its tensors by their digests: made once, for every file asks.
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: By side, the names of its weight files by their digests, in the table's order.
    files: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)


class Finding(NamedTuple):
    """A likely cause before it is put into words for everybody."""

    code: CauseCode
    summary: str
    facts: list[str]
    #: It rests on metadata alone, or on a part of the bytes.
    candidate: bool = False
    #: Sides whose bytes betray them whatever the others hold: zeros in the middle, an end that is lacking.
    culprits: frozenset[str] = frozenset()


def plural(number: int, noun: str) -> str:
    """`1 tensor`, `1,200 tensors`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
