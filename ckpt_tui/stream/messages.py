"""The messages of a stream. A line is an `Envelope`: a number that rises by one, and a message.

A stream is `hello`, a `snapshot` in slices, then rows that replace what was known under their key, a `beat` a second,
and `bye` at the end. Texts in here are escaped (`present.safe`). Fields are added, never renamed; a message that a
reader does not know is skipped and counted.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..facts.agreement import DifferingSegment
from ..facts.cached import CachedFile, CachedFolder, CacheReport
from ..facts.drill import Drill
from ..facts.files import Claim, FileResult, Role, SegmentKind, State
from ..facts.scan import CheckpointRef
from ..facts.status import Cell, RankStatus

PROTOCOL = 1


class _Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The base of all messages."""


class Word(StrEnum):
    """The one word that says how it stands: the verdict line's first."""

    STARTING = "STARTING"
    MEETING = "MEETING"
    READING = "READING"
    PAUSED = "PAUSED"
    COMPARING = "COMPARING"
    DONE = "DONE"
    VERIFIED = "VERIFIED"
    AGREE = "AGREE"
    DAMAGED = "DAMAGED"
    MISSING = "MISSING"
    EXTRA = "EXTRA"
    DIFFER = "DIFFER"
    INCOMPLETE = "INCOMPLETE"
    UNDECIDED = "UNDECIDED"
    NO_BEAT = "NO BEAT"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class Level(StrEnum):
    """How loud a log line is. `native` is what libraries wrote on the worker's stderr."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    NATIVE = "native"


class Mode(StrEnum):
    """What a worker does."""

    SCAN = "scan"
    RANKS = "ranks"
    COMPARE = "compare"
    #: A session that runs elsewhere is looked at: nobody misses this worker when it leaves.
    ATTACH = "attach"


class Hello(_Message, frozen=True, tag="hello"):
    """Who speaks, and in which version."""

    protocol: int
    tool: str
    mode: Mode
    pid: int


class Survey(_Message, frozen=True, tag="survey"):
    """What is going to be read. `roles` holds one character a file: `w` for weights, `s` for a sidecar."""

    checkpoint: CheckpointRef
    host: str
    roles: str
    bytes_total: int
    threads: int
    sha256: bool
    rank: int = 0
    world_size: int = 1
    identity: str | None = None
    #: What a missing rank must run, but for its number; empty where a launcher starts them.
    join: str = ""
    #: Weights that lie there and are not compared.
    not_compared: int = 0


class Watching(_Message, frozen=True, tag="watching"):
    """Whose file rows flow: the answer to `watch`."""

    rank: int


class RankRow(_Message, frozen=True, tag="rank"):
    """One rank's progress, and when it was last heard (seconds since the epoch)."""

    status: RankStatus
    heard: float


class FileRow(_Message, frozen=True, tag="file"):
    """One file of the watched rank. `note` says what is wrong with it; `result` is there once it is done, if known."""

    rank: int
    index: int
    name: str
    role: Role
    size: int
    cell: Cell
    state: State = State.GOOD
    done: int = 0
    #: Bytes a second: so far while it is read, on average when it was.
    rate: float = 0.0
    note: str | None = None
    result: FileResult | None = None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What is on record of it, once it is done."""
        return self.result.claims if self.result else ()


class VerdictRow(_Message, frozen=True, tag="verdict"):
    """The outcome so far, or with `code` the final one. `lines` say where it differs."""

    word: Word
    text: str
    #: What else is wrong, beside the verdict: a lost rank is named even where ranks differ.
    also: str = ""
    lines: tuple[str, ...] = ()
    code: int | None = None


class LogLine(_Message, frozen=True, tag="log"):
    """One line for the log; `number` is its key."""

    number: int
    at: float
    level: Level
    text: str
    rank: int = 0


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked into: a file, or one of its segments from byte `at` of the segment on."""

    file: str
    kind: SegmentKind | None = None
    name: str = ""
    offset: int = 0
    at: int = 0


class DrillState(StrEnum):
    """Whether what was asked for is known."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


class DrillRow(_Message, frozen=True, tag="drill"):
    """The answer to `Descend`, under its place: a file's differing segments, all of them, or one segment's bytes.

    Many segments come in slices, each with the `part` that follows the one before, pending but for the last; the
    reducer joins them. `more` counts segments that never come.
    """

    place: Place
    state: DrillState
    part: int = 0
    segments: tuple[DifferingSegment, ...] = ()
    more: int = 0
    drill: Drill | None = None
    error: str = ""


class Holding(_Message, frozen=True, tag="holding"):
    """Whether those that were compared stay ready to be asked: `Descend` is answered until they are let go."""

    ready: bool
    #: Why not, or not any more.
    reason: str = ""


class ResultPart(_Message, frozen=True, tag="result"):
    """A piece of the result's JSON. All parts joined are a whole ScanResult or Agreement."""

    mode: Mode
    part: int
    parts: int
    text: str


class CachePart(_Message, frozen=True, tag="cache"):
    """A piece of what the digest cache holds, as the answer to `Inventory`: a report's sums, and some of its rows.

    Each answer has an `edition` of its own. With no `parts` it is being made; with an `error` it could not be.
    """

    edition: int
    part: int = 0
    parts: int = 0
    #: The report without its rows, in the first part.
    head: CacheReport | None = None
    folders: tuple[CachedFolder, ...] = ()
    files: tuple[CachedFile, ...] = ()
    error: str = ""


Row = Survey | Watching | RankRow | FileRow | VerdictRow | LogLine | DrillRow | Holding | ResultPart | CachePart


class Snapshot(_Message, frozen=True, tag="snapshot"):
    """A slice of everything known. The first slice (`part` 0) begins anew, the last one (`parts` - 1) takes effect."""

    part: int
    parts: int
    rows: tuple[Row, ...]


class Beat(_Message, frozen=True, tag="beat"):
    """The worker lives."""

    at: float


class Bye(_Message, frozen=True, tag="bye"):
    """The end, with the exit code. An end of file without it is a crash."""

    code: int
    reason: str = ""


Message = Hello | Snapshot | Row | Beat | Bye


class Envelope(msgspec.Struct, frozen=True):
    """A message with its number. `message` is None where this reader does not know its type."""

    seq: int
    message: Message | None


class Quit(_Message, frozen=True, tag="quit"):
    """Stop what you do and end."""


class Resync(_Message, frozen=True, tag="resync"):
    """Send everything again: the reader has missed something."""


class Watch(_Message, frozen=True, tag="watch"):
    """Send this rank's file rows from now on."""

    rank: int


class Descend(_Message, frozen=True, tag="descend"):
    """Look deeper: which segments of a file differ, or how a segment's bytes differ from `place.at` on."""

    place: Place


class Release(_Message, frozen=True, tag="release"):
    """Let those go that are held ready: nothing more will be asked."""


class Pause(_Message, frozen=True, tag="pause"):
    """Rest from reading, or go on; stand still where it is a recording. The answer is the rank's status."""

    on: bool


class Seek(_Message, frozen=True, tag="seek"):
    """Jump by so many seconds: in a recording."""

    seconds: float


class Again(_Message, frozen=True, tag="again"):
    """Start over, and read every byte whatever is remembered. Only a scan can."""


class Inventory(_Message, frozen=True, tag="inventory"):
    """Say what the digest cache of this host holds."""


Command = Quit | Resync | Watch | Descend | Release | Pause | Seek | Again | Inventory
