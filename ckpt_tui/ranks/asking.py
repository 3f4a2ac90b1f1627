"""The asker's side of ranks that are held ready: questions go into the store, answers come out as rows of a stream.

All questions of a session are in one order that everybody sees: numbered keys, each decided once. That they are let go
is the last of them, so no rank answers what another no longer heard.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..stream.messages import DrillRow, DrillState
from .messages import BadMessage, Party, Question, Told, decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts.clock import Clock
    from ..stream.messages import Place
    from .store import Store

#: Seconds that each exchange for an answer may take, and that an asker waits: an answer takes three of them.
EXCHANGE, PATIENCE = 30.0, 100.0


class Questions:
    """The questions of one session, from the first on."""

    def __init__(self, store: Store, session: str) -> None:
        """`session` is what the session's keys begin with."""
        self.store = store
        self.base = f"{session}/hold"
        self._next = 1

    def join(self) -> None:
        """This rank is ready to answer."""
        self.store.add(f"{self.base}/ready", 1)

    def ready(self) -> bool:
        """Whether any rank is, or was."""
        return self.store.add(f"{self.base}/ready", 0) > 0

    def ask(self, question: Question) -> int:
        """Put it behind all others; its number."""
        raw = encode(question)
        number = self._next
        while self.store.decide(self._key(number), b"", raw) != raw:
            number += 1
        return number

    def next(self) -> tuple[int, Question | None] | None:
        """The next one with its number, None in its place if it can't be read; None while there is no other."""
        key = self._key(self._next)
        if not self.store.has(key):
            return None
        number, self._next = self._next, self._next + 1
        try:
            return number, decode(self.store.get([key])[0], Question)
        except BadMessage:
            return number, None

    def party(self, number: int) -> Party | None:
        """Who answers a question, as far as that is decided."""
        key = self.of(number, "party")
        if not self.store.has(key):
            return None
        try:
            return decode(self.store.get([key])[0], Party)
        except BadMessage:
            return None

    def answer(self, number: int) -> Told | None:
        """What was answered; None while there is no answer."""
        key = self.of(number, "answer")
        if not self.store.has(key):
            return None
        try:
            return decode(self.store.fetch([key])[0], Told)
        except BadMessage as error:
            return Told(error=f"the answer cannot be read: {error}")

    def of(self, number: int, what: str) -> str:
        """A key of one question."""
        return f"{self._key(number)}/{what}"

    def _key(self, number: int) -> str:
        return f"{self.base}/{number}"


@dataclass(slots=True)
class Asker:
    """Somebody who asks: a rank for its screen, or a process that is no rank.

    One thread calls it, and any may read `rows`.
    """

    questions: Questions
    clock: Clock
    rank: int | None = None
    #: The newest answer to each place; replaced, never changed.
    rows: Mapping[Place, DrillRow] = field(default_factory=dict)
    _waiting: dict[int, tuple[Place, float]] = field(default_factory=dict)

    def ask(self, place: Place) -> None:
        """Ask for a place, unless that is under way or known."""
        known = self.rows.get(place)
        if known is None or known.state is DrillState.FAILED:
            self._put(DrillRow(place=place, state=DrillState.PENDING))
            number = self.questions.ask(self._question(place=place))
            self._waiting[number] = place, self.clock.monotonic() + PATIENCE

    def release(self, reason: str) -> None:
        """Let all ranks go."""
        self.questions.ask(self._question(release=reason))

    def look(self, gone: Mapping[int, str]) -> None:
        """Take in the answers that are there; what will not be answered any more has failed."""
        for number, (place, until) in list(self._waiting.items()):
            told = self.questions.answer(number)
            if told is None:
                told = self._in_vain(number, until, gone)
            if told is not None:
                del self._waiting[number]
                self._put(row_of(place, told))

    def give_up(self, why: str) -> None:
        """Nothing will be answered any more."""
        for place, _ in self._waiting.values():
            self._put(row_of(place, Told(error=why)))
        self._waiting.clear()

    def _in_vain(self, number: int, until: float, gone: Mapping[int, str]) -> Told | None:
        party = self.questions.party(number) if gone else None
        if party is not None and party.lead in gone and self.questions.answer(number) is None:
            return Told(error=f"rank {party.lead}, which was to answer, is gone: ask again")
        return Told(error="no answer in time: ask again") if self.clock.monotonic() >= until else None

    def _question(self, *, place: Place | None = None, release: str | None = None) -> Question:
        return Question(token=secrets.token_hex(8), rank=self.rank, place=place, release=release)

    def _put(self, row: DrillRow) -> None:
        self.rows = {**self.rows, row.place: row}


def row_of(place: Place, told: Told) -> DrillRow:
    """An answer as a row of a stream."""
    if told.error:
        return DrillRow(place=place, state=DrillState.FAILED, error=told.error)
    return DrillRow(place=place, state=DrillState.DONE, segments=told.segments, more=told.more, drill=told.drill)
