"""Right bytes in the wrong place: a file or a tensor that holds what another side has under another name. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.agreement import CauseCode
from ..facts.files import SegmentKind
from .scene import Finding, Scene

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .tables import FileDifference, Pieces, Side

#: Shorter tensors are equal too often: ones, zeros, counters.
_TELLING = 64


def swapped_file(found: FileDifference, scene: Scene) -> Finding | None:
    """A weight file whose bytes another side has under another name."""
    for side, other in _couples(scene, found):
        row, own = side.table[found.name], other.table[found.name]
        twin = _twin(row.digest, found.name, scene.files[other.label])
        if row.digest is None or own.digest == row.digest or twin is None:
            continue
        back = side.table.get(twin)
        exchanged = back is not None and back.digest == own.digest
        summary = f"{found.name} and {twin} are swapped" if exchanged else f"the bytes of {twin} under this name"
        facts = [f"{side.label} holds here what {other.label} has as {twin}"]
        return Finding(CauseCode.RESHARDED if exchanged else CauseCode.TENSOR_REPLACED, summary, facts)
    return None


def _couples(scene: Scene, found: FileDifference) -> list[tuple[Side, Side]]:
    """Sides that have the file, each with each; first the blamed ones, of which something is to be said."""
    having = [side for side in scene.sides if found.name in side.table]
    having.sort(key=lambda side: side.label not in scene.blamed)
    # Of sides on a par the later is told by the earlier, as everywhere.
    ordered = having if scene.blamed else having[::-1]
    return [(one, other) for one in ordered for other in having if one is not other]


def _twin(digest: str | None, name: str, by_digest: Mapping[str, Sequence[str]]) -> str | None:
    """Another name for the same bytes."""
    return next((twin for twin in by_digest.get(digest or "", ()) if twin != name), None)


def swapped_tensors(found: FileDifference, parts: Pieces, scene: Scene) -> Finding | None:
    """Every tensor that differs holds what another side has under another tensor's name."""
    names = {one.name for one in parts.differing if one.kind is SegmentKind.TENSOR}
    if not names or parts.header:
        return None
    telling = {side.label: _telling(side, found.name, names) for side in scene.sides}
    for side, other in _couples(scene, found):
        if found.name not in side.segments or found.name not in other.segments:
            continue
        held = telling[side.label]
        by_digest = scene.names[other.label]
        if held.keys() != names or not all(digest in by_digest for digest in held.values()):
            continue
        twins = {name: by_digest[digest] for name, digest in held.items() if by_digest[digest] != name}
        if not twins:
            continue
        name, twin = min(twins.items())
        summary = f"{name} and {twin} are swapped" if twins.get(twin) == name else f"{name} holds what is {twin}'s"
        more = f", and {len(twins) - 2:,} more" if len(twins) > 2 else ""
        facts = [f"{side.label} holds as {name} what {other.label} has as {twin}{more}"]
        return Finding(CauseCode.TENSOR_REPLACED, summary, facts)
    return None


def _telling(side: Side, file: str, names: Collection[str]) -> dict[str, str]:
    """The digests of those of a file's tensors that are long enough to be told by them."""
    return {s.name: s.digest for s in side.segments.get(file, ()) if s.name in names and s.length >= _TELLING}
