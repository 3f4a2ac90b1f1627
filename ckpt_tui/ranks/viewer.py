"""A process that watches a session and is no rank of it: a client of its store, which may come and go at any time.

It takes part in nothing: it never waits for a key, and writes none that a rank waits for. What it asks for is told in
`display.py`. Every value may be a stranger's: it is checked as a peer's is, and what cannot be read is silence.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from ..facts.agreement import Agreement
from ..facts.outcome import CkptError, Exit, UsageError
from ..facts.status import Phase, RankStatus
from .asking import Questions
from .directory import MAX_WORLD, NoSession, choose, entries, opening_of, pulses_of
from .display import PAGE, agreement_key, page_key, served_key, shelf_key, viewers_key, watch_key
from .messages import BadMessage, Break, Page, Shelf, decode
from .native import load_torch
from .roster import read_roster
from .store import connect, reach
from .telemetry import COMMITTED, OPEN, obituary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..facts.clock import Clock
    from ..stream.messages import FileRow, Survey
    from .address import Address
    from .directory import Entry
    from .messages import Hello, Opening, Pulse
    from .store import Store

#: Seconds without an answer after which the store counts as lost, between two tries to find a session, and between two
#: counts of what is watched.
_PATIENCE, _TRY, _COUNT = 60.0, 0.1, 1.0
#: Seconds after which a session that all ranks have left without a verdict is over.
_OVER = 2.0
#: No more files than this are taken from a rank.
_MAX_FILES = 1_000_000


class SessionOver(CkptError):
    """The ranks have left, and what they came to was not kept for viewers."""

    code = Exit.INCOMPLETE


@dataclass(frozen=True)
class Sight:
    """What one look has found."""

    world_size: int
    statuses: Mapping[int, RankStatus] = field(default_factory=dict)
    agreement: Agreement | None = None
    #: Whether the ranks were started with `--strict`: their codes follow from it.
    strict: bool = False
    #: Whether any was started with `--hold`, and so may be asked below the verdict.
    holds: bool = False
    #: The ranks that have left, each with its reason.
    left: Mapping[int, str] = field(default_factory=dict)
    #: The watched rank, its survey and its file rows, once it has shown them.
    watched: int = 0
    survey: Survey | None = None
    rows: Mapping[int, FileRow] = field(default_factory=dict)


class Viewer:
    """One viewer. `open` it once, then `look` as often as it pleases, in one thread; `wanted` may be set by any."""

    def __init__(
        self,
        address: Address,
        *,
        clock: Clock,
        watch: Callable[[], None],
        note: Callable[[str], None],
        session: int | None = None,
    ) -> None:
        """`watch` raises what ends a wait; `note` gets lines for people; `session` is a number of the directory's."""
        self._address = address
        self._clock = clock
        self._watch = watch
        self._note = note
        self._session = session
        #: The rank whose files are wanted; None: the lowest that is here.
        self.wanted: int | None = None
        self._opened: tuple[Store, Entry] | None = None
        self._hellos: dict[int, Hello] = {}
        self._roster = b""
        self._watched: int | None = None
        self._counted_at = float("-inf")
        self._shelf: Shelf | None = None
        self._rows: dict[int, FileRow] = {}
        self._left_at: float | None = None
        self._agreement: Agreement | None = None
        self._nonce = ""
        self._served = False

    @property
    def interval(self) -> float:
        """Seconds between two looks: a large session beats more slowly, and has more to be read."""
        return 0.25 + (self._opened[1].world_size if self._opened else 0) / 2000

    @property
    def by_hand(self) -> bool:
        """Whether the ranks are started one by one, each with its number, and not by a launcher."""
        numbered = not any(hello.handed_out for hello in self._hellos.values())
        return numbered and self._opened is not None and self._opened[1].scope == "ckpt-tui"

    def open(self, wait: float) -> None:
        """Find the store and a session in it, within `wait` seconds.

        NobodyThere and NoSession where there is none; UsageError where it is of another version.
        """
        end = self._clock.monotonic() + wait
        reach(self._address, wait, self._watch, lambda _why: None)
        torch = load_torch()
        store = connect(torch, self._address, seconds=max(wait, 1.0), patience=_PATIENCE, watch=self._watch)
        found = entries(store)
        while not found:
            if self._clock.monotonic() >= end:
                raise NoSession(f"a store answers at {self._address}, but no session of ckpt-tui has begun there")
            self._watch()
            self._clock.sleep(_TRY)
            found = entries(store)
        entry, said = choose(store, found, self._session)
        if said:
            self._note(said)
        self._opened = store, entry
        store.add(viewers_key(entry.call), 1)

    def look(self) -> Sight:
        """How the session stands. UsageError where it can never be one, SessionOver where it has ended unseen."""
        if self._opened is None:
            raise RuntimeError("look before open")
        store, entry = self._opened
        opening = self._meeting(store, entry)
        if opening is not None and opening.usage is not None:
            raise UsageError(f"the ranks on {self._address} cannot make a session: {opening.usage}")
        pulses = pulses_of(store, entry.scope, list(self._hellos.values()))
        broken = _broken(store, entry.scope, opening)
        if self._agreement is None:
            self._agreement = _agreement(store, entry.call)
            self._nonce = opening.nonce if opening is not None else ""
        if self._agreement is None:
            self._check_that_it_goes_on(pulses)
        else:
            # The ranks put their last rows there before this: once more, so that none is missed.
            pulses = pulses_of(store, entry.scope, list(self._hellos.values()))
        sight = Sight(
            world_size=entry.world_size,
            statuses=statuses(entry.world_size, self._hellos, pulses, opening, broken),
            agreement=self._agreement,
            strict=any("--strict" in hello.course for hello in self._hellos.values()),
            holds=any(hello.holds for hello in self._hellos.values()),
            left={rank: pulse.left for rank, pulse in pulses.items() if pulse.left is not None},
        )
        return self._files(store, entry.scope, sight)

    def took_verdict(self) -> None:
        """The verdict was read: no rank need wait for this viewer."""
        if self._opened is not None:
            self._opened[0].add(served_key(self._opened[1].call), 1)
            self._served = True

    def questions(self) -> Questions:
        """Where ranks that are held ready are asked, once there is a verdict."""
        if self._opened is None:
            raise RuntimeError("ask before open")
        store, entry = self._opened
        return Questions(store, f"{entry.scope}/session/{self._nonce}")

    def close(self) -> None:
        """Leave. Once is enough."""
        if self._opened is None:
            return
        (store, entry), self._opened = self._opened, None
        with suppress(CkptError):
            if not self._served:
                store.add(viewers_key(entry.call), -1)
        store.close()

    def _meeting(self, store: Store, entry: Entry) -> Opening | None:
        """Who has come, and how the meeting ended, if it has."""
        keys = [f"{entry.call}/roster", f"{entry.call}/outcome"]
        if not store.has_all(keys):
            return None
        roster, outcome = store.get(keys)
        if roster != self._roster:
            self._roster = roster
            hellos, _ = read_roster(roster)
            for hello in hellos[:MAX_WORLD]:
                if 0 <= hello.rank < entry.world_size:
                    self._hellos.setdefault(hello.rank, hello)
        return opening_of(outcome)

    def _check_that_it_goes_on(self, pulses: Mapping[int, Pulse]) -> None:
        """A rank says when it leaves. When all have, and there is no verdict, none will come."""
        now = self._clock.monotonic()
        if not pulses or any(pulse.left is None for pulse in pulses.values()):
            self._left_at = None
        elif self._left_at is None:
            self._left_at = now
        elif now - self._left_at >= _OVER:
            whys = sorted({f"rank {rank}: {pulse.left}" for rank, pulse in pulses.items() if _is_trouble(pulse)})
            why = f": {'; '.join(whys[:3])}" if whys else ", and its verdict was not kept, since nobody was watching"
            raise SessionOver(f"the session on {self._address} has ended{why}")

    def _files(self, store: Store, scope: str, sight: Sight) -> Sight:
        """The watched rank's survey and rows; ask for more of them."""
        if not self._hellos:
            return sight
        rank = self.wanted if self.wanted in self._hellos else self._watched
        if rank is None:
            rank = min(self._hellos)
        if rank != self._watched:
            self._watched, self._shelf, self._rows = rank, None, {}
            self._counted_at = float("-inf")
        token = self._hellos[rank].token
        now = self._clock.monotonic()
        if now - self._counted_at >= _COUNT:
            self._counted_at = now
            store.add(watch_key(scope, token), 1)
        self._take_pages(store, scope, rank)
        survey = None
        if self._shelf is not None:
            survey = msgspec.structs.replace(self._shelf.survey, rank=rank, world_size=sight.world_size, join="")
        return replace(sight, watched=rank, survey=survey, rows=dict(self._rows))

    def _take_pages(self, store: Store, scope: str, rank: int) -> None:
        """Those pages of the rank's rows that are newer than what is here."""
        token = self._hellos[rank].token
        if not store.has(shelf_key(scope, token)):
            return
        try:
            shelf = decode(store.get([shelf_key(scope, token)])[0], Shelf)
        except BadMessage:
            return
        count = len(shelf.survey.roles)
        if count > _MAX_FILES or len(shelf.editions) != -(-count // PAGE):
            return
        before = self._shelf.editions if self._shelf is not None else ()
        for page, edition in enumerate(shelf.editions):
            key = page_key(scope, token, page)
            if edition == (before[page] if page < len(before) else 0) or not store.has(key):
                continue
            try:
                rows = decode(store.get([key])[0], Page).rows
            except BadMessage:
                continue
            here = range(page * PAGE, min((page + 1) * PAGE, count))
            self._rows |= {row.index: row for row in rows if row.rank == rank and row.index in here}
        self._shelf = shelf


def statuses(
    world_size: int,
    hellos: Mapping[int, Hello],
    pulses: Mapping[int, Pulse],
    opening: Opening | None,
    broken: Break | None,
) -> dict[int, RankStatus]:
    """The newest known status of every rank, those that have not come included. Pure."""
    lost = dict(broken.absent) if broken is not None else {}
    known = {}
    for rank in range(world_size):
        hello, pulse = hellos.get(rank), pulses.get(rank)
        if opening is not None and rank in opening.absent:
            status = RankStatus(
                rank=rank, host=hello.host if hello else "", phase=Phase.ABSENT, error=opening.absent[rank]
            )
        elif hello is None:
            status = RankStatus(rank=rank, host="", phase=Phase.ABSENT, doing="has not come")
        elif pulse is None:
            status = RankStatus(rank=rank, host=hello.host, phase=Phase.STARTING)
        else:
            status = pulse.status
            why = lost.get(rank)
            if why is None and _is_trouble(pulse):
                why = obituary(status.host, status, pulse.left or "")
            if why is not None:
                status = msgspec.structs.replace(status, phase=Phase.LOST, error=why)
        known[rank] = status
    return known


def _is_trouble(pulse: Pulse) -> bool:
    """Whether a rank has left before the verdict stood."""
    return pulse.left is not None and pulse.status.phase is not Phase.DONE


def _broken(store: Store, scope: str, opening: Opening | None) -> Break | None:
    """The ranks that were declared lost, if any were."""
    if opening is None or not opening.nonce:
        return None
    key = f"{scope}/session/{opening.nonce}/break"
    if not store.has(key):
        return None
    raw = store.get([key])[0]
    with suppress(BadMessage):
        return None if raw in {OPEN, COMMITTED} else decode(raw, Break)
    return None


def _agreement(store: Store, call: str) -> Agreement | None:
    """The verdict, once it is there."""
    key = agreement_key(call)
    if not store.has(key):
        return None
    with suppress(BadMessage):
        return decode(store.fetch([key])[0], Agreement)
    return None
