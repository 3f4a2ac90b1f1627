"""Whether the weights are equal, whatever else differs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.agreement import Stage
from ..facts.files import Role, Segmentation, State
from .groups import any_differ
from .tables import GONE, READ

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..facts.agreement import Fingerprint
    from .groups import Partition, WeightClass
    from .tables import FileDifference

#: Tensors that the index names are not there to be loaded.
_LOST = GONE | {State.TRUNCATED, State.BAD_HEADER, State.NOT_WEIGHTS}


def logical_content(one: Fingerprint) -> str | None:
    """The digest over the tensors wherever they lie; None where not every file is one whose tensors are known."""
    return one.logical_content if one.segmentation == Segmentation.SAFETENSORS else None


def weights_equal(found: Partition, stage: Stage, proven: Iterable[FileDifference], *, absent: bool) -> bool | None:
    """True where every rank's weights are known and hold the same tensors, however they are split into files.

    False where two ranks' tensors are proven different; None where neither is known.
    """
    if stage is Stage.IDENTITY:
        return None
    everyone = [*(group.first for group in found.groups), *found.comparable]
    known = [one for one in everyone if one.rank in found.weights]
    if _tensors_proven_different(known, found.weights) or any(_lost(one) for one in proven):
        return False
    everybody = not absent and known and len(known) == len(everyone) and len(found.comparable) == len(found.loose)
    logical = {logical_content(one) for one in known}
    same = len({found.weights[one.rank] for one in known}) == 1 or (len(logical) == 1 and None not in logical)
    return True if everybody and same else None


def _tensors_proven_different(known: Iterable[Fingerprint], weights: Mapping[int, WeightClass]) -> bool:
    """Copies of one logical content hold the same tensors; one of them speaks for all."""
    distinct: dict[str | int, WeightClass] = {}
    for one in known:
        distinct.setdefault(logical_content(one) or one.rank, weights[one.rank])
    return sum(isinstance(key, str) for key in distinct) > 1 or any_differ(distinct.values())


def _lost(one: FileDifference) -> bool:
    """Whether some side lacks tensors of a weight file that another has whole."""
    states = {row.state for row in one.rows.values() if row is not None}
    return one.role is Role.WEIGHTS and not states.isdisjoint(_LOST) and not states.isdisjoint(READ)
