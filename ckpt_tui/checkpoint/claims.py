"""Digests and sizes that somebody else has stated of these files, as they lie on this disk. Nothing is asked online.

- `hub-blob`: the name of the repo-level blob in a hub cache, 64 hex digits of sha256 or 40 of git's sha1. Never the
  name that `realpath` gives: a blob may be a link into a store shared between repos, whose names are other hashes.
- `hub-tree`: the hub's own listing of a commit, `trees/<commit>.json`; sizes too, so that a short file is known unread.
- `download-metadata`: what `hf download --local-dir` noted beside the files, good while a file is no newer than it.
- `git-lfs`: the object that a clone keeps for a file, good while the file is as git last saw it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..facts.files import Claim, Severity, State
from ..present.safe import escape
from .find import enclosing_snapshot
from .gitlfs import tracked_files
from .opening import read_file

if TYPE_CHECKING:
    from .findings import Findings

_ALGORITHMS = ((re.compile(r"[0-9a-f]{64}"), "sha256"), (re.compile(r"[0-9a-f]{40}"), "git-sha1"))
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPO_BLOBS = re.compile(r"(?s).*/(?:models|datasets|spaces)--[^/]+/blobs")
_HOPS = 16
_TREE_LIMIT = 64 << 20
_METADATA_LIMIT = 4096


class Size(NamedTuple):
    """How long a file is by somebody's record."""

    bytes: int
    origin: str


class _Entry(msgspec.Struct):
    size: int
    blob_id: str
    lfs_sha256: str | None = None
    lfs_size: int | None = None

    @property
    def etag(self) -> str:
        return self.lfs_sha256 or self.blob_id

    @property
    def length(self) -> int:
        return self.size if self.lfs_size is None else self.lfs_size


class _Tree(msgspec.Struct):
    format_version: int
    files: dict[str, _Entry]


