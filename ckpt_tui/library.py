"""The library's entrances: `scan` one checkpoint, `compare` several, `check_ranks` inside a job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .copies import Comparison
from .digest import scan
from .facts.agreement import Verdict
from .facts.clock import Clock, SystemClock
from .facts.drill import DRILL_BYTES
from .facts.outcome import RanksDiffer
from .facts.settings import RankSettings, ScanSettings

if TYPE_CHECKING:
    from .copies.comparison import WatchLook
    from .copies.copy import Watch
    from .facts.agreement import Agreement
    from .ranks import Place

__all__ = ["RanksDiffer", "check_ranks", "compare", "scan"]


def compare(
    *targets: str | os.PathLike[str],
    settings: ScanSettings | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    drill_bytes: int = DRILL_BYTES,
    watch_look: WatchLook | None = None,
) -> Agreement:
    """Do these hold the same checkpoint? Folders, files, repo ids of the local hub cache, or saved scans (`.json`).

    Each takes the place of a rank, numbered from 0 in the order given. One that cannot be read is an error of its own
    and hides nothing of the others; one that names nothing is a UsageError, before any tensor byte is read.
    `watch(place, scanner)` is entered around each scan, for whoever shows its progress. Where segments differ, at most
    `drill_bytes` of each copy are read again, to say which bytes those are and why; `watch_look(progress)` is entered
    around that.
    """
    comparison = Comparison(
        [os.fspath(target) for target in targets],
        settings or ScanSettings(),
        clock or SystemClock(),
        drill_bytes=drill_bytes,
    )
    return comparison.run(watch, watch_look)


def check_ranks(
    path: str | os.PathLike[str],
    *,
    settings: RankSettings | None = None,
    place: Place | None = None,
    clock: Clock | None = None,
) -> Agreement:
    """Be one rank of a session; the agreement where all agree, else RanksDiffer with the whole agreement on it.

    Collective: every rank of the job has to call it. `place` is found as the launcher set it when it is not given.
    The caller's own process groups are left alone.
    """
    from .ranks import Flags, Session, find_place

    settings = settings or RankSettings(scan=ScanSettings())
    session = Session(os.fspath(path), place or find_place(Flags()), settings, clock=clock)
    agreement = session.run()
    session.part()
    if agreement.verdict is not Verdict.AGREE:
        raise RanksDiffer(agreement)
    return agreement
