"""Digests and sizes that somebody else has stated of these files, as they lie on this disk. Nothing is asked online.

- `hub-blob`: the name of the repo-level blob in a hub cache, 64 hex digits of sha256 or 40 of git's sha1. Never the
  name that `realpath` gives: a blob may be a link into a store shared between repos, whose names are other hashes.
- `hub-tree`: the hub's own listing of a commit, `trees/<commit>.json`; sizes too, so that a short file is known unread.
- `download-metadata`: what `hf download --local-dir` noted beside the files, good while a file is no newer than it.
- `git-lfs`: the object that a clone keeps for a file, good while the file is as git last saw it.
- what is stated in files (`facts.expected`): checksum files and signing manifests beside the checkpoint, and whatever
  was handed over to be expected.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..facts.expected import ClaimKind
from ..facts.files import Claim, Severity, State
from ..present.safe import escape
from .find import enclosing_snapshot
from .gitlfs import tracked_files
from .names import inside
from .opening import NOT_THERE, denied, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..facts.expected import Expected, ExpectedFile
    from .findings import Findings

_ALGORITHMS = ((r"[0-9a-f]{64}", "sha256"), (r"[0-9a-f]{40}", "git-sha1"))
_COMMIT = r"[0-9a-f]{40}"
_OF_THE_HUB = {ClaimKind.HUB_MANIFEST, ClaimKind.HUB_ONLINE}
_REPO_BLOBS = r"(?s).*/(?:models|datasets|spaces)--[^/]+/blobs"
_HOPS = 16
_TREE_LIMIT = 64 << 20
_METADATA_LIMIT = 4096


class Size(NamedTuple):
    """How long a file is by somebody's record."""

    bytes: int
    origin: str


