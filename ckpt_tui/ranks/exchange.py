"""The comparison: what is asked of whom, step by step, until the verdict. It knows nothing of how messages travel.

When all agree, one fixed-size vote and one fingerprint go around. Tables travel only where fingerprints differ, and
only from one representative of each group.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from ..agreement import Testimony, failed, files_to_descend, groups_of, judge
from ..facts.agreement import Agreement, Fingerprint, Stage
from .calls import nothing
from .drilling import drilled
from .messages import Answer, BadMessage, Files, Step, Tables, decode, decode_all, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..agreement.descent import Drills
    from ..facts.agreement import TableRow
    from ..facts.base import Fact
    from ..facts.clock import Clock
    from ..facts.files import Segment
    from .gather import Gather
    from .messages import Hello
    from .witness import Witness

T = TypeVar("T", bound="Fact")


class Ask(Protocol):
    """Gathers one answer of each rank: what those told that told anything which can be read."""

    def __call__(self, step: Step, kind: type[T], payload: bytes, /) -> dict[int, T]:
        """Collective."""


class Exchange:
    """One rank's part in the comparison over a gather. Its outcome is the same on every rank, to the byte."""

    def __init__(
        self,
        gather: Gather,
        *,
        members: Mapping[int, Hello],
        world_size: int,
        absent: Mapping[int, str],
        clock: Clock,
        arrive: Callable[[], None] = nothing,
    ) -> None:
        """`arrive` returns once every rank has come to the same point: no collective is entered with a lost rank."""
        self._gather = gather
        self._arrive = arrive
        self._members = members
        self._world_size = world_size
        self._absent = dict(absent)
        self._clock = clock
        self._sent: Counter[int] = Counter()
        self._at = 0.0
        #: What the verdict was made of, the same on every rank.
        self.heard: list[Testimony] = []

    def same_identity(self, witness: Witness) -> bool:
        """Whether all ranks have the same metadata, by one vote of a fixed size."""
        votes = self._send(Step.VOTE, witness.vote())
        return len(votes) == self._world_size and len(set(votes.values())) == 1 and b"" not in votes.values()

    def identity(self, witness: Witness) -> Agreement:
        """The verdict over metadata alone."""
        fingerprints, _ = self._fingerprints(Step.IDENTITY, witness, Stage.IDENTITY)
        return self._by_headers(fingerprints, witness)

    def content(self, witness: Witness) -> Agreement:
        """The verdict over every byte; over metadata alone where no rank knows its content."""
        fingerprints, unfinished = self._fingerprints(Step.CONTENT, witness, Stage.CONTENT)
        if unfinished and all(one.content is None for one in fingerprints.values()):
            return self._by_headers(fingerprints, witness)
        for rank, why in unfinished.items():
            fingerprints[rank] = msgspec.structs.replace(fingerprints[rank], error=why)
        tables = self._tables(Step.FILES, Stage.CONTENT, fingerprints, witness)
        segments = self._segments(Step.SEGMENTS, tables, witness)
        heard = self._testimonies(fingerprints, tables, segments)
        agreement = self._judged(Stage.CONTENT, heard)
        if self._absent or unfinished:
            return agreement  # those that are left have no time to read again
        drills = drilled(agreement, heard, witness, self._ask)
        # What was sent for the bytes counts too.
        heard = self._testimonies(fingerprints, tables, segments)
        return self._judged(Stage.CONTENT, heard, drills) if drills else agreement

    def _by_headers(self, fingerprints: Mapping[int, Fingerprint], witness: Witness) -> Agreement:
        tables = self._tables(Step.HEADERS, Stage.IDENTITY, fingerprints, witness)
        segments = self._segments(Step.ENTRIES, tables, witness)
        return self._judged(Stage.IDENTITY, self._testimonies(fingerprints, tables, segments))

    def _segments(
        self, step: Step, tables: Mapping[int, tuple[TableRow, ...]], witness: Witness
    ) -> dict[int, dict[str, tuple[Segment, ...]]]:
        """The pieces of the files that differ, by rank and file: with their digests, or as the headers list them."""
        names = files_to_descend(tables)
        if not names:
            return {}
        tell = witness.entries if step is Step.ENTRIES else witness.tables
        told = self._ask(step, Tables, tell(names) if witness.rank in tables else b"")
        return {rank: {one.file: one.segments for one in them.tables} for rank, them in told.items()}

    def _testimonies(
        self,
        fingerprints: Mapping[int, Fingerprint],
        tables: Mapping[int, tuple[TableRow, ...]],
        segments: Mapping[int, Mapping[str, tuple[Segment, ...]]],
    ) -> list[Testimony]:
        return [
            Testimony(
                fingerprint=one,
                table=tables.get(rank),
                segments=segments.get(rank, {}),
                bytes_sent=self._sent[rank],
            )
            for rank, one in sorted(fingerprints.items())
        ]

    def _judged(self, stage: Stage, testimonies: list[Testimony], drills: Drills | None = None) -> Agreement:
        self.heard = testimonies
        return judge(
            testimonies,
            world_size=self._world_size,
            stage=stage,
            absent=self._absent,
            created=self._at,
            tool=testimonies[0].fingerprint.tool if testimonies else "",
            drills=drills,
        )

    def _fingerprints(
        self, step: Step, witness: Witness, stage: Stage
    ) -> tuple[dict[int, Fingerprint], dict[int, str]]:
        """Every rank's fingerprint, or that its message cannot be read; and who had to stop before the end, and why."""
        fingerprints: dict[int, Fingerprint] = {}
        unfinished: dict[int, str] = {}
        own = Answer(fingerprint=witness.fingerprint(stage), at=self._clock.time(), unfinished=witness.unfinished)
        for rank, raw in self._send(step, encode(own)).items():
            try:
                answer = decode(raw, Answer)
            except BadMessage as error:
                fingerprints[rank] = self._refused(rank, str(error))
                continue
            told = answer.fingerprint
            fingerprints[rank] = told if told.rank == rank else self._refused(rank, f"it speaks for rank {told.rank}")
            self._at = max(self._at, answer.at)
            if answer.unfinished is not None:
                unfinished[rank] = answer.unfinished
        return fingerprints, unfinished

    def _refused(self, rank: int, why: str) -> Fingerprint:
        return failed(rank, self._members[rank].host, "", f"its message cannot be read: {why}")

    def _tables(
        self, step: Step, stage: Stage, fingerprints: Mapping[int, Fingerprint], witness: Witness
    ) -> dict[int, tuple[TableRow, ...]]:
        """The file tables of one representative of each group, where there is more than one group."""
        groups = groups_of(list(fingerprints.values()), stage)
        if len(groups) < 2:
            return {}
        mine = witness.rank in {group[0] for group in groups}
        told = self._ask(step, Files, encode(Files(rows=witness.table(stage))) if mine else b"")
        return {rank: files.rows for rank, files in told.items()}

    def _ask(self, step: Step, kind: type[T], payload: bytes) -> dict[int, T]:
        """What those ranks told that told anything which can be read."""
        return decode_all(self._send(step, payload), kind)

    def _send(self, step: Step, payload: bytes) -> dict[int, bytes]:
        self._arrive()
        gathered = self._gather.gather(step, payload)
        for rank, raw in gathered.items():
            self._sent[rank] += len(raw)
        self._absent |= self._gather.absent
        return gathered
