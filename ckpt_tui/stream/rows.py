"""Counters to rows: what a file's or a rank's progress looks like on the wire. Pure."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import msgspec

from ..facts.files import Role, State
from ..facts.status import Cell
from .messages import FileRow, RankRow, Survey

if TYPE_CHECKING:
    from ..checkpoint import CheckpointFile
    from ..digest import FileProgress
    from ..digest import Survey as DigestSurvey
    from ..facts.settings import ScanSettings
    from ..facts.status import RankStatus

#: Seconds after which the rate of a file that is being read means something.
_TELLING = 0.4


def survey_row(
    survey: DigestSurvey,
    settings: ScanSettings,
    *,
    host: str,
    threads: int,
    rank: int = 0,
    world_size: int = 1,
    join: str = "",
) -> Survey:
    """What is going to be read."""
    checkpoint = survey.checkpoint
    return Survey(
        checkpoint=checkpoint.ref,
        host=host,
        roles="".join("w" if file.role is Role.WEIGHTS else "s" for file in checkpoint.files),
        bytes_total=sum(file.size for file in checkpoint.files),
        threads=threads,
        sha256=settings.sha256,
        rank=rank,
        world_size=world_size,
        identity=survey.identity,
        join=join,
        not_compared=len(checkpoint.not_compared),
    )


def own_file(rank: int, index: int, file: CheckpointFile, progress: FileProgress, now: float) -> FileRow:
    """A file of this process. Its state is the audit's until its bytes have said more."""
    result = progress.result
    end = progress.finished if progress.finished is not None else now
    taken = end - progress.started if progress.started is not None else 0.0
    # The first moments of a file say nothing: a burst of a rate limit, a block from the page cache.
    telling = taken > 0 and progress.cell is not Cell.CACHED and (result is not None or taken >= _TELLING)
    return FileRow(
        rank=rank,
        index=index,
        name=file.name,
        role=file.role,
        size=file.size,
        cell=progress.cell,
        state=result.state if result else file.state,
        done=progress.done,
        rate=progress.read / taken if telling else 0.0,
        note=_note(result.state if result else file.state, result.error if result else file.error),
        result=msgspec.structs.replace(result, segment_table=None) if result else None,
    )


def _note(state: State, error: str | None) -> str | None:
    """What takes a row over: anything but a good file."""
    return (error or state.value) if state is not State.GOOD else None


def other_file(status: RankStatus, index: int, file: CheckpointFile) -> FileRow:
    """A file of another rank, of which a character is known, and how far it is if it is being read.

    Name and size are this rank's: after equal identities they are the other's too.
    """
    cell = Cell(status.cells[index]) if index < len(status.cells) else Cell.WAITING
    active = next((one.done for one in status.active if one.index == index), 0)
    finished = cell in {Cell.CACHED, Cell.READ, Cell.SHARED}
    return FileRow(
        rank=status.rank,
        index=index,
        name=file.name,
        role=file.role,
        size=file.size,
        cell=cell,
        done=file.size if finished else active,
    )


def as_reported(row: FileRow, status: RankStatus) -> FileRow:
    """A file of another rank's, as that rank's newest status has it: that may be newer than the row."""
    if row.result is not None or row.index >= len(status.cells):
        return row
    try:
        cell = Cell(status.cells[row.index])
    except ValueError:  # no character of ours
        return row
    active = next((one.done for one in status.active if one.index == row.index), 0)
    finished = cell in {Cell.CACHED, Cell.READ, Cell.SHARED}
    return msgspec.structs.replace(row, cell=cell, done=row.size if finished else active)


def rank_row(status: RankStatus, heard: float) -> RankRow:
    """A rank's summary. A number of a peer's that is none becomes 0."""
    if not isfinite(status.rate):
        status = msgspec.structs.replace(status, rate=0.0)
    return RankRow(status=status, heard=heard)
