"""Whether the weights are equal, whatever else differs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.agreement import Stage
from ..facts.files import Role, Segmentation, State
from .groups import weights_proven_different
from .tables import GONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.agreement import Fingerprint
    from .groups import Members, Partition
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
    whole = [group for group in found.groups if group.whole]
    if _tensors_proven_different(whole) or (whole and any(_lost(one) for one in proven)):
        return False
    everybody = not absent and not found.loose and whole and len(whole) == len(found.groups)
    logical = {logical_content(group.first) for group in whole}
    same = len({id(group.weights) for group in whole}) == 1 or (len(logical) == 1 and None not in logical)
    return True if everybody and same else None


def _tensors_proven_different(groups: Iterable[Members]) -> bool:
    """Groups of one logical content hold the same tensors; one of them speaks for all."""
    distinct: dict[str | int, Members] = {}
    for place, group in enumerate(groups):
        distinct.setdefault(logical_content(group.first) or place, group)
    known = sum(isinstance(key, str) for key in distinct)
    return known > 1 or weights_proven_different(list(distinct.values()))


def _lost(one: FileDifference) -> bool:
    """Whether some side lacks tensors of a weight file that it should hold."""
    return one.role is Role.WEIGHTS and any(row is not None and row.state in _LOST for row in one.rows.values())
