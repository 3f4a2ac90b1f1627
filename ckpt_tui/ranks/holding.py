"""A rank that is held ready after the verdict: it answers what is asked below it, and changes the verdict no more.

Of each side one rank answers, whichever of its group is still there; who that is, is decided once a question. They
exchange what they need through the store, and the lowest rank that is held tells the answer.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..agreement.tables import make_key
from ..agreement.targets import completed, differing, lacking, members, target_at
from ..facts.outcome import CkptError
from ..facts.ranksets import named
from ..present.safe import error_text
from ..present.units import duration
from ..stream.messages import Holding
from . import drilling
from .asking import EXCHANGE, Asker, Questions
from .gather import GatherBroken, StoreGather
from .messages import BadMessage, Party, Step, Tables, Told, decode, decode_all, encode
from .store import StoreLost
from .telemetry import EVERYBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..agreement import Testimony
    from ..facts.agreement import Agreement
    from ..facts.base import Fact
    from ..facts.clock import Clock
    from ..facts.settings import RankSettings
    from ..stream.messages import DrillRow, Place
    from .environment import Place as RankPlace
    from .exchange import Ask
    from .messages import Question
    from .store import Store
    from .work import Work

T = TypeVar("T", bound="Fact")

#: Seconds for reading again what one question asks for, less than the others wait for it; and segments in one answer.
_READ, _SEGMENTS = 20.0, 200_000
#: Seconds between two looks at what was asked, and more for every rank of the session.
_LOOK, _LOOK_PER_RANK = 0.1, 1 / 2000


def why_not(agreement: Agreement, settings: RankSettings, place: RankPlace, holders: Collection[int]) -> str:
    """Why no rank stays after this verdict, or not this one; '' where it does."""
    if settings.hold <= 0:
        return "the ranks were started without --hold"
    if not agreement.differences:
        return "there is nothing to ask: no file differs"
    if agreement.world_size > EVERYBODY:
        return f"in a session of more than {EVERYBODY} ranks none stays: not all would notice when one leaves"
    if not place.agent_store and 0 not in holders:
        return "rank 0, which serves the store, does not stay (--hold)"
    return ""


def _stays() -> str | None:
    """What keeps a rank from staying: nothing."""
    return None


class LetGo(Exception):
    """This rank is not held any more, for the reason given."""


class Held:
    """One rank's part. `run` in the session's thread; `ask` and `release` from any, `rows` and `state` too."""

    def __init__(
        self,
        *,
        store: Store,
        session: str,
        rank: int,
        holders: Collection[int],
        agreement: Agreement,
        heard: Sequence[Testimony],
        work: Work,
        gone: Callable[[], Mapping[int, str]],
        leaving: Callable[[], str | None],
        limit: float,
        screens: Collection[int],
        serves: bool,
        clock: Clock,
        note: Callable[[str], None],
    ) -> None:
        """`holders` stay, this rank among them; `gone` tells which of them are lost or have left since.

        `leaving` tells why this rank has to leave, if it has. `screens` are those where somebody sits who may ask: when
        all of them are gone, the others need not stay. `serves`: the store goes with this rank.
        """
        self._questions = Questions(store, session)
        self._asker = Asker(self._questions, clock, rank)
        self._rank = rank
        self._holders = frozenset(holders)
        self._agreement = agreement
        self._heard = heard
        self._witness = work.stay(self._watch_reading)
        self._members = members(agreement, heard)
        self._gone = gone
        self._leaving = leaving
        self._limit = limit
        self._serves = serves
        self._clock = clock
        self._note = note
        self._look = _LOOK + agreement.world_size * _LOOK_PER_RANK
        self._wishes: SimpleQueue[Place | str] = SimpleQueue()
        #: Who may ask, or has asked; a process that is no rank is None.
        self._askers: set[int | None] = set(screens)
        #: The exchange for the last question, whose bytes still lie in the store.
        self._before: StoreGather | None = None
        self._mourned: frozenset[int] = frozenset()
        self._asked = clock.monotonic()
        self._read_until = float("inf")
        self.state = Holding(ready=True)

    @property
    def rows(self) -> Mapping[Place, DrillRow]:
        """What was asked here, and answered."""
        return self._asker.rows

    def ask(self, place: Place) -> None:
        """Ask for a place, from any thread."""
        self._wishes.put(place)

    def release(self, reason: str) -> None:
        """Let all go, from any thread."""
        self._wishes.put(reason)

    def watch(self) -> None:
        """Raise LetGo where this rank has to leave; called while anything is waited for."""
        why = self._leaving()
        if why is not None:
            raise LetGo(why)

    @property
    def company(self) -> int:
        """How many of those that were held are still there, this one among them."""
        return len(self._holders - (self._gone().keys() - {self._rank}))

    def run(self) -> bool:
        """Stay until all are let go; False where this rank had to leave before, or the store is lost."""
        limit = duration(self._limit)
        self._note(f"held ready to be asked, for {limit} after the last question at most; Ctrl+C lets this rank go")
        why, leave = "it broke off", True
        try:
            self._questions.join()
            while True:
                self._turn()
                self._clock.sleep(self._look)
        except LetGo as end:
            why, leave = str(end), self._leaving() is not None
            if leave and self._serves:
                leave = not self._release_all()
        except CkptError as error:
            why = str(error)
        finally:
            self._asker.give_up(f"not answered any more: {why}")
            self.state = Holding(ready=False, reason=why)
        self._note(f"not held any more: {why}")
        return not leave

    def _release_all(self) -> bool:
        """This rank has to leave and takes the store along; whether all others could be told."""
        self._leaving = _stays
        try:
            self._asker.release(f"rank {self._rank}, which serves the store, leaves")
        except CkptError:
            return False
        return True

    def _turn(self) -> None:
        """One look at everything."""
        self.watch()
        self._mourn()
        self._ask_what_is_wished()
        while (found := self._questions.next()) is not None:
            self._asked = self._clock.monotonic()
            number, question = found
            if question is not None:
                self._take(number, question)
        self._asker.look(self._gone())
        gone = self._gone()
        if self._askers and self._askers <= gone.keys():
            self._asker.release(f"who asked is gone: {named(sorted(gone.keys() & self._askers))}")
        elif self._clock.monotonic() - self._asked >= self._limit:
            self._asker.release(f"nothing was asked for {duration(self._limit)}")

    def _ask_what_is_wished(self) -> None:
        while True:
            try:
                wish = self._wishes.get_nowait()
            except Empty:
                return
            if isinstance(wish, str):
                self._asker.release(wish)
            else:
                self._asker.ask(wish)

    def _mourn(self) -> None:
        """The lowest rank that is left says who else is gone."""
        gone = {rank: why for rank, why in self._gone().items() if rank in self._holders}
        for rank in sorted(gone.keys() - self._mourned):
            if self._rank == self._lead(gone):
                self._note(f"rank {rank} is not held any more: {gone[rank]}")
        self._mourned |= gone.keys()

    def _lead(self, gone: Collection[int]) -> int:
        return min(rank for rank in self._holders if rank not in gone or rank == self._rank)

    # --- answers

    def _take(self, number: int, question: Question) -> None:
        if question.release is not None:
            raise LetGo(question.release)
        self._askers.add(question.rank)
        if question.place is None:
            return
        party = self._party(number)
        ranks = {party.lead, *party.speakers.values()}
        if self._rank not in ranks:
            return
        gather = StoreGather(
            self._questions.store,
            base=self._questions.of(number, "exchange"),
            rank=self._rank,
            ranks=ranks,
            seconds=EXCHANGE,
            clock=self._clock,
            watch=self.watch,
            gone=self._gone,
        )

        def ask(step: Step, kind: type[T], payload: bytes) -> dict[int, T]:
            self._read_until = self._clock.monotonic() + _READ
            return decode_all(gather.gather(step, payload), kind)

        self._read_until = self._clock.monotonic() + _READ
        try:
            told = self._told(question.place, party, ask)
        except StoreLost:
            raise
        except (CkptError, GatherBroken) as error:
            told = Told(error=error_text(error))
        if self._rank == party.lead:
            self._questions.store.post(self._questions.of(number, "answer"), encode(told))
        if gather.used:  # all who took part in the one before have come to this one
            if self._before is not None:
                self._before.clear()
            self._before = gather

    def _party(self, number: int) -> Party:
        """Of each side the first rank that is held and there; as whoever came first has decided it."""
        gone = self._gone()
        there = [rank for rank in sorted(self._holders) if rank not in gone or rank == self._rank]
        speakers = {
            label: next(rank for rank in there if rank in ranks)
            for label, ranks in self._members.items()
            if not set(ranks).isdisjoint(there)
        }
        mine = Party(speakers=speakers, lead=there[0])
        raw = self._questions.store.decide(self._questions.of(number, "party"), b"", encode(mine))
        try:
            return decode(raw, Party)
        except BadMessage as error:
            raise CkptError(f"who answers cannot be read: {error}") from error

    def _told(self, place: Place, party: Party, ask: Ask) -> Told:
        """The answer. Collective among the party, each of which comes to the same."""
        heard = self._heard
        if lacking(self._agreement, heard, place.file):
            tables = ask(Step.SEGMENTS, Tables, self._witness.tables([place.file]))
            told = {
                label: tables[rank].tables[0].segments
                for label, rank in party.speakers.items()
                if rank in tables and tables[rank].tables and tables[rank].tables[0].file == place.file
            }
            heard = completed(self._agreement, heard, place.file, told)
        if place.kind is None:
            found = differing(self._agreement, heard, place.file)
            return Told(segments=found[:_SEGMENTS], more=len(found[_SEGMENTS:]))
        key = make_key(place.kind, place.name, place.offset)
        target = target_at(self._agreement, heard, place.file, key, at=place.at, speakers=party.speakers)
        drill = drilling.look_into(target, self._witness, ask)
        missing = {side: "none of its ranks is held ready" for side in target.sides if side not in party.speakers}
        return Told(drill=msgspec.structs.replace(drill, errors={**drill.errors, **missing}))

    def _watch_reading(self) -> None:
        """Called while bytes are waited for: a disk that hangs is an answer too."""
        self.watch()
        if self._clock.monotonic() >= self._read_until:
            raise CkptError(f"its bytes did not come within {duration(_READ)}")
