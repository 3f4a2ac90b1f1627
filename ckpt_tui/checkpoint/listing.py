"""The names in a checkpoint's folders: never what lies behind a link to a folder, never more than a bound."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Iterator, Set
    from pathlib import Path

#: Beyond this many folders the search for weights that nobody named stops, and says so.
MOST_FOLDERS = 500
#: How deep below the root that search goes.
MOST_LEVELS = 4


class Folder(Struct):
    """One folder: its files' names and its subfolders' names, in order, as Python decodes them."""

    #: Relative to the root, `/` between parts, empty for the root itself.
    name: str
    files: list[str] = field(default_factory=list)
    subfolders: list[str] = field(default_factory=list)

    def path(self, name: str) -> str:
        """A name in this folder, relative to the root."""
        return f"{self.name}/{name}" if self.name else name


def list_folder(root: Path, name: str = "", *, links: bool = True) -> Folder:
    """The names in one folder; OSError where it cannot be listed. With `links`, a link to a folder is a subfolder."""
    folder = Folder(name)
    with os.scandir(root / name) as entries:
        for entry in entries:
            (folder.subfolders if _is_folder(entry, links) else folder.files).append(entry.name)
    folder.files.sort()
    folder.subfolders.sort()
    return folder


def _is_folder(entry: os.DirEntry[str], links: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=links)
    except OSError:
        return False


class TooMany(Exception):
    """The search was given up; what was found so far is not all."""


def walk(root: Path, top: Folder, skip: Set[str], unread: list[str]) -> Iterator[Folder]:
    """The folders below the top but those in `skip`, without hidden ones and links; TooMany where the bound is met.

    The names of folders that cannot be listed are added to `unread`.
    """
    waiting = [(1, top.path(name)) for name in reversed(top.subfolders)]
    seen = 0
    while waiting:
        level, name = waiting.pop()
        if name.rpartition("/")[2].startswith("."):
            continue
        seen += 1
        if seen > MOST_FOLDERS:
            raise TooMany
        try:
            if (root / name).is_symlink():
                continue
            folder = list_folder(root, name, links=False)
        except OSError:
            unread.append(name)
            continue
        if name not in skip:
            yield folder
        below = [(level + 1, folder.path(sub)) for sub in reversed(folder.subfolders)]
        if level < MOST_LEVELS:
            waiting += below
        elif below:
            raise TooMany
