"""`ReplicaCheck`: the check in a training loop, every so many times, with what it has cost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..facts.outcome import RanksDiffer
from .check import assert_rank_equal
from .kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import torch.distributed as dist

    from ..facts.agreement import Agreement
    from .asked import ReportPath
    from .holding import NamedTensors


@dataclass(slots=True)
class Statistics:
    """What the checks of one rank have done so far. `seconds` is wall time, waiting for other ranks included."""

    checks: int = 0
    skipped: int = 0
    seconds: float = 0.0
    #: Bytes of tensors compared, and bytes sent by this rank for it, without Gloo's framing.
    bytes: int = 0
    bytes_sent: int = 0
    last: Agreement | None = None


class ReplicaCheck:
    """Compares what `state()` gives at the entry of every `every`-th phase of a name; the first one counts.

        check = ReplicaCheck(lambda: replica_state(model, optimizer=optimizer), group=control, every=100)
        with check.phase("optimizer step", step=step):
            optimizer.step()

    The block is entered only where all ranks hold the same; else RanksDiffer is raised on all of them. Buffers are
    compared and told, and decide nothing, unless `apart` is empty. `every` and the phases have to be the same on all
    ranks. The other arguments are those of `assert_rank_equal`.
    """

    def __init__(
        self,
        state: Callable[[], NamedTensors],
        *,
        group: dist.ProcessGroup,
        every: int = 1,
        digest: Literal["xxh3-128", "sha256"] = "xxh3-128",
        report: ReportPath | None = None,
        apart: Collection[str] = (Kind.BUFFERS,),
        local: Collection[str] = (),
        sets: Sequence[Sequence[int]] | None = None,
    ) -> None:
        if every < 1:
            raise ValueError("every takes 1 or more")
        self._state = state
        self._group = group
        self._every = every
        self._digest = digest
        self._report = report
        self._apart = apart
        self._local = local
        self._sets = sets
        self._entered: Counter[str] = Counter()
        self.statistics = Statistics()

    @contextmanager
    def phase(self, name: str, *, step: int | None = None) -> Iterator[None]:
        """Enter a phase, after a check if it is its turn."""
        place = self._entered[name]
        self._entered[name] += 1
        if place % self._every:
            self.statistics.skipped += 1
        else:
            self.check(name, step=step)
        yield

    def check(self, name: str, *, step: int | None = None) -> Agreement:
        """Check now. Raises as `assert_rank_equal` does."""
        begin = time.perf_counter()
        agreement = None
        try:
            agreement = assert_rank_equal(
                self._named(),
                group=self._group,
                phase=name,
                step=step,
                digest=self._digest,
                report=self._report,
                apart=self._apart,
                local=self._local,
                sets=self._sets,
            )
        except RanksDiffer as differ:
            agreement = differ.agreement
            raise
        finally:
            self._count(agreement, time.perf_counter() - begin)
        return agreement

    def _named(self) -> Iterator[Any]:
        """The state, made where what goes wrong with it is told to the other ranks."""
        state = self._state()
        yield from state.items() if isinstance(state, Mapping) else state

    def _count(self, agreement: Agreement | None, seconds: float) -> None:
        told = self.statistics
        told.checks += 1
        told.seconds += seconds
        if agreement is not None:
            report = next(one for one in agreement.ranks if one.rank == _global_rank())
            told.bytes += report.bytes
            told.bytes_sent += report.bytes_sent
            told.last = agreement


def _global_rank() -> int:
    import torch.distributed as dist

    return int(dist.get_rank())
