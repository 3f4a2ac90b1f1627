"""What ranks say of their checkpoints, and the verdict over it: `ckpt-tui/agreement/1`."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .base import Fact
from .drill import Drill
from .files import Role, Segment, SegmentKind, Severity, State
from .scan import NotCompared

AGREEMENT_SCHEMA = "ckpt-tui/agreement/1"


class Stage(StrEnum):
    """How deep the ranks compared: by metadata alone, or every byte."""

    IDENTITY = "identity"
    CONTENT = "content"


class Fingerprint(Fact, frozen=True, kw_only=True):
    """What one rank says of its checkpoint. Digests are null where the rank could not know them; `error` says why."""

    rank: int
    host: str
    path: str
    file_system: str
    layout: int
    tool: str
    identity: str | None
    content: str | None
    content_sha256: str | None
    logical_content: str | None
    sidecars: str | None
    #: One digest of how all files are cut; contents compare only where it is equal.
    segmentation: str | None
    copy_id: str | None
    files: int
    files_cached: int
    #: Seconds since the epoch of the oldest digest that this rests on.
    oldest_digest: float | None
    #: Names of weight files or sidecars that are not `good`, as `name: state`.
    broken: tuple[str, ...] = ()
    #: Files that could not be read or decided, as `name: state`.
    undecided: tuple[str, ...] = ()
    claims_kept: int = 0
    claims_broken: tuple[str, ...] = ()
    repo_id: str | None = None
    revision: str | None = None
    not_compared: tuple[NotCompared, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None
    #: Where the content is not known: a digest of the file table, so that ranks that are broken alike are found.
    partial: str | None = None
    #: Roles of which every file keeps a hash that the hub recorded.
    recorded: tuple[Role, ...] = ()
    #: The first few of `broken` and `undecided` with the reason, for people; `and 29 more` last.
    reasons: tuple[str, ...] = ()
    #: What else was given as a fact that must be equal everywhere, by its name (`ranks --with KEY=VALUE`).
    given: dict[str, str] = msgspec.field(default_factory=dict)


class TableRow(Fact, frozen=True, kw_only=True):
    """One file in a rank's file table: what is exchanged where fingerprints differ.

    In the identity stage `digest` is that of the file's header (weights) or bytes (sidecars); in the content stage the
    file digest.
    """

    name: str
    role: Role
    size: int
    state: State
    digest: str | None
    segmentation: str | None = None
    sha256: str | None = None
    segments: int = 0
    #: Whether it keeps a hash that the hub recorded; null where there is none.
    recorded: bool | None = None
    #: What is wrong with it, for people.
    error: str | None = None


class SegmentTable(Fact, frozen=True, kw_only=True):
    """The segments of one file of one rank."""

    file: str
    segments: tuple[Segment, ...]


class Verdict(StrEnum):
    """The outcome over all ranks."""

    AGREE = "agree"
    DIFFER = "differ"
    DAMAGED = "damaged"
    INCOMPLETE = "incomplete"
    UNDECIDED = "undecided"


class Standing(StrEnum):
    """What may be said of a group: by evidence first, by distinct copies second, else nothing."""

    RIGHT = "right"
    WRONG = "wrong"
    MAJORITY = "majority"
    MINORITY = "minority"
    UNDECIDED = "undecided"


class RankReport(Fact, frozen=True, kw_only=True):
    """One rank in an agreement. `group` is a letter, null for a rank that has no content to compare."""

    rank: int
    host: str
    path: str
    file_system: str
    group: str | None
    files_cached: int
    oldest_digest: float | None
    bytes_sent: int
    #: Weight files; between replicas tensors and other values.
    files: int = 0
    error: str | None = None
    #: Between replicas: bytes of its tensors.
    bytes: int = 0


class Group(Fact, frozen=True, kw_only=True):
    """Ranks that hold the same. `name` is the letter shown; `evidence` whole phrases."""

    name: str
    ranks: tuple[int, ...]
    copies: int
    identity: str | None
    content: str | None
    standing: Standing
    evidence: tuple[str, ...]


class CauseCode(StrEnum):
    """Why files differ (section 7 of the design)."""

    OTHER_REVISION = "other-revision"
    TRUNCATED = "truncated"
    ZERO_TAIL = "zero-tail"
    ZERO_RUN = "zero-run"
    OVERLONG = "overlong"
    LFS_POINTER = "lfs-pointer"
    BIT_FLIP = "bit-flip"
    DAMAGED_RUN = "damaged-run"
    TENSOR_REPLACED = "tensor-replaced"
    EVERYTHING_DIFFERS = "everything-differs"
    HEADER_ONLY = "header-only"
    RESHARDED = "resharded"
    MISSING = "missing"
    EXTRA = "extra"
    CHANGED = "changed"
    UNREADABLE = "unreadable"
    UNSTABLE_READ = "unstable-read"
    SAME_FILE_READ_DIFFERENTLY = "same-file-read-differently"
    UNKNOWN = "unknown"


class Cause(Fact, frozen=True, kw_only=True):
    """The likeliest cause and the facts that say so.

    `candidate`: it rests on metadata alone, or on a part of the bytes that differ. `mend`: a command to paste, or an
    empty string.
    """

    code: CauseCode
    summary: str
    facts: tuple[str, ...]
    mend: str
    candidate: bool


class DifferenceKind(StrEnum):
    """How a file differs between groups."""

    CONTENT = "content"
    SIZE = "size"
    HEADER = "header"
    MISSING = "missing"
    STATE = "state"


class DifferingSegment(Fact, frozen=True, kw_only=True):
    """A piece of a file that is not the same in all groups. Offsets are those of the first group that has it.

    Between replicas it is a tensor or another value in memory, which has no offset.
    """

    name: str
    kind: SegmentKind
    offset: int
    length: int
    #: What its bytes told; null where they were not looked at.
    drill: Drill | None = None
    #: Between replicas: what each group holds, in words: a dtype and shape, a digest, a value.
    held: dict[str, str] = msgspec.field(default_factory=dict)


class Difference(Fact, frozen=True, kw_only=True):
    """One file that is not the same everywhere: `groups` maps each group's letter to what it holds, in words.

    Between replicas `file` is a kind of tensors (`parameters`, `buffers`, ...), and its segments are the tensors.
    Kinds that are judged apart have sets of ranks in place of letters, and are notes.
    """

    file: str
    role: Role
    kind: DifferenceKind
    severity: Severity
    groups: dict[str, str]
    segments: tuple[DifferingSegment, ...]
    cause: Cause
    #: Segments beyond those listed, so that a report stays small and honest.
    segments_left_out: int = 0


class RankError(Fact, frozen=True, kw_only=True):
    """A rank that could not know its own content, and why."""

    rank: int
    message: str


class Between(StrEnum):
    """Who is compared: the ranks of a job, copies side by side that take the places of ranks, or tensors in memory."""

    RANKS = "ranks"
    COPIES = "copies"
    REPLICAS = "replicas"


class GivenValue(Fact, frozen=True, kw_only=True):
    """What some ranks were given for one key; null where they were given nothing."""

    value: str | None
    ranks: tuple[int, ...]


class Unequal(Fact, frozen=True, kw_only=True):
    """A given fact that is not equal on all ranks."""

    key: str
    values: tuple[GivenValue, ...]


class Agreement(Fact, frozen=True, kw_only=True):
    """The verdict over all ranks. `weights_equal` is null where it could not be decided."""

    schema: str
    verdict: Verdict
    stage: Stage
    weights_equal: bool | None
    world_size: int
    ranks: tuple[RankReport, ...]
    groups: tuple[Group, ...]
    absent: tuple[int, ...]
    errors: tuple[RankError, ...]
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]
    not_compared: tuple[NotCompared, ...]
    #: One sentence for people.
    summary: str
    tool: str = ""
    created: float = 0.0
    #: What is known of each absent rank, as `rank 1 (host b): silent for 61 s, was reading model-00002...`.
    absent_detail: tuple[str, ...] = ()
    between: Between = Between.RANKS
    #: Facts given with `--with` that are not equal on all ranks.
    unequal: tuple[Unequal, ...] = ()
    #: Between replicas: what the training loop was doing, and at which step.
    phase: str | None = None
    step: int | None = None

    @property
    def speaker(self) -> int:
        """The lowest rank that answered: the one that tells the whole, where one does."""
        return min((report.rank for report in self.ranks), default=0)
