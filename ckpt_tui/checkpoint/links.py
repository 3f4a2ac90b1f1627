"""Links that lead out of a checkpoint: a farm of links to another disk is normal, a single odd one is refused."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ..facts.files import Severity, State
from ..present.safe import escape
from ..present.units import count
from .findings import some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .find import Place
    from .findings import Findings
    from .opening import Look

_BLOB = r"(?s).*/blobs/(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{2}/[0-9a-f]{64})"


def judge_links(place: Place, weights: Sequence[str], looks: dict[str, Look], findings: Findings) -> None:
    """Mark what leads out of the checkpoint's folder (a snapshot's repo) as `outside`, or warn of a farm of links.

    A link out is followed, with a warning, where it keeps the file's name, leads to a blob of a hub cache, or where
    every weight file is such a link. What remains is one odd link among files: it is never opened.
    """
    inside = _inside(place)
    out = {
        name: found.real
        for name, found in looks.items()
        if found.state is State.GOOD and found.real is not None and not found.real.startswith(inside)
    }
    there = [name for name in weights if looks[name].state is State.GOOD]
    farm = bool(there) and all(name in out for name in there)
    followed = []
    for name, real in out.items():
        if farm or real.rpartition("/")[2] == name.rpartition("/")[2] or re.fullmatch(_BLOB, real):
            followed.append(name)
        else:
            words = f"a link out of the checkpoint, to {escape(real)}; not followed"
            looks[name] = looks[name]._replace(state=State.OUTSIDE, error=words)
    if followed:
        where = some(sorted({out[name].rpartition("/")[0] for name in followed}), 3)
        message = f"{count(len(followed), 'file is', 'files are')} links out of the checkpoint, to {where}: followed"
        findings.add("links-out", Severity.WARNING, message)


def _inside(place: Place) -> tuple[str, ...]:
    """Prefixes of real paths that count as the checkpoint's own: its folder; a hub repo and its cache's blob store."""
    roots = [place.path]
    if place.repo is not None:
        roots += [place.repo, place.repo.parent / "blobs"]
    return tuple(os.path.realpath(root).rstrip("/") + "/" for root in roots)