class Records:
    """What is stated of the files below one folder. Names are relative to its root."""

    def __init__(self, root: Path, findings: Findings) -> None:
        self._root = root
        self._findings = findings
        self._trees: dict[Path, dict[str, _Entry]] = {}
        enclosing = enclosing_snapshot(root)
        self._repo = enclosing.repo if enclosing else None
        self._commit = enclosing.revision if enclosing else ""
        self._prefix = f"{enclosing.within}/" if enclosing and enclosing.within else ""
        self._local = self._root / ".cache" / "huggingface"
        self._downloaded = self._repo is None and (self._local / "download").is_dir()
        self._tracked = {} if self._repo or self._downloaded else tracked_files(root)

    def of(self, name: str) -> tuple[tuple[Claim, ...], Size | None]:
        """The claims on a file that is there, not checked yet, and its recorded size."""
        claims: list[Claim] = []
        etag = blob_name(self._root / name, self._repo)
        if etag is not None:
            claims += _claim("hub-blob", etag, "the name of its blob in the hub cache")
        if self._repo is not None:
            return self._with_tree(claims, self._repo, self._commit, self._prefix + name)
        noted = self._metadata(name) if self._downloaded else None
        if noted is None:
            return self._with_git(claims, name)
        commit, etag = noted
        claims += _claim("download-metadata", etag, f".cache/huggingface/download/{escape(name)}.metadata")
        return self._with_tree(claims, self._local, commit, name)

    def expected(self, name: str) -> tuple[str, Size] | None:
        """Blob name and size of a file that is not there, by the hub's listing of a snapshot."""
        entry = self._tree(self._repo, self._commit).get(self._prefix + name) if self._repo else None
        return (entry.etag, Size(entry.length, _tree_name(self._commit))) if entry else None

    def blob(self, etag: str) -> Path | None:
        """Where the hub cache keeps a blob of this name, whether or not it is there."""
        return self._repo / "blobs" / etag if self._repo else None

    def _with_tree(
        self, claims: list[Claim], folder: Path, commit: str, path: str
    ) -> tuple[tuple[Claim, ...], Size | None]:
        entry = self._tree(folder, commit).get(path)
        if entry is None:
            return tuple(claims), None
        origin = _tree_name(commit)
        return (*claims, *_claim("hub-tree", entry.etag, origin)), Size(entry.length, origin)

    def _with_git(self, claims: list[Claim], name: str) -> tuple[tuple[Claim, ...], Size | None]:
        tracked = self._tracked.get(name)
        if tracked is None:
            return tuple(claims), None
        if not self._is_older(name, tracked.seconds, "git saw it"):
            return tuple(claims), None
        return (*claims, *_claim("git-lfs", tracked.oid, "git-lfs")), Size(tracked.size, "git-lfs")

    def _tree(self, folder: Path, commit: str) -> dict[str, _Entry]:
        if not _COMMIT.fullmatch(commit):
            return {}
        path = folder / "trees" / f"{commit}.json"
        if path not in self._trees:
            self._trees[path] = self._read_tree(path)
        return self._trees[path]

    def _read_tree(self, path: Path) -> dict[str, _Entry]:
        try:
            tree = msgspec.json.decode(read_file(path, _TREE_LIMIT), type=_Tree)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, RecursionError):
            message = f"trees/{escape(path.name)}: the hub's listing cannot be read, so nothing is checked against it"
            self._findings.add("record-unreadable", Severity.NOTE, message)
            return {}
        return tree.files if tree.format_version == 1 else {}

    def _metadata(self, name: str) -> tuple[str, str] | None:
        """Commit and etag that a download noted; None where the file was written since, as the hub's client asks."""
        path = self._local / "download" / f"{name}.metadata"
        try:
            commit, etag, stamp = read_file(path, _METADATA_LIMIT).decode("ascii").split("\n")[:3]
            stamped = float(stamp)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            message = f"{escape(name)}: the note of its download cannot be read"
            self._findings.add("record-unreadable", Severity.NOTE, message, file=escape(name))
            return None
        return (commit.strip(), etag.strip()) if self._is_older(name, stamped, "its download") else None

    def _is_older(self, name: str, stamp: float, event: str) -> bool:
        """Whether a file was written no later than the record of it; the second between is the hub client's own."""
        try:
            if (self._root / name).stat().st_mtime - 1 <= stamp:
                return True
        except OSError:
            return False
        message = f"{escape(name)}: written again after {event}, so the hash recorded then says nothing"
        self._findings.add("record-stale", Severity.NOTE, message, file=escape(name))
        return False


def check_size(size: int, recorded: Size) -> tuple[State, str] | None:
    """The state of a file that has not the size that is on record."""
    if size == recorded.bytes:
        return None
    state = State.TRUNCATED if size < recorded.bytes else State.OVERLONG
    return state, f"{size:,} bytes, and {recorded.origin} records {recorded.bytes:,}"


def blob_name(path: Path, repo: Path | None = None) -> str | None:
    """The name of the repo-level blob that a chain of links passes through; None where it passes through none."""
    blobs = os.path.realpath(repo / "blobs") if repo else None
    place = path
    for _ in range(_HOPS):
        try:
            target = str(place.readlink())
        except OSError:
            return None
        folder, _, name = target.rpartition("/")
        folder = os.path.realpath(place.parent / (folder or "/" * target.startswith("/")))
        if folder == blobs or _REPO_BLOBS.fullmatch(folder):
            return name
        place = Path(folder, name)
    return None


def _tree_name(commit: str) -> str:
    return f"the hub's listing (trees/{commit[:12]}….json)"


def _claim(kind: str, expected: str, origin: str) -> list[Claim]:
    for pattern, algorithm in _ALGORITHMS:
        if pattern.fullmatch(expected):
            return [Claim(kind=kind, algorithm=algorithm, expected=expected, holds=None, origin=origin)]
    return []
