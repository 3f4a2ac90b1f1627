"""What somebody has stated of files: checksum files, signing manifests, saved scans, and the hub's own listing."""

from __future__ import annotations

from enum import StrEnum

from .base import Fact

MANIFEST_SCHEMA = "ckpt-tui/manifest/1"


class ClaimKind(StrEnum):
    """Who states a digest. Kinds that begin with `hub` are the hub's own word, and may accuse a copy."""

    HUB_BLOB = "hub-blob"
    HUB_TREE = "hub-tree"
    #: From a manifest that was saved where the hub could be reached.
    HUB_MANIFEST = "hub-manifest"
    #: Asked of the hub now.
    HUB_ONLINE = "hub-online"
    DOWNLOAD = "download-metadata"
    GIT_LFS = "git-lfs"
    CHECKSUMS = "sums"
    SIGNING = "signing-manifest"
    SAVED_SCAN = "saved-scan"


class ExpectedFile(Fact, frozen=True, kw_only=True):
    """What is stated of one file. `name` is relative to the checkpoint's root; git's sha1 counts the blob's header."""

    name: str
    size: int | None = None
    sha256: str | None = None
    git_sha1: str | None = None


class Expected(Fact, frozen=True, kw_only=True):
    """All that one source states. `origin` names it for people."""

    kind: ClaimKind
    origin: str
    files: tuple[ExpectedFile, ...]
    repo_id: str | None = None
    #: A commit.
    revision: str | None = None


class Manifest(Fact, frozen=True, kw_only=True):
    """The hub's listing of one commit, for machines that cannot reach the hub: `ckpt-tui/manifest/1`."""

    schema: str
    tool: str
    repo_id: str
    #: A commit, never a branch.
    revision: str
    #: Seconds since the epoch at which the hub was asked, and where it was.
    fetched: float
    endpoint: str
    files: tuple[ExpectedFile, ...]
