"""What is known of one file: its segments, claims, findings and the state it ends in."""

from __future__ import annotations

from enum import StrEnum

from .base import Fact


class Role(StrEnum):
    """What a file is to its checkpoint."""

    WEIGHTS = "weights"
    SIDECAR = "sidecar"


class State(StrEnum):
    """The one state a file ends in (section 3 of the design)."""

    GOOD = "good"
    TRUNCATED = "truncated"
    OVERLONG = "overlong"
    BAD_HEADER = "bad-header"
    BAD_LAYOUT = "bad-layout"
    NOT_WEIGHTS = "not-weights"
    MISSING = "missing"
    BROKEN_LINK = "broken-link"
    UNREADABLE = "unreadable"
    DIGEST_MISMATCH = "digest-mismatch"
    SUSPECT = "suspect"
    AMBIGUOUS = "ambiguous"
    OUTSIDE = "outside"
    CHANGED = "changed"
    EXTRA = "extra"
    IGNORED = "ignored"


#: Proven damage or incompleteness: exit code 1.
BROKEN_STATES = frozenset(
    {
        State.TRUNCATED,
        State.OVERLONG,
        State.BAD_HEADER,
        State.BAD_LAYOUT,
        State.NOT_WEIGHTS,
        State.MISSING,
        State.BROKEN_LINK,
        State.DIGEST_MISMATCH,
        State.AMBIGUOUS,
        State.OUTSIDE,
    }
)
#: Nothing may be claimed about the content: exit code 3.
UNDECIDED_STATES = frozenset({State.UNREADABLE, State.CHANGED})


class SegmentKind(StrEnum):
    """What a piece of a file holds."""

    HEADER = "header"
    TENSOR = "tensor"
    GAP = "gap"
    EXTENT = "extent"
    #: Between replicas: what is no tensor, as a learning rate.
    VALUE = "value"


class Segmentation(StrEnum):
    """How a file is cut into segments; digests of two files compare only where this is equal."""

    SAFETENSORS = "safetensors"
    EXTENTS = "extents-16MiB"


class Segment(Fact, frozen=True, kw_only=True):
    """A piece of a file. `offset` and `length` are bytes from the file's start; `digest` is 32 hex digits."""

    kind: SegmentKind
    name: str
    offset: int
    length: int
    digest: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None


class Source(StrEnum):
    """Where a file's digest comes from."""

    READ = "read"
    CACHE = "cache"


class MissReason(StrEnum):
    """Why the digest cache could not answer."""

    NEW = "new"
    CHANGED = "changed"
    CORRUPT_RECORD = "corrupt-record"
    OTHER_LAYOUT = "other-layout"
    LACKS_SHA256 = "lacks-sha256"
    EXPIRED = "expired"
    FORCED = "forced"
    WEAK_FS = "weak-fs"


class Severity(StrEnum):
    """How much a finding matters: an error decides the exit code, a warning does so under --strict."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(Fact, frozen=True, kw_only=True):
    """One thing that the structural audit has to say. `message` is whole sentences of escaped text."""

    code: str
    severity: Severity
    message: str
    file: str | None = None
    tensor: str | None = None


class Claim(Fact, frozen=True, kw_only=True):
    """A digest that somebody else stated: `holds` is None while it has not been checked."""

    kind: str
    algorithm: str
    expected: str
    holds: bool | None
    origin: str


#: Kinds of claims that were made where the file came from; all others may have been made from the copy at hand.
_FROM_THE_SOURCE = ("hub", "download", "git-lfs")


def settles(claim: Claim) -> bool:
    """Whether a kept claim clears a file that looks never written."""
    return claim.kind.startswith(_FROM_THE_SOURCE)


class FileResult(Fact, frozen=True, kw_only=True):
    """One file of a scan. `digest` (32 hex digits) is null unless the whole file was read or is cached."""

    name: str
    role: Role
    size: int
    state: State
    digest: str | None
    segmentation: Segmentation | None
    source: Source | None
    #: Seconds since the epoch at which the bytes were read, by the clock of the host that read them.
    hashed_at: float | None
    #: How many segments the file is cut into.
    segments: int
    claims: tuple[Claim, ...]
    sha256: str | None = None
    miss_reason: MissReason | None = None
    miss_detail: str | None = None
    segment_table: tuple[Segment, ...] | None = None
    error: str | None = None
    #: The name's bytes in hex, where they are not UTF-8.
    name_bytes: str | None = None
