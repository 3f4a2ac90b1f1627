"""The reader's side: what is known of a worker, and how a batch of messages changes it. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from .codec import BadLineError, join_drill, join_report, join_result
from .messages import (
    Beat,
    Bye,
    CachePart,
    DrillRow,
    Envelope,
    FileRow,
    Hello,
    Holding,
    LogLine,
    Place,
    RankRow,
    ResultPart,
    Row,
    Snapshot,
    Survey,
    VerdictRow,
    Watching,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.agreement import Agreement
    from ..facts.cached import CacheReport
    from ..facts.scan import ScanResult

LOG_LINES = 2000


@dataclass(frozen=True, slots=True)
class Ended:
    """The stream is over. `code` is the process's exit code, negative for a signal, None where it has none.

    `said`: how it ended, where there is no process to tell of.
    """

    code: int | None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Restart:
    """Forget everything: the stream begins anew, somewhere else."""


#: What a source hands over: numbered messages, lines it could not read (None), log lines of its own, and the end.
Event = Envelope | LogLine | Ended | Restart | None


@dataclass(slots=True)
class Changes:
    """What a batch has touched, for those who draw only what changed."""

    files: set[tuple[int, int]] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    #: Survey, watched rank, verdict, result, or everything: draw it all again.
    all: bool = False
    logs: bool = False
    cache: bool = False
    beat: bool = False
    ended: bool = False
    #: Something was missed: ask for a snapshot. A whole one came: nothing is missing any more.
    resync: bool = False
    snapshot: bool = False

    def __bool__(self) -> bool:
        return bool(self.files or self.ranks or self.all or self.logs or self.cache or self.ended)


@dataclass(slots=True)
class StreamState:
    """All that a view may read."""

    hello: Hello | None = None
    survey: Survey | None = None
    watched: int = 0
    ranks: dict[int, RankRow] = field(default_factory=dict)
    #: By rank, then by the file's place: one rank's in all, but for moments.
    files: dict[int, dict[int, FileRow]] = field(default_factory=dict)
    verdict: VerdictRow | None = None
    logs: dict[int, LogLine] = field(default_factory=dict)
    result: ScanResult | Agreement | None = None
    #: What was asked below the result, by its place, and whether more may be asked.
    drills: dict[Place, DrillRow] = field(default_factory=dict)
    holding: Holding | None = None
    #: What the digest cache holds, once asked for; and the newest answer so far, which may not be whole yet.
    cached: CacheReport | None = None
    cache_parts: dict[int, CachePart] = field(default_factory=dict)
    bye: Bye | None = None
    ended: Ended | None = None
    seq: int = 0
    #: Lines and messages that this reader could not read.
    skipped: int = 0
    #: Parts of a result that is not whole yet.
    parts: dict[int, ResultPart] = field(default_factory=dict)
    #: Rows of a snapshot whose last slice has not come, and the slice that comes next.
    slices: list[Row] = field(default_factory=list)
    next_slice: int = 0

    @property
    def cache_answer(self) -> CachePart | None:
        """The first part of the newest answer about the cache: whether it is being made, or why it cannot be."""
        return self.cache_parts.get(0)

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self.bye is not None or self.ended is not None


def apply(state: StreamState, batch: Iterable[Event]) -> Changes:
    """Take in a batch; the same messages give the same state, however they were cut into batches."""
    changes = Changes()
    for event in batch:
        match event:
            case None:
                state.skipped += 1
                changes.resync = True
            case Ended():
                state.ended = event
                changes.ended = True
            case LogLine():
                _row(state, event, changes)
            case Restart():
                _restart(state)
                changes.all, changes.resync, changes.snapshot = True, False, True
            case Envelope():
                if event.seq != state.seq + 1:
                    changes.resync = True
                state.seq = event.seq
                _message(state, event, changes)
    return changes


def _restart(state: StreamState) -> None:
    blank = StreamState()
    for each in fields(state):
        setattr(state, each.name, getattr(blank, each.name))


def _message(state: StreamState, envelope: Envelope, changes: Changes) -> None:
    match envelope.message:
        case None:
            state.skipped += 1
        case Hello() as hello:
            state.hello = hello
            changes.all = True
        case Beat():
            changes.beat = True
        case Bye() as bye:
            state.bye = bye
            changes.all = True
        case Snapshot() as snapshot:
            _snapshot(state, snapshot, changes)
        case row:
            _row(state, row, changes)


def _snapshot(state: StreamState, snapshot: Snapshot, changes: Changes) -> None:
    if snapshot.part == 0:
        state.slices, state.next_slice = [], 0
    if snapshot.part != state.next_slice:
        changes.resync = True
        return
    state.slices.extend(snapshot.rows)
    state.next_slice += 1
    if state.next_slice < snapshot.parts:
        return
    rows, state.slices, state.next_slice = state.slices, [], 0
    # Log lines of the source's own have negative numbers and are not the worker's to forget.
    state.logs = {number: line for number, line in state.logs.items() if number < 0}
    state.survey = state.verdict = state.result = state.holding = None
    state.ranks, state.files, state.parts, state.drills, state.cache_parts = {}, {}, {}, {}, {}
    changes.all, changes.resync, changes.snapshot = True, False, True
    for row in rows:
        _row(state, row, changes)


def _row(state: StreamState, row: Row, changes: Changes) -> None:
    match row:
        case FileRow():
            state.files.setdefault(row.rank, {})[row.index] = row
            changes.files.add((row.rank, row.index))
        case RankRow():
            state.ranks[row.status.rank] = row
            changes.ranks.add(row.status.rank)
        case LogLine():
            state.logs[row.number] = row
            if len(state.logs) > LOG_LINES:
                del state.logs[next(iter(state.logs))]
            changes.logs = True
        case Survey():
            state.survey = row
            changes.all = True
        case VerdictRow():
            state.verdict = row
            changes.all = True
        case Watching():
            state.watched = row.rank
            state.files = {rank: files for rank, files in state.files.items() if rank == row.rank}
            changes.all = True
        case DrillRow():
            joined = join_drill(state.drills.get(row.place), row)
            if joined is not None:
                state.drills[row.place] = joined
                changes.all = True
        case Holding():
            state.holding = row
            changes.all = True
        case ResultPart():
            _result(state, row, changes)
        case CachePart():
            _cached(state, row, changes)


def _result(state: StreamState, row: ResultPart, changes: Changes) -> None:
    state.parts[row.part] = row
    if len(state.parts) < row.parts:
        return
    try:
        state.result = join_result(state.parts[part] for part in range(row.parts))
    except (BadLineError, KeyError):
        state.skipped += 1
    changes.all = True


def _cached(state: StreamState, row: CachePart, changes: Changes) -> None:
    """An answer takes effect when it is whole: until then the one before it stands."""
    newest = max((part.edition for part in state.cache_parts.values()), default=row.edition)
    if row.edition < newest:
        return
    if row.edition > newest:
        state.cache_parts = {}
    state.cache_parts[row.part] = row
    changes.cache = True
    if not row.parts or len(state.cache_parts) < row.parts:
        return
    whole = sorted(state.cache_parts.values(), key=lambda part: part.part)
    if (joined := join_report(whole)) is None:
        state.skipped += 1
    else:
        state.cached = joined
