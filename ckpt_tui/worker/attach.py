"""The job of watching a session that runs elsewhere, as no rank of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from ..facts.outcome import Interrupted, agreement_code
from ..facts.status import Phase
from ..present import units
from ..ranks.store import StoreLost
from ..ranks.viewer import Viewer
from ..stream import rows
from ..stream.codec import split_result
from ..stream.messages import Level, VerdictRow, Watching, Word
from . import verdicts
from .heard import Heard

if TYPE_CHECKING:
    from ..facts.clock import Clock
    from ..ranks.address import Address
    from ..ranks.viewer import Sight
    from ..stream.messages import FileRow, Survey
    from .post import Post

#: Seconds after which it is said that nobody beats any more. The ranks themselves know more, and sooner.
_SILENT = 60.0


class AttachJob:
    """A viewer of a session."""

    def __init__(self, address: Address, *, wait: float, session: int | None, clock: Clock) -> None:
        self._clock = clock
        self._wait = wait
        self._address = address
        self._leaving = threading.Event()
        self._notes: list[str] = []
        self._viewer = Viewer(address, clock=clock, watch=self._watch, note=self._notes.append, session=session)
        self._heard = Heard()
        self._sight: Sight | None = None
        self._watched: int | None = None
        self._rows: dict[int, FileRow] = {}
        self._told = False

    def work(self) -> None:
        """Find the session, look at it until its verdict is here, and let it go."""
        served = False
        try:
            self._viewer.open(self._wait)
            self._notes.append(f"watching the session on {self._address}; it does not wait for this screen")
            while not served:
                self._sight = self._viewer.look()
                served = self._sight.agreement is not None
                if not served:
                    self._leaving.wait(self._viewer.interval)
                self._watch()
        except StoreLost as lost:
            raise StoreLost(self._address, f"{lost.why}; the session may have ended") from None
        finally:
            self._viewer.close(served=served)

    def cancel(self) -> None:
        """Leave; nobody will miss this process."""
        self._leaving.set()

    def watch(self, rank: int) -> None:
        """Show this rank's files from now on."""
        self._viewer.wanted = rank

    def code(self) -> int | None:
        """The ranks' code, once their verdict is here."""
        sight = self._sight
        if sight is None or sight.agreement is None:
            return None
        return agreement_code(sight.agreement, strict=sight.strict)

    def publish(self, post: Post) -> None:
        """Every rank's summary, the watched one's files, and the verdict."""
        while self._notes:
            post.log(Level.INFO, self._notes.pop(0))
        sight = self._sight
        if sight is None:
            return
        now = self._clock.time()
        heard = []
        for status in sight.statuses.values():
            at = self._heard.at(status, now)
            if status.phase not in {Phase.ABSENT, Phase.LOST}:
                heard.append(at)
            post.outbox.put(rows.rank_row(status, at))
        self._files(post, sight)
        if sight.agreement is None:
            silence = now - max(heard, default=now)
            if silence >= _SILENT:
                said = f"no rank has been heard for {units.duration(silence)}"
                post.outbox.put(VerdictRow(word=Word.UNDECIDED, text=said))
            elif (trouble := verdicts.ranks_trouble(sight.statuses.values())) is not None:
                post.outbox.put(trouble)
        elif not self._told:
            self._told = True
            post.warnings(sight.agreement.warnings)
            for part in split_result(sight.agreement):
                post.outbox.put(part)
            post.outbox.put(verdicts.agreement_verdict(sight.agreement, now, strict=sight.strict))

    def _files(self, post: Post, sight: Sight) -> None:
        if sight.survey is None:
            return
        rank = sight.watched
        if rank != self._watched:
            self._watched, self._rows = rank, {}
            post.rank = rank
            post.outbox.forget("file")
            post.outbox.put(Watching(rank=rank))
        post.outbox.put(msgspec.structs.replace(sight.survey, join=self._join(sight.survey)))
        for index, shown in sight.rows.items():
            row = rows.as_reported(shown, sight.statuses[rank])
            if self._rows.get(index) != row:
                self._rows[index] = row
                post.outbox.put(row)

    def _join(self, survey: Survey) -> str:
        """What a missing rank must run, but for its number; empty where a launcher starts them."""
        if not self._viewer.by_hand:
            return ""
        path = survey.checkpoint.path
        return f"ckpt-tui ranks {path} --master {self._address} --world-size {survey.world_size} --rank"

    def _watch(self) -> None:
        if self._leaving.is_set():
            raise Interrupted("left before a verdict; the session goes on")
