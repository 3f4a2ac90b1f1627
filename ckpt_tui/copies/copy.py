"""One of the checkpoints that are compared: a folder that is scanned, or a scan that was saved."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..agreement import content_table, failed, fingerprint
from ..checkpoint.opening import read_file
from ..digest import Scanner
from ..digest.coherence import contradiction
from ..digest.host import host_name
from ..facts.outcome import CkptError, Interrupted, UsageError
from ..facts.scan import ScanResult
from ..facts.version import TOOL
from ..present.safe import error_text, escape
from ..report.json import decode_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from ..facts.agreement import Fingerprint, TableRow
    from ..facts.clock import Clock
    from ..facts.files import Segment
    from ..facts.settings import ScanSettings

    Watch = Callable[[int, Scanner], AbstractContextManager[object]]

#: What a scan warns of that was kept without its tables.
NO_TABLES = "saved without segment tables: files that differ are compared whole; scan --save writes the tables"
#: A saved scan with the tables of 100,000 tensors is some tens of MB.
_LARGEST_RESULT = 1 << 30


@dataclass(slots=True)
class Copy:
    """What is known of one copy so far.

    Of a saved scan only the fingerprint stays in memory: of hundreds a few speak for all others, and are read again.
    """

    place: int
    target: str
    scanner: Scanner | None = None
    result: ScanResult | None = None
    error: str | None = None
    #: Of a saved scan: what it says, and its files that should have a segment table and have none.
    saved: Fingerprint | None = None
    untold: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, place: int, target: str, settings: ScanSettings, clock: Clock) -> Copy:
        """Load a saved scan, or survey what lies on disk."""
        if target.endswith(".json"):
            result = _load(target)
            untold = frozenset(file.name for file in result.files if file.segments and file.segment_table is None)
            return cls(place, target, saved=fingerprint(result, place), untold=untold)
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
        if self.saved is not None:
            return self.saved
        if self.result is None:
            return failed(self.place, host_name(), escape(self.target), self.error or "not read", tool=TOOL)
        return fingerprint(self.result, self.place)

    def owning_up(self, names: Iterable[str]) -> Fingerprint:
        """What it says; a saved scan warns where it was asked for segments of files that it does not hold."""
        told = self.fingerprint()
        if self.untold.isdisjoint(names):
            return told
        return msgspec.structs.replace(told, warnings=(*told.warnings, NO_TABLES))

    def headers(self) -> tuple[TableRow, ...]:
        """What the identity covers, with the digests of headers in place of those of files."""
        return () if self.scanner is None or self.result is None else self.scanner.survey().header_table

    def told(self) -> ScanResult | None:
        """The whole result, a saved one read once more; None where it has none.

        Raises UsageError where the file no longer says what it said.
        """
        if self.saved is None:
            return self.result
        result = _load(self.target)
        if fingerprint(result, self.place) != self.saved:
            raise UsageError(f"{escape(self.target)}: has changed while it was compared")
        return result

    def segments(self, result: ScanResult, names: Iterable[str]) -> Mapping[str, tuple[Segment, ...]]:
        """The segments of those of its files whose digests are known."""
        known = {file.name: file for file in result.files if file.digest is not None}
        tables = {}
        for name in names:
            if name in known and self.scanner is not None:
                tables[name] = self.scanner.segments(name)
            elif name in known and (saved := known[name].segment_table) is not None:
                tables[name] = saved
        return tables


def table_of(result: ScanResult | None) -> tuple[TableRow, ...] | None:
    """Its file table, if it has a result."""
    return None if result is None else content_table(result)


def _load(target: str) -> ScanResult:
    """A scan that was saved as JSON, and that nobody has edited since."""
    name = escape(target)
    try:
        result = decode_as(read_file(Path(target), _LARGEST_RESULT), ScanResult, name)
    except OSError as error:
        raise UsageError(f"{name}: cannot be read as a saved scan: {error_text(error)}") from error
    if wrong := contradiction(result):
        raise UsageError(f"{name}: {wrong}: it was edited, or put together from others; scan again")
    return result
