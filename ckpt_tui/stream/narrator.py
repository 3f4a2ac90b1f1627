"""A stream in words, line by line: for screen readers and for logs. Pure: what has changed since it last told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.ranksets import named
from ..facts.status import Cell, Phase
from ..present import units, words
from ..present.glyphs import CELLS, PHASES
from .messages import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts.status import RankStatus
    from .messages import FileRow
    from .state import StreamState

#: Lines of one kind told one by one in one telling; more are told as a number.
_SINGLE = 3
#: Seconds between two lines that only say how far it is, and of silence that is worth one.
_PROGRESS, _SILENCE = 10.0, 10.0
_FINISHED = (Cell.READ, Cell.CACHED, Cell.SHARED)
_LOUD = {Level.WARNING: "warning: ", Level.ERROR: "error: ", Level.INFO: ""}


class Narrator:
    """Tells what is new in a state. Call `tell` as often as lines may come: it says a few at a time."""

    def __init__(self) -> None:
        self._surveyed: str | None = None
        self._phases: dict[int, tuple[Phase, str]] = {}
        self._watched: int | None = None
        self._done: dict[int, Cell] = {}
        self._trouble: str | None = None
        self._logged = 0
        self._progress_at: float | None = None
        self._silent = False

    def tell(self, state: StreamState, now: float, silent: float = 0.0) -> list[str]:
        """The lines since the last call. `now` is in monotonic seconds, as `silent`, the time without a word."""
        return [
            *self._survey(state),
            *self._ranks(state),
            *self._files(state),
            *self._log(state),
            *self._so_far(state),
            *self._progress(state, now),
            *self._silence(state, silent),
        ]

    def _survey(self, state: StreamState) -> Iterator[str]:
        survey = state.survey
        if survey is None or survey.checkpoint.path == self._surveyed:
            return
        self._surveyed = survey.checkpoint.path
        shards = units.count(survey.roles.count("w"), "shard")
        what = survey.checkpoint.repo_id or survey.checkpoint.path
        who = f"rank {survey.rank} of {survey.world_size}, " if survey.world_size > 1 else ""
        yield f"{what}: {shards}, {units.size(survey.bytes_total)}, on {who}{survey.host}"

    def _ranks(self, state: StreamState) -> Iterator[str]:
        """Ranks that went on to the same together; alone there is nobody to tell apart."""
        if len(state.ranks) < 2:
            return
        moved: dict[tuple[Phase, str], list[int]] = {}
        for rank, row in state.ranks.items():
            stands = (row.status.phase, row.status.error or "")
            if self._phases.get(rank) != stands:
                self._phases[rank] = stands
                moved.setdefault(stands, []).append(rank)
        for number, ((phase, error), ranks) in enumerate(moved.items()):
            if number >= _SINGLE and not error:
                continue  # it is on its way to another phase, and will be told there
            yield f"{named(ranks)}: {_phase(phase)}{f': {error}' if error else ''}"

    def _files(self, state: StreamState) -> Iterator[str]:
        if state.watched != self._watched:
            self._watched, self._done = state.watched, {}
        fresh: list[FileRow] = []
        for index, row in state.files.get(state.watched, {}).items():
            if self._done.get(index) != row.cell and row.cell not in {Cell.WAITING, Cell.READING}:
                self._done[index] = row.cell
                fresh.append(row)
        bad = [row for row in fresh if row.cell not in _FINISHED]
        good = [row for row in fresh if row.cell in _FINISHED]
        of = f" of rank {state.watched}" if len(state.ranks) > 1 else ""
        for row in bad[: 2 * _SINGLE]:
            yield f"{row.name}{of}: {words.state_words(row, row.note)}"
        if len(bad) > 2 * _SINGLE:
            yield f"and {len(bad) - 2 * _SINGLE:,} more bad files{of}"
        if len(good) <= _SINGLE:
            yield from (f"{row.name}{of}: {CELLS[row.cell].word}, {units.size(row.size)}" for row in good)
        else:
            counts = [(sum(row.cell is cell for row in good), CELLS[cell].word) for cell in _FINISHED]
            parts = [f"{number:,} {word}" for number, word in counts if number]
            alike = f" {CELLS[good[0].cell].word}"
            yield f"{len(good):,} files{of}{alike if len(parts) == 1 else ': ' + ', '.join(parts)}"

    def _log(self, state: StreamState) -> Iterator[str]:
        """The worker's own lines; what libraries wrote is for the log alone."""
        lines = [line for number, line in state.logs.items() if number > self._logged and line.level in _LOUD]
        if lines:
            self._logged = max(line.number for line in lines)
        # Why it ended is said by whoever tells the end.
        lines = [line for line in lines if state.bye is None or line.text != state.bye.reason]
        yield from (f"{_LOUD[line.level]}{line.text}" for line in lines[: 2 * _SINGLE])
        if len(lines) > 2 * _SINGLE:
            yield f"and {len(lines) - 2 * _SINGLE:,} more lines"

    def _so_far(self, state: StreamState) -> Iterator[str]:
        verdict = state.verdict
        if verdict is None or verdict.code is not None or verdict.text == self._trouble:
            return
        self._trouble = verdict.text
        yield f"so far {verdict.word}: {verdict.text}"

    def _progress(self, state: StreamState, now: float) -> Iterator[str]:
        reading = [row.status for row in state.ranks.values() if row.status.phase is Phase.CONTENT]
        if not reading:
            self._progress_at = None
            return
        if self._progress_at is None:
            self._progress_at = now
        if now - self._progress_at >= _PROGRESS:
            self._progress_at = now
            yield progress_words(reading)

    def _silence(self, state: StreamState, silent: float) -> Iterator[str]:
        if silent < _SILENCE or state.over:
            self._silent = False
        elif not self._silent:
            self._silent = True
            yield f"no word from the worker for {units.duration(silent)}; it may be busy or stopped"


def progress_words(reading: list[RankStatus]) -> str:
    """How far those are that read: `62 % of 190.4 GiB, 0.66 GiB/s, 1 m 49 s left`."""
    done = sum(status.bytes_done for status in reading)
    total = sum(status.bytes_total for status in reading)
    rate = sum(status.rate for status in reading)
    parts = [f"{units.percent(done, total)} of {units.size(total)}"]
    if rate > 0:
        # An answer is there when the slowest has one.
        lefts = [(one.bytes_total - one.bytes_done) / one.rate for one in reading if one.rate > 0]
        parts += [units.rate(rate), f"{units.duration(max(lefts))} left"]
    return ", ".join(parts)


def _phase(phase: Phase) -> str:
    return {Phase.MEETING: "here", Phase.IDENTITY: "reading headers", Phase.CONTENT: "reading"}.get(
        phase, PHASES[phase].word
    )
