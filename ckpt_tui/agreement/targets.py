"""Which segments to look into, and whom to ask for their bytes: of all differences, or of one place. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from ..facts.agreement import Stage, Standing
from ..facts.drill import DRILL_BYTES, LEAF
from ..facts.outcome import CkptError
from .descent import Target
from .elements import packed, width
from .judge import SIDES_COMPARED
from .tables import Key, Side, index_of, key_of, pieces, same, tensors_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..facts.agreement import Agreement, Difference, DifferingSegment
    from ..facts.files import Segment
    from .judge import Testimony


def targets(agreement: Agreement, testimonies: Sequence[Testimony], budget: int = DRILL_BYTES) -> tuple[Target, ...]:
    """The segments to look into: of each file the first, then of each the second, while the budget lasts."""
    spokesmen = _spokesmen(agreement, testimonies)
    queues = [_of_file(one, agreement, spokesmen, list(map(key_of, one.segments))) for one in agreement.differences]
    found: list[Target] = []
    for turn in zip_longest(*queues):
        for target in turn:
            if target is None:
                continue
            budget -= min(target.length, LEAF) if target.others else 0
            if budget < 0:
                return tuple(found)
            found.append(target)
    return tuple(found)


# --- one place that was asked for


def members(agreement: Agreement, testimonies: Sequence[Testimony]) -> dict[str, tuple[int, ...]]:
    """The sides of which anything is known below the verdict, and who may be asked for each: its whole group."""
    spokesmen = _spokesmen(agreement, testimonies)
    return {label: ranks for label, ranks in _sides(agreement) if label in spokesmen}


def lacking(agreement: Agreement, testimonies: Sequence[Testimony], file: str) -> bool:
    """Whether some side has not told its segments of a file, and could: they did not fit, or nobody asked."""
    difference = _difference(agreement, file)
    told = [one for label, one in _spokesmen(agreement, testimonies).items() if label in difference.groups]
    return agreement.stage is Stage.CONTENT and any(
        file not in one.segments and row.name == file and row.digest is not None
        for one in told
        for row in one.table or ()
    )


def completed(
    agreement: Agreement, testimonies: Sequence[Testimony], file: str, told: Mapping[str, tuple[Segment, ...]]
) -> list[Testimony]:
    """The testimonies with the segments of a file that the sides have told since, by their labels."""
    spokesmen = _spokesmen(agreement, testimonies)
    more = {spokesmen[label].fingerprint.rank: segments for label, segments in told.items() if label in spokesmen}
    return [
        replace(one, segments={**one.segments, file: more[one.fingerprint.rank]})
        if one.fingerprint.rank in more
        else one
        for one in testimonies
    ]


def differing(agreement: Agreement, testimonies: Sequence[Testimony], file: str) -> tuple[DifferingSegment, ...]:
    """All segments of a file that differ, bare, by their place. CkptError where they can't be held side by side."""
    _difference(agreement, file)
    told = list(_spokesmen(agreement, testimonies).items())[:SIDES_COMPARED]
    sides = [Side(label, one.fingerprint, index_of(one.table or ()), one.segments) for label, one in told]
    elsewhere = {side.label: tensors_by_name(side) for side in sides if side.segments}
    found = pieces(file, sides, elsewhere)
    if found is None:
        raise CkptError(f"{file}: its tensors are not known on two sides, or it is cut otherwise on each")
    return found.differing


def target_at(
    agreement: Agreement,
    testimonies: Sequence[Testimony],
    file: str,
    key: Key,
    *,
    at: int = 0,
    speakers: Mapping[str, int] | None = None,
) -> Target:
    """One segment to look into from byte `at` of it on; `speakers` are asked in place of who has told of a side.

    CkptError where there is nothing to look into.
    """
    difference = _difference(agreement, file)
    if agreement.stage is not Stage.CONTENT:
        raise CkptError(f"{file}: only headers were compared, and no tensor was read")
    target = next(_of_file(difference, agreement, _spokesmen(agreement, testimonies), [key]), None)
    if target is None:
        raise CkptError(f"{file}: has no such segment on any side")
    if not target.others and not target.unlike:
        raise CkptError(f"{file}: {key[1] or key[0].value} does not differ")
    if not 0 <= at < max(target.length, 1):
        raise CkptError(f"{file}: {key[1] or key[0].value} has {target.length:,} bytes, and none at {at:,}")
    dtype = target.places[target.reference].dtype
    whole = 3 if packed(dtype) == 6 else width(dtype) or 1  # four elements of 6 bits are three bytes
    return replace(target, at=at - at % whole, ranks={**target.ranks, **(speakers or {})})


def _difference(agreement: Agreement, file: str) -> Difference:
    found = next((one for one in agreement.differences if one.file == file), None)
    if found is None:
        raise CkptError(f"{file}: is not among the files that differ")
    return found


# --- who speaks for whom


def _sides(agreement: Agreement) -> list[tuple[str, tuple[int, ...]]]:
    """Every side by the label that the differences use, and its ranks."""
    sides = [(group.name, group.ranks) for group in agreement.groups]
    return sides + [(f"rank {report.rank}", (report.rank,)) for report in agreement.ranks if report.group is None]


def _spokesmen(agreement: Agreement, testimonies: Sequence[Testimony]) -> dict[str, Testimony]:
    """Who speaks for each side."""
    showing = {one.fingerprint.rank: one for one in testimonies if one.table is not None}
    return {label: showing[rank] for label, ranks in _sides(agreement) for rank in ranks[::-1] if rank in showing}


def _of_file(
    difference: Difference, agreement: Agreement, spokesmen: Mapping[str, Testimony], keys: Sequence[Key]
) -> Iterator[Target]:
    """What to look into of these segments of a file; the side that can be trusted is the reference."""
    if not keys:
        return
    trusted = {group.name for group in agreement.groups if group.standing in {Standing.RIGHT, Standing.MAJORITY}}
    sides = sorted((side for side in difference.groups if side in spokesmen), key=lambda side: side not in trusted)
    tables = {
        side: {key_of(segment): segment for segment in spokesmen[side].segments.get(difference.file, ())}
        for side in sides
    }
    ranks = {side: spokesmen[side].fingerprint.rank for side in sides}
    for key in keys:
        target = _target(difference.file, key, sides, tables, ranks)
        if target is not None:
            yield target


def _target(
    file: str,
    key: Key,
    sides: Sequence[str],
    tables: Mapping[str, Mapping[Key, Segment]],
    ranks: Mapping[str, int],
) -> Target | None:
    places = {side: tables[side][key] for side in sides if key in tables[side]}
    if not places:
        return None
    reference = next(iter(places))
    one = places[reference]
    differing = [side for side, other in places.items() if not same(one, other)]
    alike = [side for side in differing if (places[side].dtype, places[side].shape) == (one.dtype, one.shape)]
    # Where all of them end early there is a beginning to compare.
    others = [side for side in alike if places[side].length == one.length] or alike
    others = [side for side in others if places[side].digest != one.digest]
    unlike = [side for side in sides if side not in places or (side in differing and side not in others)]
    return Target(file, key, reference, tuple(others), tuple(unlike), places, ranks)
