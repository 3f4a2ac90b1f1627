"""`assert_rank_equal`: go on only where all ranks hold the same bits; `where_they_differ`: look into one tensor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from ..facts.agreement import Verdict
from ..facts.drill import DRILL_BYTES
from ..facts.outcome import CkptError, RanksDiffer
from ..present.safe import error_text, escape
from ..report.saving import save
from .asked import asked_for, refused
from .control import Control
from .exchange import Exchange
from .holding import hold
from .sentences import cut, raised

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import torch.distributed as dist

    from ..facts.agreement import Agreement, DifferingSegment
    from .asked import ReportPath
    from .holding import Holding, NamedTensors


def assert_rank_equal(
    named_tensors: NamedTensors,
    *,
    group: dist.ProcessGroup,
    phase: str,
    digest: Literal["xxh3-128", "sha256"] = "xxh3-128",
    report: ReportPath | None = None,
    step: int | None = None,
    apart: Collection[str] = (),
    local: Collection[str] = (),
    sets: Sequence[Sequence[int]] | None = None,
    drill_bytes: int = 0,
) -> Agreement:
    """The agreement where all ranks hold the same names, kinds, dtypes, shapes and bits; else RanksDiffer on all.

    Collective over `group`, a Gloo group: every rank calls it with the same arguments but for `named_tensors`, which
    are a mapping, pairs of name and value, or `Named`. Values are tensors of any kind, None, and plain Python values.
    Only digests travel, unless `drill_bytes` allows as many bytes of the first differing tensors, to say where and how
    they differ.

    `phase` and `step` say when this is. Kinds in `apart` (`buffers`) are compared and told, and decide nothing; names
    that match a pattern in `local` are not compared, and counted. With `sets` global ranks are compared only inside
    each of these sets. `report` is written by the lowest rank where not all is the same: JSON, Markdown or HTML by
    its suffix; a file that is there is replaced.

    Raises ValueError for a group that is not Gloo, RanksDiffer with the same text on every rank where ranks differ or
    where it cannot be decided, and ControlLost where a rank is gone, does not come within the group's timeout, or is
    at another phase or step. Undecided is also a call with which a rank can do nothing, and one that compares nothing.
    """
    control = Control(group)
    asked = refused(control.ranks, phase, step)
    holding: Holding | Exception
    try:
        asked = asked_for(
            control.ranks,
            phase=phase,
            step=step,
            digest=digest,
            apart=apart,
            local=local,
            sets=sets,
            drill_bytes=drill_bytes,
            report=report,
        )
        holding = hold(named_tensors, asked.algorithm, local=asked.local)
    except Exception as error:  # noqa: BLE001 - arguments are anybody's, and the others wait for this rank's answer
        holding = error
    agreement = Exchange(control, asked, holding).compare()
    differ = RanksDiffer(agreement, raised(agreement)) if agreement.verdict is not Verdict.AGREE else None
    told = _reported(agreement, control, asked.report)
    if differ is None:
        return agreement
    if told:
        differ.add_note(told)
    if isinstance(holding, Exception):
        raise differ from holding
    raise differ


def _reported(agreement: Agreement, control: Control, report: ReportPath | None) -> str:
    """Write the report where not all is the same; what is to be said of it."""
    if report is None or control.rank or (agreement.verdict is Verdict.AGREE and not agreement.differences):
        return ""
    try:
        save(agreement, report, force=True)
    except (CkptError, OSError) as error:
        return f"the report could not be written: {error_text(error)}"
    return f"the report is in {escape(os.fspath(report))}"


def where_they_differ(
    name: str, value: Any, *, group: dist.ProcessGroup, drill_bytes: int = DRILL_BYTES
) -> DifferingSegment | None:
    """Where one tensor differs between ranks: None where it does not. Collective over `group`, a Gloo group.

    `held` of the answer says what each group of ranks holds; `drill` the first differing index with its values and
    bits, how many elements, bytes and bits differ, and how far apart they are. At most
    `drill_bytes` of it travel from each group. Raises as `assert_rank_equal` does where it cannot be told.
    """
    try:
        assert_rank_equal(
            {name: value}, group=group, phase=f"where {cut(escape(str(name)))} differs", drill_bytes=drill_bytes
        )
    except RanksDiffer as differ:
        if differ.agreement.verdict is not Verdict.DIFFER:
            raise
        return differ.agreement.differences[0].segments[0]
    return None
