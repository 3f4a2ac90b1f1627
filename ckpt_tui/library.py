"""The library's entrances: `scan` one checkpoint, `compare` several, `check_ranks` inside a job."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .agreement import Testimony, content_table, failed, files_to_descend, fingerprint, groups_of, judge
from .checkpoint.opening import read_file
from .digest import Scanner, scan
from .digest.host import host_name
from .facts.agreement import Agreement, Fingerprint, Stage, TableRow, Verdict
from .facts.clock import Clock, SystemClock
from .facts.outcome import CkptError, Interrupted, UsageError, agreement_code
from .facts.scan import ScanResult
from .facts.settings import RankSettings, ScanSettings
from .facts.version import TOOL
from .present.safe import error_text, escape
from .report.json import decode_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from .facts.files import Segment
    from .ranks import Place

    Watch = Callable[[int, Scanner], AbstractContextManager[object]]

__all__ = ["RanksDiffer", "check_ranks", "compare", "scan"]

#: A saved scan with the tables of 100,000 tensors is some tens of MB.
_LARGEST_RESULT = 1 << 30


class RanksDiffer(CkptError):
    """The ranks do not hold the same checkpoint, or it could not be found out; `agreement` says which, and why."""

    def __init__(self, agreement: Agreement) -> None:
        super().__init__(f"{agreement.verdict.value}: {agreement.summary}")
        self.agreement = agreement
        self.code = agreement_code(agreement)


def compare(
    *targets: str | os.PathLike[str],
    settings: ScanSettings | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
) -> Agreement:
    """Do these hold the same checkpoint? Folders, files, repo ids of the local hub cache, or saved scans (`.json`).

    Each takes the place of a rank, numbered from 0 in the order given. One that cannot be read is an error of its own
    and hides nothing of the others; one that names nothing is a UsageError, before any tensor byte is read.
    `watch(place, scanner)` is entered around each scan, for whoever shows its progress.
    """
    settings = settings or ScanSettings()
    clock = clock or SystemClock()
    if len(targets) < 2:
        raise UsageError("comparing takes two checkpoints at least")
    copies = [_Copy.of(place, os.fspath(target), settings, clock) for place, target in enumerate(targets)]
    for copy in copies:
        copy.read(watch)
    stage = Stage.IDENTITY if settings.identity_only else Stage.CONTENT
    return judge(_testimonies(copies, stage), world_size=len(copies), stage=stage, created=clock.time(), tool=TOOL)


def check_ranks(
    path: str | os.PathLike[str],
    *,
    settings: RankSettings | None = None,
    place: Place | None = None,
    clock: Clock | None = None,
) -> Agreement:
    """Be one rank of a session; the agreement where all agree, else RanksDiffer with the whole agreement on it.

    Collective: every rank of the job has to call it. `place` is found as the launcher set it when it is not given.
    The caller's own process groups are left alone.
    """
    from .ranks import Flags, Session, find_place

    settings = settings or RankSettings(scan=ScanSettings())
    session = Session(os.fspath(path), place or find_place(Flags()), settings, clock=clock)
    agreement = session.run()
    session.part()
    if agreement.verdict is not Verdict.AGREE:
        raise RanksDiffer(agreement)
    return agreement


@dataclass(slots=True)
class _Copy:
    """One of the checkpoints that are compared, and what is known of it so far."""

    place: int
    target: str
    scanner: Scanner | None = None
    result: ScanResult | None = None
    error: str | None = None

    @classmethod
    def of(cls, place: int, target: str, settings: ScanSettings, clock: Clock) -> _Copy:
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


def _testimonies(copies: Sequence[_Copy], stage: Stage) -> list[Testimony]:
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
        Testimony(fingerprint=one, table=tables.get(one.rank), segments=segments.get(one.rank, {}))
        for one in fingerprints
    ]


def _saved(target: str) -> ScanResult:
    """A scan that was saved as JSON."""
    name = escape(target)
    try:
        return decode_as(read_file(Path(target), _LARGEST_RESULT), ScanResult, name)
    except OSError as error:
        raise UsageError(f"{name}: cannot be read as a saved scan: {error_text(error)}") from error
