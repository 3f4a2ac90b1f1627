"""What one rank holds: every named tensor and value with its digest, and one root for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ..facts.outcome import CkptError
from ..facts.scan import NotCompared
from ..present.safe import escape
from .digests import EntryPart, entry_digest, kind_digest, name_bytes
from .hashing import default_threads, digests_of, leaves_of
from .kinds import Kind, Named
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


@dataclass(frozen=True, slots=True)
class Holding:
    """All that a rank compares, by kind and in order of name."""

    kinds: Mapping[Kind, tuple[Held, ...]]
    roots: Mapping[Kind, bytes]
    #: Names that were left out by pattern.
    left_out: tuple[NotCompared, ...]
    #: Bytes of all tensors, and bytes that were hashed for them: tied tensors count once there.
    bytes: int
    hashed: int

    @property
    def count(self) -> int:
        """Tensors and values."""
        return sum(map(len, self.kinds.values()))

    @property
    def undecided(self) -> frozenset[Kind]:
        """The kinds in which something could not be read."""
        return frozenset(kind for kind, some in self.kinds.items() if not all(held.digest for held in some))

    @property
    def without_data(self) -> int:
        """Tensors that have no data to compare: on the meta device, or not initialized yet."""
        kinds = {"meta", "uninitialized"}
        return sum(held.entry is not None and held.entry.what in kinds for some in self.kinds.values() for held in some)


def named_list(named_tensors: NamedTensors) -> list[Named]:
    """The names as they were given. Raises CkptError for what is no name, or is there twice in its kind."""
    pairs = named_tensors.items() if isinstance(named_tensors, Mapping) else named_tensors
    found: dict[tuple[str, Kind], Named] = {}
    for pair in pairs:
        named = pair if isinstance(pair, Named) else Named(*pair)
        if not isinstance(named.name, str):
            raise CkptError(f"a name is text, not {escape(type(named.name).__qualname__)}")
        if (named.name, named.kind) in found:
            raise CkptError(f"{named.kind} {escape(named.name)}: is named twice")
        found[named.name, named.kind] = named
    return list(found.values())


def hold(
    named_tensors: NamedTensors, algorithm: Algorithm, *, local: Sequence[str] = (), threads: int | None = None
) -> Holding:
    """Read and hash everything that no pattern of `local` leaves out."""
    all_named = sorted(named_list(named_tensors), key=lambda named: name_bytes(named.name))
    left = [named for named in all_named if any(fnmatchcase(named.name, pattern) for pattern in local)]
    out = {(named.name, named.kind) for named in left}
    compared = [named for named in all_named if (named.name, named.kind) not in out]
    entries = [_described(named.value) for named in compared]
    read = [entry for entry in entries if isinstance(entry, Entry)]
    parts = [part for entry in read for part in entry.parts]
    hashed = leaves_of(parts, algorithm, threads or default_threads())
    digests = iter(digests_of(hashed, parts, algorithm))
    kinds: dict[Kind, list[Held]] = {}
    for named, entry in zip(compared, entries, strict=True):
        if isinstance(entry, Unreadable):
            held = Held(named, None, b"", str(entry))
        else:
            held = _held(named, entry, [next(digests) for _ in entry.parts], algorithm)
        kinds.setdefault(named.kind, []).append(held)
    return Holding(
        kinds={kind: tuple(some) for kind, some in kinds.items()},
        roots={
            kind: kind_digest(kind, algorithm, ((name_bytes(held.named.name), held.digest) for held in some))
            for kind, some in kinds.items()
        },
        left_out=tuple(NotCompared(name=escape(named.name), size=_size(named.value)) for named in left),
        bytes=sum(entry.length for entry in read),
        hashed=hashed.bytes,
    )


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
