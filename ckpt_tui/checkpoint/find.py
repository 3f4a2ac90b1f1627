"""What was named: a folder, a file, a place in the hub cache, or a repo id that lies in it. Nothing is downloaded."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from ..facts.outcome import CkptError, UsageError
from ..facts.scan import CheckpointKind
from ..present.safe import escape
from .names import INDEX, OPAQUE, SAFETENSORS
from .opening import NOT_THERE, denied, read_file

_REPO_ID = r"(?a)([\w.-]+(?:/[\w.-]+)?)(?:@(.+))?"
_REPO_FOLDER = r"(?s)(?:models|datasets|spaces)--(.+)"
_COMMIT = r"[0-9a-f]{40}"
_SNAPSHOTS = "snapshots"


class Place(NamedTuple):
    """Where a checkpoint lies. `path` is a folder, or a regular file when `kind` says so."""

    path: Path
    kind: CheckpointKind
    repo_id: str | None = None
    revision: str | None = None
    #: The hub repo's folder, where the place is a snapshot or lies in one.
    repo: Path | None = None


def find(target: str, hub_cache: str | None = None) -> Place:
    """What the words on the command line name; UsageError where that is nothing that can be checked."""
    if not target or "\0" in target:
        raise UsageError(f"{escape(target) or 'an empty name'}: no path and no repo id")
    path = Path(os.path.abspath(target))  # noqa: PTH100 - `resolve` would follow links
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno not in {*NOT_THERE, errno.ELOOP}:
            raise CkptError(f"{escape(target)}: {denied(path, error)}") from None
        if os.path.islink(path):  # noqa: PTH114 - answers False where Path would raise
            raise UsageError(f"{escape(target)}: a link to nothing: {escape(str(path.readlink()))}") from None
        return _in_cache(target, hub_cache)
    if stat.S_ISDIR(mode):
        return _folder(path)
    if not stat.S_ISREG(mode):
        raise UsageError(f"{escape(target)}: neither a folder nor a regular file")
    return _file(path)


class Enclosing(NamedTuple):
    """The snapshot of a hub cache in which a path lies."""

    repo: Path
    revision: str
    #: The path relative to the snapshot, empty for the snapshot itself.
    within: str

    @property
    def repo_id(self) -> str:
        """The repo's id on the hub."""
        return _repo_id(self.repo)


def enclosing_snapshot(path: Path) -> Enclosing | None:
    """The snapshot that a path is or lies in, by its own name or by where its links lead."""
    for known in (path, Path(os.path.realpath(path))):
        for place in (known, *known.parents):
            repo = place.parent.parent
            if place.parent.name == _SNAPSHOTS and re.fullmatch(_REPO_FOLDER, repo.name):
                return Enclosing(repo, place.name, "/".join(known.relative_to(place).parts))
    return None


def _file(path: Path) -> Place:
    if path.name.endswith(INDEX):
        raise UsageError(f"{escape(str(path))}: an index; name its folder, {escape(str(path.parent))}")
    if not path.name.lower().endswith((SAFETENSORS, *OPAQUE)):
        endings = " ".join((SAFETENSORS, *OPAQUE))
        raise UsageError(f"{escape(str(path))}: no weight file ({endings}) and no folder")
    return Place(path, CheckpointKind.FILE)


def _folder(path: Path) -> Place:
    repo_name = re.fullmatch(_REPO_FOLDER, path.name)
    if repo_name and _is_dir(path / _SNAPSHOTS):
        return _snapshot(path, _repo_id(path), None)
    enclosing = enclosing_snapshot(path)
    if enclosing is None:
        cached = _cached_repos(path)
        if cached:
            raise UsageError(f"{escape(str(path))}: a hub cache; name one of its repos: {_some(cached)}")
        return Place(path, CheckpointKind.FOLDER)
    repo, revision, within = enclosing
    if within:
        return Place(path, CheckpointKind.FOLDER, repo=repo)
    return Place(path, CheckpointKind.HUB_SNAPSHOT, escape(_repo_id(repo)), escape(revision), repo)


def parse_repo_id(target: str) -> tuple[str, str | None] | None:
    """Repo id and revision of `org/name[@revision]`; None for anything else."""
    match = re.fullmatch(_REPO_ID, target)
    return None if match is None or target.startswith((".", "~")) else (match[1], match[2])


def _in_cache(target: str, hub_cache: str | None) -> Place:
    named = parse_repo_id(target)
    if named is None:
        raise UsageError(f"{escape(target)}: no such file or folder")
    if hub_cache is None:
        from huggingface_hub import constants

        hub_cache = constants.HF_HUB_CACHE
    repo_id, revision = named
    repo = Path(hub_cache) / f"models--{repo_id.replace('/', '--')}"
    if not _is_dir(repo / _SNAPSHOTS):
        raise UsageError(
            f"{escape(target)}: no such file or folder, and no repo of that name in the hub cache "
            f"({escape(str(hub_cache))}); nothing is downloaded: `hf download {escape(repo_id)}` does that"
        )
    return _snapshot(repo, repo_id, revision)


def _snapshot(repo: Path, repo_id: str, revision: str | None) -> Place:
    commit = _commit(repo, repo_id, revision)
    path = repo / _SNAPSHOTS / commit
    if not _is_dir(path):
        held = _some(_snapshots(repo)) or "none"
        raise UsageError(f"{escape(repo_id)}: revision {commit} is not in the hub cache; snapshots there: {held}")
    return Place(path, CheckpointKind.HUB_SNAPSHOT, escape(repo_id), commit, repo)


def _commit(repo: Path, repo_id: str, revision: str | None) -> str:
    """The commit that a revision means here: itself, what `refs/` says, or the only snapshot when none was named."""
    wanted = revision or "main"
    if re.fullmatch(_COMMIT, wanted):
        return wanted
    ref = Path("refs", *wanted.split("/"))
    if ".." not in ref.parts and not wanted.startswith("/"):
        try:
            text = read_file(repo / ref, 1024).decode("ascii", "replace").strip()
        except OSError:
            text = ""
        if re.fullmatch(_COMMIT, text):
            return text
        if text:
            raise UsageError(f"{escape(repo_id)}: {escape(str(ref))} in the hub cache holds no commit: {escape(text)}")
    held = _snapshots(repo)
    if revision is None and len(held) == 1:
        return held[0]
    raise UsageError(
        f"{escape(repo_id)}: the hub cache knows no revision {escape(wanted)}; snapshots there: {_some(held) or 'none'}"
    )


def _snapshots(repo: Path) -> list[str]:
    try:
        return sorted(path.name for path in (repo / _SNAPSHOTS).iterdir() if re.fullmatch(_COMMIT, path.name))
    except OSError:
        return []


def _is_dir(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - answers False where Path would raise


def _repo_id(repo: Path) -> str:
    match = re.fullmatch(_REPO_FOLDER, repo.name)
    return match[1].replace("--", "/") if match else repo.name


def _cached_repos(path: Path) -> list[str]:
    try:
        names = sorted(entry.name for entry in path.iterdir() if entry.name.startswith("models--"))
    except OSError as error:
        raise CkptError(f"{escape(str(path))}: {denied(path, error)}") from None
    return [_repo_id(path / name) for name in names if _is_dir(path / name / _SNAPSHOTS)]


def _some(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(escape, names[:most])) + more
