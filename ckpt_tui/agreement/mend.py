"""The command that would mend a copy: to be read, pasted and run by a human, never by us. Pure.

There is one only where a copy is known to be the bad one, and only for names that the shell and the command take as
they are: a name that had to be escaped to be shown has no command.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ..facts.agreement import CauseCode
from ..facts.files import State

if TYPE_CHECKING:
    from ..facts.agreement import Fingerprint
    from .scene import Finding, Scene
    from .tables import FileDifference, Side

#: What no fresh copy of the file mends, or may not.
_NONE = frozenset(
    {
        CauseCode.EXTRA,
        CauseCode.UNREADABLE,
        CauseCode.CHANGED,
        CauseCode.UNSTABLE_READ,
        CauseCode.SAME_FILE_READ_DIFFERENTLY,
    }
)
#: What one file from another copy does not mend: the whole copy is of another make.
_NOT_BY_FILE = frozenset({CauseCode.OTHER_REVISION, CauseCode.RESHARDED, CauseCode.EVERYTHING_DIFFERS})
#: What git-lfs takes for patterns or for a list.
_GIT_SPECIAL = frozenset("*?[],!#")


def mend(found: FileDifference, finding: Finding, scene: Scene) -> str:
    """The command, on the host of the copy that is bad; '' where none is sure to be right."""
    bad = scene.blamed & found.rows.keys() or finding.culprits
    if finding.code in _NONE or not bad or not _plain(found.name):
        return ""
    # Of several the one whose fault the cause names.
    one = (finding.culprits & bad) or bad
    side = next((side for side in scene.sides if side.label in one), None)
    if side is None:
        return ""
    if finding.code is CauseCode.LFS_POINTER:
        return _from_git(found.name, side.member)
    if side.member.repo_id is not None and side.member.revision is not None:
        return _from_hub(found.name, side.member)
    good = next((other for other in scene.sides if other.label not in bad and _has(other, found.name)), None)
    return "" if good is None or finding.code in _NOT_BY_FILE else _from_copy(found.name, good.member, side.member)


def _has(side: Side, name: str) -> bool:
    row = side.table.get(name)
    return row is not None and row.state is State.GOOD and row.recorded is not False


def _plain(name: str) -> bool:
    """Whether a name is shown as it is, and cannot be taken for an option."""
    return "\\" not in name and not name.startswith("-")


def _from_hub(name: str, bad: Fingerprint) -> str:
    words = ("hf", "download", bad.repo_id or "", name, "--revision", bad.revision or "", "--force-download")
    return shlex.join(words)


def _from_git(name: str, bad: Fingerprint) -> str:
    if not _plain(bad.path):
        return "git lfs pull"
    if _GIT_SPECIAL & set(name):
        return shlex.join(("git", "-C", bad.path, "lfs", "pull"))
    return shlex.join(("git", "-C", bad.path, "lfs", "pull", "--include", name))


def _from_copy(name: str, good: Fingerprint, bad: Fingerprint) -> str:
    """`cp` on one host; between hosts rsync, which compares by bytes and not by the times that damage leaves alone."""
    source, target = _path(good, name), _path(bad, name)
    if not (_plain(source) and _plain(target) and _plain(good.host)):
        return ""
    if good.host == bad.host:
        # What lies there may be a link to a file that others use.
        return shlex.join(("cp", "--remove-destination", source, target))
    safe = () if source == shlex.quote(source) else ("-s",)
    return shlex.join(("rsync", "--checksum", *safe, f"{good.host}:{source}", target))


def _path(side: Fingerprint, name: str) -> str:
    """Where a file lies; what was named may be the file itself."""
    itself = side.path.rsplit("/", 1)[-1] == name
    return side.path if itself else f"{side.path.rstrip('/')}/{name}"
