"""A saved result as a stream that has ended: what its worker would have told last. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..facts.agreement import Agreement, Between
from ..facts.files import BROKEN_STATES, UNDECIDED_STATES, Role, Source, State
from ..facts.status import Cell, Phase, RankStatus
from ..report import verdicts
from ..stream.codec import split_result
from ..stream.messages import PROTOCOL, Bye, FileRow, Hello, Holding, Mode, RankRow, Survey, Watching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts.files import FileResult
    from ..facts.scan import ScanResult
    from ..stream.messages import Message
    from .keys import ViewName

_APART = {State.EXTRA, State.IGNORED}


def view_of(result: Agreement | ScanResult) -> ViewName:
    """Where the screen begins: at what somebody has to know."""
    if not isinstance(result, Agreement):
        return "files"
    return "mismatch" if result.differences else "ranks"


def messages(result: Agreement | ScanResult) -> Iterator[Message]:
    """The result as the last messages of the worker that came to it."""
    yield Hello(protocol=PROTOCOL, tool=result.tool, mode=_mode(result), pid=0)
    if isinstance(result, Agreement):
        yield from (RankRow(status=status, heard=0.0) for status in _statuses(result))
        yield from split_result(result)
        verdict = verdicts.agreement_verdict(result, result.created)
        yield Holding(ready=False, reason="this is a saved result")
    else:
        yield from _scan(result)
        yield from split_result(result)
        verdict = verdicts.scan_verdict(result, result.created)
    yield verdict
    yield Bye(code=verdict.code or 0)


def _mode(result: Agreement | ScanResult) -> Mode:
    if not isinstance(result, Agreement):
        return Mode.SCAN
    return Mode.COMPARE if result.between is Between.COPIES else Mode.RANKS


def _statuses(result: Agreement) -> Iterator[RankStatus]:
    # What lies in memory alone is no file, and no cache has it.
    in_memory = result.between is Between.REPLICAS
    for report in result.ranks:
        yield RankStatus(
            rank=report.rank,
            host=report.host,
            path=report.path,
            phase=Phase.FAILED if report.error is not None else Phase.DONE,
            files_total=0 if in_memory else report.files,
            files_done=0 if in_memory else report.files,
            files_cached=report.files_cached,
            error=report.error,
        )
    for rank in result.absent:
        yield RankStatus(rank=rank, host="", phase=Phase.LOST)


def _scan(result: ScanResult) -> Iterator[Message]:
    files = [file for file in result.files if file.state not in _APART]
    cells = [_cell(file) for file in files]
    yield Survey(
        checkpoint=result.checkpoint,
        host=result.host,
        roles="".join("w" if file.role is Role.WEIGHTS else "s" for file in files),
        bytes_total=sum(file.size for file in files),
        threads=result.totals.threads,
        sha256=any(file.sha256 is not None for file in files),
        identity=result.identity,
        not_compared=len(result.not_compared),
    )
    yield Watching(rank=0)
    for index, (file, cell) in enumerate(zip(files, cells, strict=True)):
        yield FileRow(
            rank=0,
            index=index,
            name=file.name,
            role=file.role,
            size=file.size,
            cell=cell,
            state=file.state,
            done=file.size,
            note=None if file.state is State.GOOD else file.error or file.state.value,
            result=msgspec.structs.replace(file, segment_table=None),
        )
    total = sum(file.size for file in files)
    status = RankStatus(
        rank=0,
        host=result.host,
        path=result.checkpoint.path,
        phase=Phase.DONE,
        bytes_done=total,
        bytes_total=total,
        bytes_cached=sum(file.size for file, cell in zip(files, cells, strict=True) if cell is Cell.CACHED),
        files_done=len(files),
        files_total=len(files),
        files_cached=result.totals.files_cached,
        cells="".join(cells),
    )
    yield RankRow(status=status, heard=result.created)


def _cell(file: FileResult) -> Cell:
    if file.state in BROKEN_STATES:
        return Cell.BAD
    if file.state in UNDECIDED_STATES:
        return Cell.UNREADABLE
    return Cell.CACHED if file.source is Source.CACHE else Cell.READ
