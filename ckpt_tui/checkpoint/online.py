"""Asks the hub what the files of a commit should be: the one place that uses the network, and only when told to."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from ..facts.expected import MANIFEST_SCHEMA, ExpectedFile, Manifest
from ..facts.outcome import CkptError, UsageError
from ..facts.version import TOOL
from ..present.safe import escape
from .find import enclosing_snapshot, find, parse_repo_id
from .opening import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..facts.clock import Clock

#: Seconds within which the hub has to have answered everything: its client has no limit of its own.
PATIENCE = 60.0


class Source(NamedTuple):
    """Where on the hub files come from; `revision` is a commit or a branch."""

    repo_id: str | None
    revision: str | None


def source_of(target: str, hub_cache: str | None = None) -> Source:
    """Where a checkpoint comes from, by where it lies or by its name; what is not known is None.

    A repo id counts also where nothing of the repo is on this disk.
    """
    try:
        place = find(target, hub_cache)
    except UsageError:
        named = parse_repo_id(target)
        if named is None:
            raise
        return Source(*named)
    enclosing = enclosing_snapshot(place.path)
    if enclosing is not None:
        return Source(enclosing.repo_id, enclosing.revision)
    commits = set(_noted_commits(place.path if place.path.is_dir() else place.path.parent))
    return Source(None, commits.pop() if len(commits) == 1 else None)


def _noted_commits(root: Path) -> Iterator[str]:
    """The commits that `hf download --local-dir` noted beside the files."""
    for path in (root / ".cache" / "huggingface" / "download").glob("*.metadata"):
        try:
            yield read_file(path, 4096).partition(b"\n")[0].decode("ascii").strip()
        except (OSError, ValueError):
            continue


def fetch(repo_id: str, revision: str | None, clock: Clock) -> Manifest:
    """The hub's listing of a revision, by huggingface_hub. CkptError where the hub does not say, within `PATIENCE`."""
    answers: SimpleQueue[Manifest | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_ask(repo_id, revision, clock))
        except Exception as error:  # noqa: BLE001 - whatever the client raises, the answer is that there is none
            answers.put(error)

    threading.Thread(target=ask, name="hub", daemon=True).start()
    name = escape(repo_id) + (f"@{escape(revision)}" if revision else "")
    try:
        answer = answers.get(timeout=PATIENCE)
    except Empty:
        raise CkptError(f"{name}: the hub has not answered for {PATIENCE:.0f} s") from None
    if isinstance(answer, Exception):
        raise CkptError(f"{name}: the hub does not say: {_reason(answer)}") from answer
    return answer


def _ask(repo_id: str, revision: str | None, clock: Clock) -> Manifest:
    from huggingface_hub import HfApi

    api = HfApi()
    commit = api.model_info(repo_id, revision=revision, timeout=PATIENCE).sha
    if commit is None:
        raise ValueError("it names no commit")
    files = []
    for entry in api.list_repo_tree(repo_id, recursive=True, revision=commit):
        size = getattr(entry, "size", None)
        if size is not None:  # else a folder
            lfs = getattr(entry, "lfs", None)
            files.append(
                ExpectedFile(
                    name=escape(entry.path),
                    size=lfs.size if lfs else size,
                    sha256=lfs.sha256 if lfs else None,
                    git_sha1=None if lfs else getattr(entry, "blob_id", None),
                )
            )
    return Manifest(
        schema=MANIFEST_SCHEMA,
        tool=TOOL,
        repo_id=escape(repo_id),
        revision=escape(commit),
        fetched=clock.time(),
        endpoint=escape(api.endpoint),
        files=tuple(sorted(files, key=lambda file: file.name)),
    )


def _reason(error: Exception) -> str:
    """Why the hub does not say, on one line; the client's own texts are paragraphs."""
    from huggingface_hub import errors

    known: tuple[tuple[type[Exception], str], ...] = (
        (errors.GatedRepoError, "the repo is gated, and this token has no access to it"),
        (errors.RepositoryNotFoundError, "no such repo, or one that this token may not see"),
        (errors.RevisionNotFoundError, "no such revision"),
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE is set"),
    )
    for kind, words in known:
        if isinstance(error, kind):
            return words
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {escape(first)}"
