"""Copies side by side, from their names to the agreement, and on to whatever is asked below it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ..agreement import Testimony, files_to_descend, groups_of, judge
from ..agreement.descent import Leaves, Look, Window, examine, look, onward, plan
from ..agreement.tables import key_of, make_key
from ..agreement.targets import differing, members, target_at, targets
from ..digest.ranges import has_digest, is_zeros
from ..facts.agreement import Between, Stage
from ..facts.outcome import CkptError, Interrupted, UsageError
from ..facts.version import TOOL
from ..present.safe import error_text
from ..stream.messages import DrillRow, DrillState
from .copy import Copy, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ..agreement.descent import Drills, Target
    from ..facts.agreement import Agreement
    from ..facts.clock import Clock
    from ..facts.drill import Drill
    from ..facts.settings import ScanSettings
    from ..stream.messages import Place
    from .copy import Watch

    WatchLook = Callable[["LookProgress"], AbstractContextManager[object]]

#: So many bytes a side are read again for one question.
_ASKED = 8 << 20


@dataclass(slots=True)
class LookProgress:
    """How far the second look is: bytes read again, of all sides, and when it began (monotonic seconds)."""

    bytes_total: int = 0
    bytes_done: int = 0
    started: float | None = None


class Comparison:
    """One comparison. `run` once, then `answer` as often as is asked, both in one thread."""

    def __init__(self, targets_: Sequence[str], settings: ScanSettings, clock: Clock, *, drill_bytes: int) -> None:
        """Survey the folders and load the saved scans.

        One that cannot be read is an error of its own; one that names nothing is a UsageError.
        """
        if len(targets_) < 2:
            raise UsageError("comparing takes two checkpoints at least")
        self.copies = [Copy.of(place, target, settings, clock) for place, target in enumerate(targets_)]
        self.looking = LookProgress()
        self._clock = clock
        self._drill_bytes = drill_bytes
        self._stage = Stage.IDENTITY if settings.identity_only else Stage.CONTENT
        self._agreement: Agreement | None = None
        self._heard: list[Testimony] = []

    def run(self, watch: Watch | None = None, watch_look: WatchLook | None = None) -> Agreement:
        """The agreement; `watch(place, scanner)` and `watch_look(progress)` are entered while something is read."""
        for copy in self.copies:
            copy.read(watch)
        heard = self._heard = self._testimonies()
        verdict = partial(
            judge, heard, world_size=len(self.copies), stage=self._stage, created=self._clock.time(), tool=TOOL
        )
        agreement = verdict()
        if agreement.differences:
            with watch_look(self.looking) if watch_look else nullcontext():
                drills = self._drilled(agreement)
            agreement = verdict(drills=drills) if drills else agreement
        self._agreement = msgspec.structs.replace(agreement, between=Between.COPIES)
        return self._agreement

    def answer(self, place: Place) -> DrillRow:
        """What lies there, below the agreement. Raises Interrupted."""
        try:
            return self._answer(place)
        except Interrupted:
            raise
        except CkptError as error:
            return DrillRow(place=place, state=DrillState.FAILED, error=error_text(error))

    def cancel(self) -> None:
        """Stop reading, within a block; from any thread."""
        for copy in self.copies:
            if copy.scanner is not None:
                copy.scanner.cancel()

    # --- what the copies say

    def _testimonies(self) -> list[Testimony]:
        """The fingerprints, and of one copy in each group the tables: as ranks would exchange them."""
        copies = self.copies
        fingerprints = [copy.fingerprint() for copy in copies]
        speaking = [copies[group[0]] for group in groups_of(fingerprints, self._stage)]
        if len(speaking) < 2:
            return [Testimony(one) for one in fingerprints]
        by_headers = self._stage is Stage.IDENTITY and all(copy.scanner is not None for copy in copies)
        # A saved scan knows no header's digest, and is loaded twice where segments are asked for: one at a time.
        tables = {
            copy.place: table
            for copy in speaking
            if (table := copy.headers() if by_headers else table_of(copy.told())) is not None
        }
        names = files_to_descend(tables) if self._stage is Stage.CONTENT else ()
        segments = {
            copy.place: copy.segments(result, names)
            for copy in speaking
            if names and (result := copy.told()) is not None
        }
        return [
            Testimony(
                fingerprint=copy.owning_up(names),
                table=tables.get(copy.place),
                segments=segments.get(copy.place, {}),
            )
            for copy in copies
        ]

    # --- what lies below

    def _drilled(self, agreement: Agreement) -> Drills:
        """Look into the bytes that differ: at most so many of each copy are read again."""
        ranks = self._readers(agreement)
        found = [
            replace(target, ranks={**target.ranks, **ranks})
            for target in targets(agreement, self._heard, self._drill_bytes)
        ]
        leaves = self._leaves(found)
        return self._examined(found, plan(found, leaves, self._drill_bytes), leaves)

    def _answer(self, place: Place) -> DrillRow:
        agreement = self._agreement
        if agreement is None:
            raise CkptError("there is no verdict yet")
        if place.kind is None:
            segments = differing(agreement, self._heard, place.file)
            return DrillRow(place=place, state=DrillState.DONE, segments=segments)
        key = make_key(place.kind, place.name, place.offset)
        ranks = self._readers(agreement)
        target = target_at(agreement, self._heard, place.file, key, at=place.at, speakers=ranks)
        return DrillRow(place=place, state=DrillState.DONE, drill=self._look_into(target))

    def _look_into(self, target: Target) -> Drill:
        leaves = self._leaves([target])
        (drill,) = self._examined([target], onward(target, leaves, _ASKED), leaves).values()
        return drill

    def _readers(self, agreement: Agreement) -> dict[str, int]:
        """Of each side a copy whose bytes are at hand, if it has one: beside a saved scan its like may lie here."""
        return {
            label: at_hand[0]
            for label, ranks in members(agreement, self._heard).items()
            if (at_hand := [rank for rank in ranks if self.copies[rank].scanner is not None])
        }

    def _examined(self, found: Sequence[Target], windows: Sequence[Window], leaves: Leaves) -> Drills:
        progress = self.looking
        progress.bytes_total = sum(window.whole(side) for window in windows for side in window.sides)
        progress.bytes_done, progress.started = 0, self._clock.monotonic()

        def read(side: str, window: Window) -> Look:
            target = window.target
            scanner = self.copies[target.ranks[side]].scanner
            if scanner is None:
                return Look(error="its bytes are not at hand")
            seen = look(window, side, leaves[target.place(side)], scanner.read_again, has_digest)
            progress.bytes_done += window.whole(side)
            return seen

        return examine(found, windows, leaves, read, is_zeros)

    def _leaves(self, found: Sequence[Target]) -> Leaves:
        """The digests of the leaves of each target on each side; a saved scan has none."""
        tables: dict[tuple[int, str], dict[object, bytes]] = {}
        leaves: Leaves = {}
        for target in found:
            for side in target.sides:
                rank = target.ranks[side]
                scanner = self.copies[rank].scanner
                if scanner is None:
                    continue
                if (rank, target.file) not in tables:
                    keys = map(key_of, scanner.segments(target.file))
                    tables[rank, target.file] = dict(zip(keys, scanner.leaves(target.file), strict=True))
                digests = tables[rank, target.file].get(target.key)
                if digests is not None:
                    leaves[target.place(side)] = digests
        return leaves
