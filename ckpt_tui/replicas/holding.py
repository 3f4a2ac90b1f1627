"""What one rank holds: every named tensor and value with its digest, and one root for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from ..facts.outcome import CkptError
from ..facts.scan import NotCompared
from ..present.safe import escape
from .digests import EntryPart, entry_digest, kind_digest, name_bytes
from .hashing import default_threads, digests_of, leaves_of
from .kinds import Kind, Named
from .quick import Quick
from .tensors import Entry, describe
from .values import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .kinds import Algorithm

    #: What is compared: a mapping, or pairs of name and value, or `Named`.
    NamedTensors = Mapping[str, Any] | Iterable[tuple[str, Any] | Named]


@dataclass(frozen=True, slots=True)
class Held:
    """One entry on this rank. Without a digest it is undecided, and `reason` says why."""

    named: Named
    entry: Entry | None
    digest: bytes
    reason: str = ""


class Listed(NamedTuple):
    """What was named, in columns: with very many tensors an object for each is what would cost most."""

    names: list[str]
    values: list[Any]
    kinds: list[Kind]

    def at(self, place: int) -> Named:
        """One of them."""
        return Named(self.names[place], self.values[place], self.kinds[place])

    def only(self, places: Sequence[int]) -> Listed:
        """Those at these places, in this order."""
        names, values, kinds = self
        return Listed([names[at] for at in places], [values[at] for at in places], [kinds[at] for at in places])


class Holding:
    """All that a rank compares, by kind and in order of name."""

    def __init__(
        self, listed: Listed, digests: Sequence[bytes], at_length: Mapping[int, Held], algorithm: Algorithm
    ) -> None:
        """`digests` are those of what was listed, in order of name; `at_length` is what was described for them."""
        self._listed = listed
        self._digests = digests
        self._at_length = at_length
        ids = list(map(id, listed.kinds))  # an enumeration's member hashes slowly, and is there once
        places = {kind: list(compress(range(len(ids)), map(kind.__eq__, ids))) for kind in dict.fromkeys(ids)}
        self._places = {listed.kinds[some[0]]: some for some in places.values()}
        self.roots: Mapping[Kind, bytes] = {
            kind: kind_digest(
                kind, algorithm, [name_bytes(listed.names[at]) for at in some], [digests[at] for at in some]
            )
            for kind, some in self._places.items()
        }
        #: Names that were left out by pattern.
        self.left_out: tuple[NotCompared, ...] = ()
        #: Bytes of all tensors, and bytes that were hashed for them: tied tensors count once there.
        self.bytes = self.hashed = 0

    @cached_property
    def kinds(self) -> Mapping[Kind, tuple[Held, ...]]:
        """Every entry."""
        return {kind: tuple(map(self._held, places)) for kind, places in self._places.items()}

    def _held(self, place: int) -> Held:
        held = self._at_length.get(place)
        if held is None:
            named = self._listed.at(place)
            held = Held(named, describe(named.value), self._digests[place])
        return held

    @property
    def count(self) -> int:
        """Tensors and values."""
        return len(self._digests)

    @property
    def undecided(self) -> frozenset[Kind]:
        """The kinds in which something could not be read."""
        return frozenset(held.named.kind for held in self._at_length.values() if not held.digest)

    @property
    def without_data(self) -> int:
        """Tensors that have no data to compare: on the meta device, or not initialized yet."""
        kinds = {"meta", "uninitialized"}
        return sum(held.entry is not None and held.entry.what in kinds for held in self._at_length.values())


def listed_of(named_tensors: NamedTensors) -> Listed:
    """The names as they were given. CkptError for what is no pair, no name or no kind, or is there twice."""
    if isinstance(named_tensors, dict) and set(map(type, named_tensors)) <= {str}:  # the usual, and nothing to check
        return Listed(list(named_tensors), list(named_tensors.values()), [Kind.TENSORS] * len(named_tensors))
    pairs = named_tensors.items() if isinstance(named_tensors, Mapping) else named_tensors
    listed = Listed([], [], [])
    seen: dict[int, set[str]] = {id(kind): set() for kind in Kind}
    try:
        given = iter(pairs)
    except TypeError:
        raise CkptError(f"pairs of name and value are compared, not {_class(pairs)}") from None
    for pair in given:
        if isinstance(pair, Named):
            name, value, kind = pair
        else:
            try:
                (name, value), kind = pair, Kind.TENSORS
            except (TypeError, ValueError):
                raise CkptError(f"pairs of name and value are compared, and here is one {_class(pair)}") from None
        if not isinstance(name, str):
            raise CkptError(f"a name is text, not {_class(name)}")
        before = seen.get(id(kind))
        if before is None:
            raise CkptError(f"{escape(name)}: a kind is one of {', '.join(Kind)}, not {escape(repr(kind))}")
        if name in before:
            raise CkptError(f"{kind} {escape(name)}: is named twice")
        before.add(name)
        listed.names.append(name)
        listed.values.append(value)
        listed.kinds.append(kind)
    return listed


def _class(value: object) -> str:
    return escape(type(value).__qualname__)


def hold(
    named_tensors: NamedTensors, algorithm: Algorithm, *, local: Sequence[str] = (), threads: int | None = None
) -> Holding:
    """Read and hash everything that no pattern of `local` leaves out."""
    everything = listed_of(named_tensors)
    order = sorted(range(len(everything.names)), key=everything.names.__getitem__)  # as their UTF-8 sorts
    out = (
        {at for at in order if any(fnmatchcase(everything.names[at], pattern) for pattern in local)} if local else set()
    )
    listed = everything.only([at for at in order if at not in out] if out else order)
    quick = Quick(algorithm)
    digests = quick.digests(listed.values)
    rest = [place for place, digest in enumerate(digests) if digest is None]
    long = _AtLength([listed.at(place) for place in rest], algorithm, threads or default_threads())
    at_length = dict(zip(rest, long.held, strict=True))
    whole = [at_length[place].digest if digest is None else digest for place, digest in enumerate(digests)]
    holding = Holding(listed, whole, at_length, algorithm)
    holding.left_out = tuple(
        NotCompared(name=escape(everything.names[at]), size=_size(everything.values[at])) for at in order if at in out
    )
    holding.bytes = quick.bytes + long.bytes
    holding.hashed = quick.hashed + long.hashed
    return holding


class _AtLength:
    """What has to be described and read before its digest can be told, by threads where it is large."""

    def __init__(self, compared: Sequence[Named], algorithm: Algorithm, threads: int) -> None:
        entries = [_described(named.value) for named in compared]
        read = [entry for entry in entries if isinstance(entry, Entry)]
        parts = [part for entry in read for part in entry.parts]
        hashed = leaves_of(parts, algorithm, threads)
        digests = iter(digests_of(hashed, parts, algorithm))
        self.held = [
            Held(named, None, b"", str(entry))
            if isinstance(entry, Unreadable)
            else _held(named, entry, [next(digests) for _ in entry.parts], algorithm)
            for named, entry in zip(compared, entries, strict=True)
        ]
        self.bytes = sum(entry.length for entry in read)
        self.hashed = hashed.bytes


def _described(value: object) -> Entry | Unreadable:
    try:
        return describe(value)
    except Unreadable as error:
        return error


def _held(named: Named, entry: Entry, digests: Sequence[bytes | Unreadable], algorithm: Algorithm) -> Held:
    parts = []
    for part, digest in zip(entry.parts, digests, strict=True):
        if isinstance(digest, Unreadable):
            return Held(named, entry, b"", str(digest))
        parts.append(EntryPart(part.name, part.dtype, part.shape, digest))
    digest = entry_digest(
        algorithm, what=entry.what, dtype=entry.dtype, shape=entry.shape, facts=entry.facts, parts=parts
    )
    return Held(named, entry, digest)


def _size(value: Any) -> int:
    """Bytes of what was left out, as far as that can be told without looking into it."""
    entry = _described(value)
    return 0 if isinstance(entry, Unreadable) else entry.length
