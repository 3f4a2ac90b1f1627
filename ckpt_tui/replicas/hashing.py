"""The digests of many tensors: each byte hashed once, by threads, in leaves, and nothing copied as a whole."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from threading import local
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch

from ..present.safe import escape
from .digests import LEAF, hash_of, part_digest
from .pieces import copied, in_place, size_of, staged
from .values import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .kinds import Algorithm
    from .pieces import Slot
    from .tensors import Part

T = TypeVar("T")

#: More threads than this do not make memory any faster.
_MOST_THREADS = 4
#: Leaves, and small tensors, that make a job worth the handing over.
_LEAVES, _SMALL = 16, 256

Leaves = list[bytes]


class _Job(NamedTuple):
    """Consecutive leaves of one tensor: `keep` is the tensor, whose memory `view` may be."""

    key: int
    view: memoryview | None
    keep: torch.Tensor
    start: int
    end: int


class Hashed(NamedTuple):
    """The leaves' digests of each part, in the order in which the parts were given, or why there are none."""

    leaves: list[Leaves | Unreadable]
    #: Bytes that were hashed: those that several names share count once.
    bytes: int


def default_threads() -> int:
    """As many as this process may have processors, and no more than are of use."""
    return min(_MOST_THREADS, len(os.sched_getaffinity(0)))


def leaves_of(parts: Sequence[Part], algorithm: Algorithm, threads: int) -> Hashed:
    """Hash every part once; parts that are the same memory, seen in the same way, share their digests."""
    places: dict[object, int] = {}
    firsts: list[int] = []  # for each part the one that is hashed for it
    for place, part in enumerate(parts):
        firsts.append(places.setdefault(_sight(part.tensor, place), place))
    mine = sorted(set(firsts))
    with _Hasher(algorithm, threads) as hasher:
        found = hasher.run({place: parts[place].tensor for place in mine})
    total = sum(size_of(parts[place].tensor) for place in mine)
    return Hashed([found[first] for first in firsts], total)


def digests_of(hashed: Hashed, parts: Sequence[Part], algorithm: Algorithm) -> list[bytes | Unreadable]:
    """The digest of each part over its leaves."""
    return [
        leaves if isinstance(leaves, Unreadable) else part_digest(algorithm, size_of(part.tensor), leaves)
        for leaves, part in zip(hashed.leaves, parts, strict=True)
    ]


def _sight(tensor: torch.Tensor, place: int) -> object:
    """Equal where two tensors are the same bytes in the same order. Without an address nothing is known of that."""
    address = tensor.data_ptr() if tensor.numel() else 0
    if not address:
        return place
    view = (tensor.is_conj(), tensor.is_neg(), tensor.dtype)
    order = tensor.nbytes if tensor.is_contiguous() else (tuple(tensor.shape), tensor.stride())
    return address, str(tensor.device), view, order


class _Hasher:
    """One run over tensors by key."""

    def __init__(self, algorithm: Algorithm, threads: int) -> None:
        self._hash = hash_of(algorithm)
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._local = local()
        self._leaves: dict[int, Leaves] = {}
        self._failed: dict[int, Unreadable] = {}

    def __enter__(self) -> _Hasher:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, tensors: dict[int, torch.Tensor]) -> dict[int, Leaves | Unreadable]:
        """The leaves' digests of each."""
        here: dict[int, torch.Tensor] = {}
        away: list[tuple[int, torch.Tensor]] = []
        for key, tensor in tensors.items():
            self._leaves[key] = [b""] * -(-size_of(tensor) // LEAF)
            if tensor.device.type == "cpu":
                here[key] = tensor
            else:
                away.append((key, tensor))
        self._spread(self._do, self._jobs(here))
        self.fetch(away)
        return {key: self._failed.get(key, leaves) for key, leaves in self._leaves.items()}

    def _spread(self, work: Callable[[list[T]], None], batches: Iterator[list[T]]) -> None:
        """By threads, if there is more to do than handing it over costs."""
        begun = list(islice(batches, 2))
        if len(begun) < 2 or self._threads < 2:
            for batch in chain(begun, batches):
                work(batch)
            return
        self._pool = self._pool or ThreadPoolExecutor(self._threads, "ckpt-tui hash")
        for _ in self._pool.map(work, chain(begun, batches)):
            pass

    def _jobs(self, tensors: dict[int, torch.Tensor]) -> Iterator[list[_Job]]:
        """Batches of about `_LEAVES` leaves or `_SMALL` tensors."""
        batch: list[_Job] = []
        weight = 0
        for key, tensor in tensors.items():
            try:
                view = in_place(tensor)
            except Unreadable as error:
                self._fail(key, error)
                continue
            size = size_of(tensor)
            for start in range(0, size, _LEAVES * LEAF):
                end = min(start + _LEAVES * LEAF, size)
                batch.append(_Job(key, view, tensor, start, end))
                weight += end - start
                if weight >= _LEAVES * LEAF or len(batch) >= _SMALL:
                    yield batch
                    batch, weight = [], 0
        if batch:
            yield batch

    def _do(self, batch: list[_Job]) -> None:
        for job in batch:
            try:
                self._hash_job(job)
            except Exception as error:  # noqa: BLE001 - whatever a kind's copy raises concerns that tensor alone
                self._fail(job.key, error)

    def _hash_job(self, job: _Job) -> None:
        leaves = self._leaves[job.key]
        for start in range(job.start, job.end, LEAF):
            end = min(start + LEAF, job.end)
            piece = job.view[start:end] if job.view is not None else copied(self._buffer, job.keep, start, end - start)
            leaves[start // LEAF] = self._hash(piece)

    @property
    def _buffer(self) -> torch.Tensor:
        """This thread's own."""
        if not hasattr(self._local, "buffer"):
            self._local.buffer = torch.empty(LEAF, dtype=torch.uint8, device="cpu")
        buffer: torch.Tensor = self._local.buffer
        return buffer

    def fetch(self, tensors: list[tuple[int, torch.Tensor]]) -> None:
        """What lies on other devices: copied by this thread, on its streams, and hashed by all."""
        try:
            for load in staged(tensors, LEAF, self._fail):
                share = -(-len(load) // self._threads)
                self._spread(self._hash_slots, (load[at : at + share] for at in range(0, len(load), share)))
        except Exception as error:  # noqa: BLE001 - a device that fails leaves these tensors undecided
            for key, _ in tensors:
                if b"" in self._leaves[key]:
                    self._fail(key, error)

    def _hash_slots(self, slots: list[Slot]) -> None:
        for slot in slots:
            self._leaves[slot.key][slot.start // LEAF] = self._hash(slot.data)

    def _fail(self, key: int, error: Exception) -> None:
        self._failed.setdefault(key, reason(error))


def reason(error: Exception) -> Unreadable:
    """Why bytes could not be read, in one line."""
    if isinstance(error, Unreadable):
        return error
    return Unreadable(f"{type(error).__name__}: {escape(str(error).partition(chr(10))[0][:200])}")
