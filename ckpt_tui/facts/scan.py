"""The result of a scan: `ckpt-tui/scan/1`."""

from __future__ import annotations

from enum import StrEnum

from .base import Fact
from .files import FileResult, Finding

SCAN_SCHEMA = "ckpt-tui/scan/1"
#: The version of the digests' layout (docs/digests.md). Records and peers of another layout are told so.
DIGEST_LAYOUT = 1


class CheckpointKind(StrEnum):
    """What was named on the command line."""

    FOLDER = "folder"
    FILE = "file"
    HUB_SNAPSHOT = "hub-snapshot"


class CheckpointRef(Fact, frozen=True, kw_only=True):
    """Which checkpoint was looked at."""

    path: str
    kind: CheckpointKind
    repo_id: str | None = None
    revision: str | None = None


class NotCompared(Fact, frozen=True, kw_only=True):
    """Weights that lie there and were left out, so that nobody takes them for compared."""

    name: str
    size: int


class Totals(Fact, frozen=True, kw_only=True):
    """Sums over the files of a scan; `seconds` is wall time."""

    files: int
    bytes: int
    files_cached: int
    bytes_read: int
    seconds: float
    threads: int


class ScanResult(Fact, frozen=True, kw_only=True):
    """What one machine knows of one checkpoint. The digests are hex; null means not known."""

    schema: str
    host: str
    tool: str
    digest_layout: int
    created: float
    checkpoint: CheckpointRef
    identity: str | None
    content: str | None
    logical_content: str | None
    #: Digest over all sidecars (config, index, tokenizer ...); null where one could not be read.
    sidecars: str | None
    files: tuple[FileResult, ...]
    findings: tuple[Finding, ...]
    not_compared: tuple[NotCompared, ...]
    totals: Totals
    content_sha256: str | None = None
    #: Digest of where the weight files lie (host, device, inode): two ranks with one value share one copy.
    copy_id: str | None = None
    #: Type and source of the file system under the weights, as in `ext4 /dev/sda1`.
    file_system: str | None = None
    #: Things that went wrong beside the files: an unwritable cache, a lease that is not permitted.
    warnings: tuple[str, ...] = ()
