"""The job of watching a session that runs elsewhere, as no rank of it."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import msgspec

from ..facts.outcome import CkptError, Interrupted, agreement_code
from ..facts.status import Phase
from ..present import units
from ..ranks.asking import Asker
from ..ranks.store import StoreLost
from ..ranks.viewer import Viewer
from ..stream import rows
from ..stream.messages import DrillRow, DrillState, Holding, Level, Watching
from .answers import Answers
from .heard import Heard
from .outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts.clock import Clock
    from ..ranks.address import Address
    from ..ranks.viewer import Sight
    from ..stream.messages import FileRow, Place, Survey
    from .post import Post

#: Seconds after which it is said that nobody beats any more. The ranks themselves know more, and sooner.
_SILENT = 60.0
#: Seconds in which ranks that stay after the verdict are ready to be asked, and between two looks whether they are.
_READY, _LOOK = 15.0, 0.1


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
        #: When any rank was last heard, and whether it was said that this is long ago.
        self._heard_at, self._silent = 0.0, False
        self._sight: Sight | None = None
        self._published: Sight | None = None
        self._watched: int | None = None
        self._rows: dict[int, FileRow] = {}
        self._wishes: SimpleQueue[Place | str] = SimpleQueue()
        self._holding: Holding | None = None
        self._outcome = Outcome()
        self._answers = Answers()
        self._answered: Mapping[Place, DrillRow] = {}
        self._refused: dict[Place, DrillRow] = {}

    def work(self) -> None:
        """Find the session, look at it until its verdict is here, and let it go."""
        try:
            self._viewer.open(self._wait)
            self._notes.append(f"watching the session on {self._address}; it does not wait for this screen")
            while True:
                self._sight = sight = self._viewer.look()
                if sight.agreement is not None:
                    break
                self._leaving.wait(self._viewer.interval)
                self._watch()
            self._viewer.took_verdict()
            if sight.holds and sight.agreement.differences:
                self._ask(Asker(self._viewer.questions(), self._clock))
        except StoreLost as lost:
            if self._sight is None or self._sight.agreement is None:
                raise StoreLost(self._address, f"{lost.why}; the session may have ended") from None
        finally:
            self._viewer.close()

    def _ask(self, asker: Asker) -> None:
        """Ask the ranks that are held ready, until they are let go. It is for others to let them go."""
        why = "the ranks did not stay"
        until = self._clock.monotonic() + _READY
        try:
            while not asker.questions.ready():
                self._watch()
                if self._clock.monotonic() >= until:
                    return
                self._leaving.wait(_LOOK)
            self._holding = Holding(ready=True)
            while (ended := self._turn(asker)) is None:
                self._leaving.wait(self._viewer.interval)
            why = ended
        except StoreLost:
            why = f"the store on {self._address} answers no more, as when a session has ended"
            raise
        except CkptError as error:
            why = str(error)
            raise
        finally:
            asker.give_up(f"not answered any more: {why}")
            self._answered = asker.rows
            self._holding = Holding(ready=False, reason=why)

    def _turn(self, asker: Asker) -> str | None:
        """One look at everything; why nobody is held any more, once that is so."""
        self._watch()
        while not self._wishes.empty():
            wish = self._wishes.get()
            if isinstance(wish, str):
                asker.release(wish)
            else:
                asker.ask(wish)
        while (found := asker.questions.next()) is not None:
            if found[1] is not None and found[1].release is not None:
                return found[1].release
        self._sight = sight = self._viewer.look()
        asker.look(sight.left)
        self._answered = asker.rows
        here = {rank for rank, status in sight.statuses.items() if status.phase is not Phase.ABSENT}
        return "all ranks have left" if here <= sight.left.keys() else None

    def descend(self, place: Place) -> None:
        """Ask the ranks that are held ready."""
        if self._holding is not None and self._holding.ready:
            self._wishes.put(place)
        else:
            why = (
                self._holding.reason if self._holding else "there is no verdict yet, or no rank was started with --hold"
            )
            failed = DrillRow(place=place, state=DrillState.FAILED, error=f"nobody can be asked: {why}")
            self._refused = {**self._refused, place: failed}

    def release(self) -> None:
        """Let all ranks go that are held ready: a wish like another, which no viewer utters by leaving."""
        self._wishes.put("a viewer has let them go")

    def held(self) -> bool:
        """Whether anybody waits for this process to let him go: never."""
        return False

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
        if sight is not self._published:
            self._published = sight
            self._ranks(post, sight, now)
            self._files(post, sight)
        self._outcome.publish(post, sight.agreement, sight.statuses.values(), now, strict=sight.strict)
        if sight.agreement is None:
            self._silence(post, now)
        else:
            post.outbox.put(self._holding or Holding(ready=False, reason=_not_held(sight)))
        self._answers.publish(post, {**self._refused, **self._answered})

    def _ranks(self, post: Post, sight: Sight, now: float) -> None:
        for status in sight.statuses.values():
            at = self._heard.at(status, now)
            self._heard_at = max(self._heard_at, at)
            post.outbox.put(rows.rank_row(status, at))

    def _silence(self, post: Post, now: float) -> None:
        """Say it once when nobody beats any more: a store may outlive all ranks."""
        silent = self._heard_at > 0 and now - self._heard_at >= _SILENT
        if silent and not self._silent:
            post.log(Level.WARNING, f"no rank has been heard for {units.duration(now - self._heard_at)}")
        self._silent = silent

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
        hold = " --hold" if self._sight is not None and self._sight.holds else ""
        master = f"--master {self._address} --world-size {survey.world_size}"
        return f"ckpt-tui ranks {survey.checkpoint.path}{hold} {master} --rank"

    def _watch(self) -> None:
        if self._leaving.is_set():
            before = self._sight is None or self._sight.agreement is None
            what = "left before a verdict" if before else "this viewer has left"
            raise Interrupted(f"{what}; the session goes on")


def _not_held(sight: Sight) -> str:
    """Why nobody can be asked, as long as nobody has been."""
    if not sight.holds:
        return "the ranks were started without --hold"
    if sight.agreement is not None and not sight.agreement.differences:
        return "there is nothing to ask: no file differs"
    return "the ranks are not ready yet"
