"""The library's entrances: `scan` one checkpoint, `compare` several, `check_ranks` inside a job."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from .agreement import judge
from .copies import Copy, drilled, testimonies
from .digest import scan
from .facts.agreement import Between, Stage, Verdict
from .facts.clock import Clock, SystemClock
from .facts.drill import DRILL_BYTES
from .facts.outcome import RanksDiffer, UsageError
from .facts.settings import RankSettings, ScanSettings
from .facts.version import TOOL

if TYPE_CHECKING:
    from .copies import Watch
    from .facts.agreement import Agreement
    from .ranks import Place

__all__ = ["RanksDiffer", "check_ranks", "compare", "scan"]


def compare(
    *targets: str | os.PathLike[str],
    settings: ScanSettings | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    drill_bytes: int = DRILL_BYTES,
) -> Agreement:
    """Do these hold the same checkpoint? Folders, files, repo ids of the local hub cache, or saved scans (`.json`).

    Each takes the place of a rank, numbered from 0 in the order given. One that cannot be read is an error of its own
    and hides nothing of the others; one that names nothing is a UsageError, before any tensor byte is read.
    `watch(place, scanner)` is entered around each scan, for whoever shows its progress. Where segments differ, at most
    `drill_bytes` of each copy are read again, to say which bytes those are and why.
    """
    settings = settings or ScanSettings()
    clock = clock or SystemClock()
    if len(targets) < 2:
        raise UsageError("comparing takes two checkpoints at least")
    copies = [Copy.of(place, os.fspath(target), settings, clock) for place, target in enumerate(targets)]
    for copy in copies:
        copy.read(watch)
    stage = Stage.IDENTITY if settings.identity_only else Stage.CONTENT
    heard = testimonies(copies, stage)
    verdict = partial(judge, heard, world_size=len(copies), stage=stage, created=clock.time(), tool=TOOL)
    agreement = verdict()
    drills = drilled(copies, agreement, heard, drill_bytes) if agreement.differences else {}
    return msgspec.structs.replace(verdict(drills=drills) if drills else agreement, between=Between.COPIES)


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
