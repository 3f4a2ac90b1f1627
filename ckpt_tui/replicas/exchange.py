"""The comparison of what ranks hold, over a control group: a vote, and tables only where it does not settle the matter.

Every rank takes part in every step, whatever befell it on the way: what went wrong on one is what it says, and is the
same text on all.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import xxhash

from ..digest.host import host_name
from ..facts.outcome import CkptError
from ..present.safe import error_text, escape, unexpected
from .control import MAX_BYTES
from .digests import state_digest
from .hearing import Hearing
from .judging import Case
from .looking import look
from .messages import BadMessage, Outline, Row, Told, Vote, decode, encode, settled, shown_name
from .sentences import moment
from .values import Unreadable, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..facts.agreement import Agreement
    from .asked import Asked
    from .control import Control
    from .holding import Held, Holding

T = TypeVar("T")


class Exchange:
    """One comparison. `holding` is what this rank holds, or what kept it from knowing."""

    def __init__(self, control: Control, asked: Asked, holding: Holding | Exception) -> None:
        self._drill_bytes = asked.drill_bytes
        self._control = control
        self._question = asked.question
        self._holding = None if isinstance(holding, Exception) else holding
        self._error = _why(holding) if isinstance(holding, Exception) else None
        self._call = dict(asked.call)
        self._what = f"compare {moment(asked.question.phase, asked.question.step) or 'replicas'}"
        self._sent: Counter[int] = Counter()

    def compare(self) -> Agreement:
        """Collective. The agreement is the same on every rank; where all agree at once, but for its time and hosts."""
        mine = self._outline()
        votes = [_read(Vote.unpack, raw) for raw in self._gather(self._vote(mine).pack(), self._what)]
        good = [vote for vote in votes if isinstance(vote, Vote)]
        alike = len({vote.call for vote in good}) <= 1
        if len(good) == len(votes) and len(self._question.sets) == 1 and settled(good):
            others = dict.fromkeys(self._control.ranks, replace(mine, host=""))
            case = Case(Hearing(self._question, others | {self._rank: mine}, {}), {}, {})
            return case.agreement(sent=self._sent, left_out=self._holding.left_out if self._holding else ())
        outlines: dict[int, Outline] = {}
        errors: dict[int, str] = {}
        raws = self._gather(mine.pack(), f"{self._what}: outlines")
        for rank, vote, raw in zip(self._control.ranks, votes, raws, strict=True):
            outline = _read(Outline.unpack, raw)
            if isinstance(outline, Outline) and isinstance(vote, Vote):
                outlines[rank] = outline
            else:
                errors[rank] = next(one for one in (vote, outline) if isinstance(one, str))
        # Ranks that were not asked the same have no question in common, and still come to one answer.
        question = self._question if alike else replace(self._question, sets=(self._control.ranks,), apart=frozenset())
        hearing = Hearing(question, outlines, errors, called_alike=alike)
        told, bad = self._told(hearing)
        left_out = {one.name: one for rank in sorted(told) for one in told[rank].left_out}
        if not told and self._holding:
            left_out = {one.name: one for one in self._holding.left_out}
        case, rest = Case(hearing, told, bad), tuple(left_out.values())
        drills = look(case, self._holding, self._rank, self._around, self._drill_bytes) if self._drill_bytes else {}
        return case.agreement(sent=self._sent, left_out=rest, drills=drills)

    def _around(self, data: bytes, what: str) -> dict[int, bytes]:
        return dict(zip(self._control.ranks, self._gather(data, f"{self._what}: {what}"), strict=True))

    @property
    def _rank(self) -> int:
        return self._control.ranks[self._control.rank]

    def _gather(self, data: bytes, what: str) -> list[bytes]:
        raws = self._control.gather(data, what=what)
        for rank, raw in zip(self._control.ranks, raws, strict=True):
            self._sent[rank] += len(raw)
        return raws

    def _outline(self) -> Outline:
        holding = self._holding
        return Outline(
            roots=holding.roots if holding else {},
            failed=holding is None,
            undecided=holding.undecided if holding else frozenset(),
            entries=holding.count if holding else 0,
            size=holding.bytes if holding else 0,
            without_data=holding.without_data if holding else 0,
            time=time.time(),
            host=host_name(),
        )

    def _vote(self, mine: Outline) -> Vote:
        call = xxhash.xxh3_128_digest(encode(sorted(self._call.items())))
        return Vote(call, state_digest(mine.roots), whole=not mine.failed and not mine.undecided)

    def _told(self, hearing: Hearing) -> tuple[dict[int, Told], dict[int, str]]:
        """The tables of the spokesmen, and what was wrong with those that could not be read."""
        spokesmen = hearing.spokesmen
        if not spokesmen:
            return {}, {}
        raws = self._gather(self._table(hearing) if self._rank in spokesmen else b"", f"{self._what}: tables")
        told: dict[int, Told] = {}
        bad: dict[int, str] = {}
        for rank, raw in zip(self._control.ranks, raws, strict=True):
            if rank in spokesmen:
                one = _read(lambda data: decode(data, Told), raw)
                if isinstance(one, Told):
                    told[rank] = one
                else:
                    bad[rank] = one
        return told, bad

    def _table(self, hearing: Hearing) -> bytes:
        """What this rank says where it is asked to say all. Memory may have been freed since it was read."""
        if self._holding is None or not hearing.called_alike:
            return encode(Told(call=self._call, error=self._error))
        try:
            kinds = {kind: tuple(map(_row, self._holding.kinds.get(kind, ()))) for kind in hearing.kinds_of(self._rank)}
        except Exception as error:  # noqa: BLE001 - the others wait for this rank's answer
            return encode(Told(call=self._call, error=_why(error)))
        raw = encode(Told(call=self._call, kinds=kinds, left_out=self._holding.left_out))
        if len(raw) <= MAX_BYTES:
            return raw
        return encode(Told(call=self._call, error=f"its table would take {len(raw):,} bytes, more than can be told"))


def _why(error: Exception) -> str:
    return error_text(error) if isinstance(error, CkptError | Unreadable) else unexpected(error)


def _read(unpack: Callable[[bytes], T], raw: bytes) -> T | str:
    """A message, or what is wrong with it."""
    try:
        return unpack(raw)
    except BadMessage as error:
        return str(error)


def _row(held: Held) -> Row:
    entry = held.entry
    note = held.reason
    if held.digest and entry is not None and entry.value is not None:
        note = shown(entry.value) if entry.what == "value" else escape(entry.value)
    return Row(
        name=shown_name(held.named.name),
        digest=held.digest,
        schema=entry.schema if entry is not None else "",
        length=entry.length if entry is not None else 0,
        note=note,
    )
