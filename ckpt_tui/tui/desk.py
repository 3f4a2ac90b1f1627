"""What all views share: the state, the charset, the clock, and the rate's recent past. No textual."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..facts.agreement import Agreement
from ..facts.files import Role
from ..facts.status import Phase
from ..present import units
from ..present.sides import Sides
from ..report.saving import Format
from ..stream.state import StreamState
from .rows import report as reporting

if TYPE_CHECKING:
    from ..facts.clock import Clock
    from ..facts.status import RankStatus
    from ..stream.messages import FileRow
    from ..stream.state import Changes
    from .aside import Aside
    from .rows.charset import Charset

#: Seconds between two samples of the rate, and how many are kept.
_EVERY, _KEPT = 0.5, 120


@dataclass
class Draft:
    """What the next report is to be. Without a name it gets one that says what it is of."""

    format: Format = Format.MARKDOWN
    redact: bool = False
    name: str = ""


@dataclass
class Desk:
    """One screen's data. Views read it; only the app writes it."""

    charset: Charset
    clock: Clock
    path: str
    state: StreamState = field(default_factory=StreamState)
    #: Monotonic seconds at which the worker was last heard.
    heard_at: float = 0.0
    #: The watched rank's rate, twice a second, the newest last.
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    #: The highest rates of any shard and of any rank so far: the units of their columns never go back.
    peak_rate: float = 0.0
    peak_rank_rate: float = 0.0
    #: Wall time at which the screen was opened.
    opened: float = 0.0
    #: Monotonic seconds since when those that were compared are held ready; None while they are not.
    held_since: float | None = None
    draft: Draft = field(default_factory=Draft)
    #: The paths of reports that were written, as escaped text.
    written: list[str] = field(default_factory=list)
    #: The report on its way to its file, until it is said what became of it.
    writing: Aside[str] | None = None
    _sampled_at: float = float("-inf")

    @property
    def watched(self) -> RankStatus | None:
        """The status of the rank whose files are shown."""
        row = self.state.ranks.get(self.state.watched)
        return row.status if row else None

    @property
    def agreement(self) -> Agreement | None:
        """The verdict over all ranks, once it is there."""
        return self.state.result if isinstance(self.state.result, Agreement) else None

    @property
    def held(self) -> str:
        """Who is held ready and for how long, in words; '' where nobody is."""
        found = self.agreement
        if self.held_since is None or found is None:
            return ""
        who = Sides.of(found).count(len(found.ranks))
        waited = self.clock.monotonic() - self.held_since
        return f"{who} held ready{f', {units.age(waited)}' if waited >= 1 else ''}"

    @property
    def mean_rate(self) -> float:
        """The mean rate while anything was read: what the time saved is reckoned with."""
        moving = [rate for rate in self.rates if rate > 0]
        return sum(moving) / len(moving) if moving else 0.0

    @property
    def files(self) -> dict[int, FileRow]:
        """The files of the watched rank, by their places."""
        return self.state.files.get(self.state.watched, {})

    @property
    def report_name(self) -> str:
        """The file that the report goes to: as it was typed, or one that says what it is of."""
        result, draft = self.state.result, self.draft
        if draft.name or result is None:
            return draft.name
        return reporting.file_name(result, draft.format)

    def turn_format(self, by: int = 1) -> None:
        """The next format; a name that was typed gets its suffix."""
        draft = self.draft
        draft.format = reporting.next_format(draft.format, by)
        draft.name = reporting.with_format(draft.name, draft.format) if draft.name else ""

    def sample(self, changes: Changes) -> None:
        """Take in the rates that came, and the present one if it is time and anything is read."""
        now, status = self.clock.monotonic(), self.watched
        holding = self.state.holding
        ready = holding is not None and holding.ready and not self.state.over
        self.held_since = None if not ready else now if self.held_since is None else self.held_since
        # Sidecars are too small for a rate that means anything.
        came = [self.state.files.get(rank, {}).get(index) for rank, index in changes.files]
        shards = (row.rate for row in came if row is not None and row.role is Role.WEIGHTS)
        self.peak_rate = max(self.peak_rate, *shards, 0.0)
        ranks = (self.state.ranks[rank].status.rate for rank in changes.ranks if rank in self.state.ranks)
        self.peak_rank_rate = max(self.peak_rank_rate, *ranks, 0.0)
        if status is None or status.paused or now - self._sampled_at < _EVERY:
            return
        if status.phase in {Phase.IDENTITY, Phase.CONTENT} and status.bytes_done < status.bytes_total:
            self._sampled_at = now
            self.rates.append(status.rate)
