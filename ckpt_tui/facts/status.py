"""What a rank is doing now: the one value that travels live, from the hashing threads to every screen."""

from __future__ import annotations

from enum import StrEnum

from .base import Fact


class Phase(StrEnum):
    """Where a rank is in its session."""

    STARTING = "starting"
    MEETING = "meeting"
    IDENTITY = "identity"
    CONTENT = "content"
    COMPARING = "comparing"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    ABSENT = "absent"


class Cell(StrEnum):
    """One file of one rank as one character: what `RankStatus.cells` is made of."""

    WAITING = "."
    READING = ">"
    CACHED = "="
    READ = "+"
    #: Read by another process of this host while this one went on with other files.
    SHARED = "*"
    BAD = "!"
    UNREADABLE = "?"


class ActiveFile(Fact, frozen=True, kw_only=True):
    """A file that is being read: its place in the file list, and bytes hashed so far."""

    index: int
    done: int


class RankStatus(Fact, frozen=True, kw_only=True):
    """One rank's progress. Bytes count weights and sidecars; `rate` is bytes a second over the last seconds."""

    rank: int
    host: str
    phase: Phase
    #: Rises with every publication: a status whose beat stands still is a rank that is silent.
    beat: int = 0
    pid: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    bytes_cached: int = 0
    files_done: int = 0
    files_total: int = 0
    files_cached: int = 0
    rate: float = 0.0
    cells: str = ""
    active: tuple[ActiveFile, ...] = ()
    error: str | None = None
    #: What it is doing, for people: `reading model-00002-of-00004.safetensors`.
    doing: str = ""
    #: Its reading rests because somebody at its screen wished so: slow, not lost.
    paused: bool = False
    path: str = ""