class Recorded(NamedTuple):
    """All that is on record of one file that is there. The claims are not checked yet."""

    claims: tuple[Claim, ...] = ()
    sizes: tuple[Size, ...] = ()


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

    def __init__(self, root: Path, findings: Findings, statements: Sequence[Expected] = ()) -> None:
        self._root = root
        self._findings = findings
        self._trees: dict[Path, dict[str, _Entry]] = {}
        enclosing = enclosing_snapshot(root)
        self._repo = enclosing.repo if enclosing else None
        self._commit = enclosing.revision if enclosing else ""
        self._prefix = f"{enclosing.within}/" if enclosing and enclosing.within else ""
        self._local = self._root / ".cache" / "huggingface"
        self._downloaded = self._repo is None and self._notes_downloads()
        self._tracked = {} if self._repo or self._downloaded else tracked_files(root)
        self._stated: dict[str, list[tuple[ExpectedFile, Expected]]] = {}
        for one in statements:
            for file in self.named_in(one):
                self._stated.setdefault(file[0], []).append((file[1], one))
        #: The hub's repo and the commits that the files are known to come from.
        self.repo_id = enclosing.repo_id if enclosing else None
        self.commits = {self._commit} if re.fullmatch(_COMMIT, self._commit) else set[str]()

    def of(self, name: str) -> Recorded:
        """All that is on record of a file that is there."""
        claims: list[Claim] = []
        sizes: list[Size] = []
        etag = blob_name(self._root / name, self._repo)
        if etag is not None:
            claims += _claim(ClaimKind.HUB_BLOB, etag, "the name of its blob in the hub cache")
        if self._repo is not None:
            self._add_tree(claims, sizes, self._repo, self._commit, self._prefix + name)
        elif self._downloaded:
            self._add_download(claims, sizes, name)
        else:
            self._add_git(claims, sizes, name)
        for file, source in self._stated.get(escape(name), ()):
            claims += _claims(file, source)
            if file.size is not None:
                sizes.append(Size(file.size, source.origin))
        return Recorded(tuple(claims), tuple(sizes))

    def named_in(self, source: Expected) -> Iterator[tuple[str, ExpectedFile]]:
        """The files of a statement by their names below the root; the hub's are named from the top of its repo."""
        prefix = escape(self._prefix) if source.kind in _OF_THE_HUB else ""
        return ((file.name.removeprefix(prefix), file) for file in source.files if file.name.startswith(prefix))

    def listed(self) -> Iterator[tuple[str, str]]:
        """Every file of the hub's own listing of the snapshot or the download, and the listing's origin."""
        folder, commit = self._listing()
        for name in self._tree(folder, commit):
            raw = name.encode("utf-8", "surrogatepass")
            if name.startswith(self._prefix) and inside(raw) == raw:
                yield name.removeprefix(self._prefix), _tree_name(commit)

    def expected(self, name: str) -> tuple[str, Size] | None:
        """Blob name and size of a file that is not there, by the hub's listing of the snapshot or the download."""
        folder, commit = self._listing()
        entry = self._tree(folder, commit).get(self._prefix + name)
        return (entry.etag, Size(entry.length, _tree_name(commit))) if entry else None

    def unfinished(self, name: str, etag: str | None) -> tuple[Path, str] | None:
        """Where a download of this file, of this blob, would lie before it is done: a folder, and how names begin."""
        if self._repo:
            return (self._repo / "blobs", f"{etag}.") if etag else None
        if not self._downloaded:
            return None
        folder, _, last = name.rpartition("/")
        digest = hashlib.sha1(f"{last}.metadata".encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        return self._local / "download" / folder, f"{base64.urlsafe_b64encode(digest).decode()}."

    def blob(self, etag: str) -> Path | None:
        """Where the hub cache keeps a blob of this name, whether or not it is there."""
        return self._repo / "blobs" / etag if self._repo else None

    def _notes_downloads(self) -> bool:
        """Whether the hub's client noted here what it downloaded, as far as one may look."""
        try:
            return stat.S_ISDIR((self._local / "download").stat().st_mode)
        except OSError as error:
            if error.errno not in NOT_THERE:
                words = f"{denied(self._local, error)}; nothing is checked against what is noted there"
                self._findings.add("record-unreadable", Severity.NOTE, f".cache/huggingface: {words}")
            return False

    def _listing(self) -> tuple[Path, str]:
        """Where the hub's listing lies, and of which commit; of a download that left one listing, of that."""
        if self._repo:
            return self._repo, self._commit
        commits: list[str] = []
        if self._downloaded:
            with suppress(OSError):
                commits = [path.stem for path in (self._local / "trees").iterdir() if path.suffix == ".json"]
        return self._local, commits[0] if len(commits) == 1 else ""

    def _add_download(self, claims: list[Claim], sizes: list[Size], name: str) -> None:
        noted = self._metadata(name)
        if noted is None:
            return
        commit, etag = noted
        if re.fullmatch(_COMMIT, commit):
            self.commits.add(commit)
        claims += _claim(ClaimKind.DOWNLOAD, etag, f".cache/huggingface/download/{escape(name)}.metadata")
        self._add_tree(claims, sizes, self._local, commit, name)

    def _add_tree(self, claims: list[Claim], sizes: list[Size], folder: Path, commit: str, path: str) -> None:
        entry = self._tree(folder, commit).get(path)
        if entry is not None:
            origin = _tree_name(commit)
            claims += _claim(ClaimKind.HUB_TREE, entry.etag, origin)
            sizes.append(Size(entry.length, origin))

    def _add_git(self, claims: list[Claim], sizes: list[Size], name: str) -> None:
        tracked = self._tracked.get(name)
        if tracked is not None and self._is_older(name, tracked.seconds, "git saw it"):
            claims += _claim(ClaimKind.GIT_LFS, tracked.oid, "git-lfs")
            sizes.append(Size(tracked.size, "git-lfs"))

    def _tree(self, folder: Path, commit: str) -> dict[str, _Entry]:
        if not re.fullmatch(_COMMIT, commit):
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


def check_size(size: int, recorded: Iterable[Size]) -> tuple[State, str] | None:
    """The state of a file that has not a size that is on record."""
    for one in recorded:
        if size != one.bytes:
            state = State.TRUNCATED if size < one.bytes else State.OVERLONG
            return state, f"{size:,} bytes, and {one.origin} records {one.bytes:,}"
    return None


def contradictions(recorded: Recorded) -> Iterator[str]:
    """Where one record of a file cannot be true if another is, in words."""
    stated: dict[str, dict[str, str]] = {}
    for claim in recorded.claims:
        stated.setdefault(claim.algorithm, {}).setdefault(claim.expected, claim.origin)
    for size in recorded.sizes:
        stated.setdefault("size", {}).setdefault(f"{size.bytes:,}", size.origin)
    for what, values in stated.items():
        if len(values) > 1:
            said = " and ".join(f"{value[:12]} by {origin}" for value, origin in values.items())
            yield f"the records of its {what} contradict each other: {said}"


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
        if folder == blobs or re.fullmatch(_REPO_BLOBS, folder):
            return name
        place = Path(folder, name)
    return None


def _tree_name(commit: str) -> str:
    return f"the hub's listing (trees/{commit[:12]}….json)"


def _claim(kind: ClaimKind, expected: str, origin: str) -> list[Claim]:
    for pattern, algorithm in _ALGORITHMS:
        if re.fullmatch(pattern, expected):
            return [Claim(kind=kind.value, algorithm=algorithm, expected=expected, holds=None, origin=origin)]
    return []


def _claims(file: ExpectedFile, source: Expected) -> list[Claim]:
    return [
        claim
        for digest in (file.sha256, file.git_sha1)
        if digest is not None
        for claim in _claim(source.kind, digest, source.origin)
    ]
