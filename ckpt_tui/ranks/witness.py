"""What this rank itself can say of its checkpoint: its scan's results, or the error that kept it from knowing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from .. import agreement
from ..facts.agreement import Fingerprint, SegmentTable, Stage, TableRow
from ..facts.files import Segment, SegmentKind
from ..facts.outcome import CkptError
from .messages import MAX_BYTES, Tables, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..checkpoint import Header
    from ..digest import Survey
    from ..facts.drill import Reread
    from ..facts.scan import ScanResult


def _none(_name: str) -> tuple[bytes, ...]:
    return ()


def _refuse(name: str, _offset: int, _length: int) -> Reread:
    raise CkptError(f"{name}: its bytes are not at hand")


@dataclass(frozen=True, kw_only=True)
class Witness:
    """One rank's knowledge at one moment.

    `error` is what kept it from knowing its checkpoint, `unfinished` why it had to stop before it did.
    """

    rank: int
    host: str
    path: str
    tool: str
    segments: Callable[[str], tuple[Segment, ...]]
    #: `Scanner.leaves` and `Scanner.read_again`.
    leaves: Callable[[str], tuple[bytes, ...]] = _none
    again: Callable[[str, int, int], Reread] = _refuse
    survey: Survey | None = None
    result: ScanResult | None = None
    error: str | None = None
    unfinished: str | None = None
    #: As in `RankSettings.given`.
    given: tuple[tuple[str, str], ...] = ()
    #: What to say beside a file that is missing; ''.
    doubt: str = ""

    def vote(self) -> bytes:
        """32 bytes, equal on two ranks exactly when their metadata and given facts are; none where it is not known."""
        told = self.fingerprint(Stage.IDENTITY)
        if told.error is not None or told.undecided or (told.identity is None and told.partial is None):
            return b""
        said = f"{told.identity} {told.partial if told.identity is None else ''} {sorted(told.given.items())}"
        return hashlib.sha256(said.encode()).digest()

    def fingerprint(self, stage: Stage) -> Fingerprint:
        """What this rank says at a stage."""
        told = self._fingerprint(stage)
        warnings = (*told.warnings, self.doubt) if self.doubt else told.warnings
        return msgspec.structs.replace(told, given=dict(sorted(self.given)), warnings=warnings)

    def _fingerprint(self, stage: Stage) -> Fingerprint:
        if stage is Stage.CONTENT and self.result is not None:
            return agreement.fingerprint(self.result, self.rank)
        if self.survey is None:
            why = self.error or self.unfinished or "its headers were not read yet"
            return agreement.failed(self.rank, self.host, self.path, why, tool=self.tool)
        checkpoint = self.survey.checkpoint
        told = agreement.identity_fingerprint(
            rank=self.rank,
            host=self.host,
            tool=self.tool,
            ref=checkpoint.ref,
            identity=self.survey.identity,
            table=self.survey.header_table,
            findings=checkpoint.findings,
            not_compared=checkpoint.not_compared,
        )
        return told if self.error is None else msgspec.structs.replace(told, error=self.error)

    def table(self, stage: Stage) -> tuple[TableRow, ...]:
        """Its file table at a stage."""
        if stage is Stage.CONTENT and self.result is not None:
            return agreement.content_table(self.result)
        return self.survey.header_table if self.survey is not None and stage is Stage.IDENTITY else ()

    def tables(self, names: Iterable[str]) -> bytes:
        """The segments of those of its files whose digests are known."""
        if self.result is None:
            return b""
        cut = {file.name for file in self.result.files if file.digest is not None}
        return _fitting(SegmentTable(file=name, segments=self.segments(name)) for name in names if name in cut)

    def entries(self, names: Iterable[str]) -> bytes:
        """What the headers of those files say of their tensors: segments whose digests nobody knows yet."""
        if self.survey is None:
            return b""
        headers = {file.name: file.header for file in self.survey.checkpoint.files if file.header is not None}
        return _fitting(SegmentTable(file=name, segments=_entries(headers[name])) for name in names if name in headers)


def _entries(header: Header) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            kind=SegmentKind.TENSOR,
            name=one.name,
            offset=one.offset,
            length=one.length,
            digest="",
            dtype=one.dtype,
            shape=one.shape,
        )
        for one in header.tensors
    )


def _fitting(tables: Iterable[SegmentTable]) -> bytes:
    """As many as fit into one message: a report that names less stays true."""
    fitting: list[SegmentTable] = []
    room = MAX_BYTES - 1024
    for table in tables:
        room -= len(encode(table))
        if room < 0:
            break
        fitting.append(table)
    return encode(Tables(tables=tuple(fitting)))
