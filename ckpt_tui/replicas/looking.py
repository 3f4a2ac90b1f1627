"""Into the bytes of tensors that differ, as for files: leaves' digests first, then the leaves that differ.

Collective. Only the spokesmen of sides send anything, and no more than a budget of bytes each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..agreement.descent import Look, Target, examine, plan
from ..agreement.tables import make_key
from ..digest.ranges import has_digest, is_zeros
from ..facts.files import Segment, SegmentKind
from .digests import LEAF
from .hashing import default_threads, leaves_of
from .kinds import Algorithm
from .messages import BadMessage, PartSide, decode, encode, shown_name
from .pieces import taken
from .values import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..agreement.descent import Leaves, Window
    from ..agreement.tables import Key
    from .holding import Holding
    from .judging import Case, Drills, Found
    from .tables import Line
    from .tensors import Part

    #: Exchanges bytes with all ranks: what each gave, by global rank. The text names the step.
    Gather = Callable[[bytes, str], Mapping[int, bytes]]

T = TypeVar("T")

#: Differing tensors that are looked into.
LOOKED_INTO = 8
#: Bytes that go around at once.
_ROUND = 8 << 20
#: The dtypes that have a value to show, as checkpoint files call them.
_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL", "complex64": "C64",
    "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32", "uint64": "U64",
    "int64": "I64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip


def look(case: Case, holding: Holding | None, rank: int, gather: Gather, budget: int) -> Drills:
    """What the bytes of the first tensors that differ tell, by the difference's name and the tensor's."""
    wanted = [(found, line.name) for found in case.found for line in found.laid.differing if _comparable(line)]
    wanted = wanted[:LOOKED_INTO]
    if not wanted:
        return {}
    mine = {
        place: _parts(holding, found, name)
        for place, (found, name) in enumerate(wanted)
        if holding is not None and rank in {side.ranks[0] for side in found.sides}
    }
    told = gather(encode({place: _told(parts) for place, parts in mine.items()}), "leaves")
    heard = {one: _decoded(raw, dict[int, tuple[PartSide, ...]]) for one, raw in told.items()}
    targets, leaves = _targets(wanted, heard)
    windows = plan(targets, leaves, budget)
    held: dict[tuple[int, int], bytes] = {}
    for batch in _rounds(windows):
        raws = gather(encode({place: _bytes(windows[place], mine, rank) for place in batch}), "bytes")
        for one, raw in raws.items():
            held |= {(one, place): data for place, data in _decoded(raw, dict[int, bytes]).items()}
    places = {(window.target.key, window.leaf): place for place, window in enumerate(windows)}

    def read(side: str, window: Window) -> Look:
        data = held.get((window.target.ranks[side], places[window.target.key, window.leaf]), b"")
        if len(data) != window.whole(side):
            return Look(error="its bytes are not at hand")
        same = has_digest(data, window.digest(leaves[window.target.place(side)]))
        return Look(data[: window.length], same)

    drills: Drills = {}
    for (file, key), drill in examine(targets, windows, leaves, read, is_zeros).items():
        if drill.leaves_differing or drill.errors:
            drills.setdefault((file, wanted[_place(key)[0]][1]), drill)
    return drills


def _comparable(line: Line) -> bool:
    """Whether it is a tensor of one kind, dtype and shape on all sides."""
    return line.tensor and not line.missing and not line.schema and not line.reasons


def _key(place: int, part: int) -> Key:
    return make_key(SegmentKind.TENSOR, f"{place}/{part}", 0)


def _place(key: Key) -> tuple[int, int]:
    place, _, part = key[1].partition("/")
    return int(place), int(part)


def _parts(holding: Holding, found: Found, name: str) -> tuple[Part, ...]:
    """This rank's parts of one tensor; none where it does not have it."""
    for held in holding.kinds.get(found.kind, ()):
        if shown_name(held.named.name) == name and held.entry is not None:
            return held.entry.parts
    return ()


def _told(parts: Sequence[Part]) -> list[PartSide]:
    """What the parts are made of, with their leaves' digests; none where they cannot be read any more."""
    leaves = leaves_of(parts, Algorithm.XXH3, default_threads()).leaves
    return [
        PartSide(dtype=part.dtype, shape=part.shape, length=part.tensor.nbytes, leaves=b"".join(found))
        for part, found in zip(parts, leaves, strict=True)
        if not isinstance(found, Unreadable)
    ]


def _targets(
    wanted: Sequence[tuple[Found, str]], heard: Mapping[int, Mapping[int, tuple[PartSide, ...]]]
) -> tuple[list[Target], Leaves]:
    """The parts that all sides have alike, each with the digests of its leaves on every side."""
    targets: list[Target] = []
    leaves: Leaves = {}
    for place, (found, _) in enumerate(wanted):
        ranks = {side.label: side.ranks[0] for side in found.sides}
        told = {label: heard.get(one, {}).get(place, ()) for label, one in ranks.items()}
        if len({tuple((part.dtype, part.shape, part.length) for part in parts) for parts in told.values()}) > 1:
            continue
        reference, *others = sorted(ranks, key=lambda label: -len(_ranks(found, label)))
        for at, parts in enumerate(zip(*told.values(), strict=True)):
            key = _key(place, at)
            places = {label: _segment(key, part) for label, part in zip(told, parts, strict=True)}
            sides = tuple(other for other in others if places[other].digest != places[reference].digest)
            if sides:
                targets.append(Target(found.file, key, reference, sides, (), places, ranks))
                leaves |= {(label, found.file, key): part.leaves for label, part in zip(told, parts, strict=True)}
    return targets, leaves


def _ranks(found: Found, label: str) -> tuple[int, ...]:
    return next(side.ranks for side in found.sides if side.label == label)


def _segment(key: Key, part: PartSide) -> Segment:
    kind, name, offset = key
    return Segment(
        kind=kind,
        name=name,
        offset=offset,
        length=part.length,
        digest=part.leaves.hex(),
        dtype=_DTYPES.get(part.dtype),
        shape=part.shape,
    )


def _rounds(windows: Sequence[Window]) -> Iterator[list[int]]:
    """The windows' places, as many at once as go around well."""
    batch: list[int] = []
    size = 0
    for place, window in enumerate(windows):
        if batch and size + window.length > _ROUND:
            yield batch
            batch, size = [], 0
        batch.append(place)
        size += window.length
    if batch:
        yield batch


def _bytes(window: Window, mine: Mapping[int, Sequence[Part]], rank: int) -> bytes:
    """This rank's bytes of a window, if it speaks for one of its sides."""
    place, part = _place(window.target.key)
    if rank not in {window.target.ranks[side] for side in window.sides}:
        return b""
    try:
        tensor = mine[place][part].tensor
        return taken(tensor, window.start, min(LEAF, tensor.nbytes - window.start))
    except Exception:  # noqa: BLE001 - a device that fails now leaves this one without its bytes, on all ranks
        return b""


def _decoded(raw: bytes, kind: type[T]) -> T:
    """What a rank told; nothing where that cannot be read."""
    try:
        return decode(raw, kind)
    except BadMessage:
        return decode(encode({}), kind)
