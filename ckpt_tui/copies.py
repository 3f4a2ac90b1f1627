"""The checkpoints that `compare` compares: each is scanned or loaded, and then answers as a rank would."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .agreement import Testimony, content_table, failed, files_to_descend, fingerprint, groups_of
from .agreement.descent import Leaves, Look, Window, examine, look, plan
from .agreement.tables import key_of
from .agreement.targets import targets
from .checkpoint.opening import read_file
from .digest import Scanner
from .digest.host import host_name
from .digest.ranges import has_digest, is_zeros
from .facts.agreement import Fingerprint, Stage, TableRow
from .facts.outcome import CkptError, Interrupted, UsageError
from .facts.scan import ScanResult
from .facts.version import TOOL
from .present.safe import error_text, escape
from .report.json import decode_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from .agreement.descent import Drills, Target
    from .facts.agreement import Agreement
    from .facts.clock import Clock
    from .facts.files import Segment
    from .facts.settings import ScanSettings

    Watch = Callable[[int, Scanner], AbstractContextManager[object]]

#: What a scan warns of that was kept without its tables.
NO_TABLES = "saved without segment tables: files that differ are compared whole; scan --save writes the tables"
#: A saved scan with the tables of 100,000 tensors is some tens of MB.
_LARGEST_RESULT = 1 << 30


@dataclass(slots=True)
class Copy:
    """One of the checkpoints that are compared, and what is known of it so far."""

    place: int
    target: str
    scanner: Scanner | None = None
    result: ScanResult | None = None
    error: str | None = None

    @classmethod
    def of(cls, place: int, target: str, settings: ScanSettings, clock: Clock) -> Copy:
        """Load a saved scan, or survey what lies on disk."""
        if target.endswith(".json"):
            return cls(place, target, result=_saved(target))
        scanner = Scanner(target, settings, clock=clock)
        copy = cls(place, target, scanner=scanner)
        with copy.answering():
            scanner.survey()
        return copy

    def read(self, watch: Watch | None) -> None:
        """Hash it, unless that is done or cannot be."""
        if self.scanner is not None and self.error is None:
            with watch(self.place, self.scanner) if watch else nullcontext(), self.answering():
                self.result = self.scanner.run()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """What keeps a step from being taken is this copy's answer, but for a wrong word and the user's wish."""
        try:
            yield
        except (UsageError, Interrupted):
            raise
        except (CkptError, OSError) as error:
            self.error = error_text(error)

    def fingerprint(self) -> Fingerprint:
        """What it says."""
        if self.result is None:
            return failed(self.place, host_name(), escape(self.target), self.error or "not read", tool=TOOL)
        return fingerprint(self.result, self.place)

    def headers(self) -> tuple[TableRow, ...]:
        """What the identity covers, with the digests of headers in place of those of files."""
        return () if self.scanner is None or self.result is None else self.scanner.survey().header_table

    def segments(self, names: Iterable[str]) -> Mapping[str, tuple[Segment, ...]]:
        """The segments of those of its files whose digests are known."""
        if self.result is None:
            return {}
        known = {file.name: file for file in self.result.files if file.digest is not None}
        tables = {}
        for name in names:
            if name in known and self.scanner is not None:
                tables[name] = self.scanner.segments(name)
            elif name in known and (saved := known[name].segment_table) is not None:
                tables[name] = saved
        return tables


def testimonies(copies: Sequence[Copy], stage: Stage) -> list[Testimony]:
    """The fingerprints, and of one copy in each group the tables: as ranks would exchange them."""
    fingerprints = [copy.fingerprint() for copy in copies]
    speaking = [copies[group[0]] for group in groups_of(fingerprints, stage)]
    if len(speaking) < 2:
        return [Testimony(one) for one in fingerprints]
    if stage is Stage.IDENTITY and all(copy.scanner is not None for copy in copies):
        tables = {copy.place: copy.headers() for copy in speaking}
    else:  # a saved scan knows no header's digest
        tables = {copy.place: content_table(copy.result) for copy in speaking if copy.result is not None}
    names = files_to_descend(tables) if stage is Stage.CONTENT else ()
    segments = {copy.place: copy.segments(names) for copy in speaking}
    return [
        Testimony(fingerprint=_owned(copy, one, names), table=tables.get(one.rank), segments=segments.get(one.rank, {}))
        for copy, one in zip(copies, fingerprints, strict=True)
    ]


def _owned(copy: Copy, told: Fingerprint, names: Iterable[str]) -> Fingerprint:
    """What a copy says; a saved scan owns up to it where it was asked for segments that it does not hold."""
    if copy.scanner is not None or copy.result is None:
        return told
    asked = frozenset(names)
    if all(file.segment_table is not None for file in copy.result.files if file.name in asked and file.segments):
        return told
    return msgspec.structs.replace(told, warnings=(*told.warnings, NO_TABLES))


def drilled(copies: Sequence[Copy], agreement: Agreement, heard: Sequence[Testimony], budget: int) -> Drills:
    """Look into the bytes that differ: at most `budget` of each copy are read again."""
    found = targets(agreement, heard, budget)
    leaves = _leaves(copies, found)

    def read(side: str, window: Window) -> Look:
        target = window.target
        scanner = copies[target.ranks[side]].scanner
        if scanner is None:
            return Look(error="its bytes are not at hand")
        return look(window, side, leaves[target.place(side)], scanner.read_again, has_digest)

    return examine(found, plan(found, leaves, budget), leaves, read, is_zeros)


def _leaves(copies: Sequence[Copy], found: Sequence[Target]) -> Leaves:
    """The digests of the leaves of each target on each side; a saved scan has none."""
    tables: dict[tuple[int, str], dict[object, bytes]] = {}
    leaves: Leaves = {}
    for target in found:
        for side in target.sides:
            rank = target.ranks[side]
            scanner = copies[rank].scanner
            if scanner is None:
                continue
            if (rank, target.file) not in tables:
                keys = map(key_of, scanner.segments(target.file))
                tables[rank, target.file] = dict(zip(keys, scanner.leaves(target.file), strict=True))
            leaves[side, target.file, target.key] = tables[rank, target.file][target.key]
    return leaves


def _saved(target: str) -> ScanResult:
    """A scan that was saved as JSON."""
    name = escape(target)
    try:
        return decode_as(read_file(Path(target), _LARGEST_RESULT), ScanResult, name)
    except OSError as error:
        raise UsageError(f"{name}: cannot be read as a saved scan: {error_text(error)}") from error
