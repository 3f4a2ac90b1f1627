"""`Scanner`: one checkpoint on this machine, from its name to its digests."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..checkpoint import locate
from ..facts.clock import Clock, SystemClock
from ..facts.outcome import CkptError
from ..facts.settings import ScanSettings
from ..facts.version import TOOL
from ..native import ABREAST
from . import survey as survey_
from .control import Control
from .filesystem import FileSystem, FileSystems
from .hashing import Hasher, Outcome, Pending
from .host import host_id, host_name
from .lanes import Lanes
from .memory import open_outlines
from .progress import FileProgress, ScanProgress
from .result import Frame, file_result, scan_result, segment_table
from .scheduler import Job, cores, default_threads, run_longest_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..checkpoint.model import CheckpointFile
    from ..facts.drill import Reread
    from ..facts.files import FileResult, Segment
    from ..facts.scan import ScanResult
    from .survey import Survey


class Scanner:
    """Finds, surveys and hashes one checkpoint. `progress` and `cancel` are for any thread, at any time."""

    def __init__(self, target: str, settings: ScanSettings | None = None, *, clock: Clock | None = None) -> None:
        self.progress = ScanProgress()
        self._target = target
        self._settings = settings or ScanSettings()
        self._clock = clock or SystemClock()
        self._control = Control(self._clock, self._settings.max_rate)
        self._paused_at = 0.0
        self._survey: Survey | None = None
        self._outcomes: dict[str, Outcome] = {}
        self._result: ScanResult | None = None
        self._outlines = open_outlines(self._settings)

    def cancel(self) -> None:
        """Stop within a block; safe in a signal handler. Files that were finished stay remembered."""
        self._control.cancel()

    def pause(self, wish: bool) -> None:
        """Rest at the next block, or go on; from any thread. A scan that has read everything has nothing to rest from.

        What others wait for after the scan, `read_again`, is never held up.
        """
        wish = wish and self.progress.finished is None
        if wish == self.progress.paused:
            return
        self.progress.paused = self._control.paused = wish
        if wish:
            self._paused_at = self._clock.monotonic()
            return
        # A file's rate is that of the time in which it was read.
        rested = self._clock.monotonic() - self._paused_at
        for file in self.progress.files:
            if file.started is not None and file.finished is None:
                file.started = min(file.started + rested, self._clock.monotonic())

    def survey(self) -> Survey:
        """What metadata alone says: headers, config and index. Raises `UsageError` where there is no checkpoint."""
        if self._survey is None:
            self._survey = self._look()
        return self._survey

    def survey_again(self, pause: float) -> Survey:
        """The survey anew, after a pause in which the folders above are listed, so that a stale one is asked for again.

        Raises `Interrupted` when cancelled.
        """
        root = self.survey().checkpoint.root
        for folder in (root, *root.parents):
            with suppress(OSError), os.scandir(folder) as entries:
                next(entries, None)
        self._control.pause(pause)
        self._survey = self._look()
        return self._survey

    def file_system(self) -> FileSystem:
        """Where the checkpoint lies, after the survey."""
        real = os.path.realpath(self.survey().checkpoint.root)
        return FileSystems().of(f"{real}/.", os.stat(real).st_dev)  # noqa: PTH116 - a string

    def run(self) -> ScanResult:
        """Survey, then find every file's digests, from the cache or by reading. Raises `Interrupted` when cancelled."""
        if self._result is None:
            self._result = self._scan()
        return self._result

    def segments(self, name: str) -> tuple[Segment, ...]:
        """The segments of a file whose digest is known, after `run`."""
        outcome = self._outcomes.get(name)
        table = segment_table(outcome) if outcome else None
        if table is None:
            raise CkptError(f"{name}: no digests are known")
        return table

    def leaves(self, name: str) -> tuple[bytes, ...]:
        """For each of `segments(name)` the digests of its leaves (`facts.drill.LEAF` bytes each), end to end."""
        from . import ranges

        return ranges.leaves_of(self._outcomes[name], self.segments(name))

    def read_again(self, name: str, offset: int, length: int) -> Reread:
        """Bytes of a file whose digest is known, past the page cache; where that is not proven it is said.

        Raises CkptError where the file is not what it was, and `Interrupted`.
        """
        if name not in self._outcomes:
            raise CkptError(f"{name}: no digests are known")
        self.pause(False)
        self._control.spend(length)
        from . import ranges

        return ranges.read_again(self._outcomes[name], offset, length)

    def _look(self) -> Survey:
        self._control.check()
        settings = self._settings
        checkpoint = locate(
            self._target,
            include=settings.include,
            rank_local=settings.rank_local,
            hub_cache=settings.hub_cache,
            expected=settings.expected,
            fail_on=settings.fail_on,
            outlines=self._outlines,
        )
        survey = survey_.take(checkpoint, lambda _count: self._control.check())
        self.progress.files = tuple(FileProgress(file.name, file.role, file.size) for file in checkpoint.files)
        return survey

    def _scan(self) -> ScanResult:
        begun = self._clock.monotonic()
        survey = self.survey()
        progress, settings = self.progress, self._settings
        progress.threads = settings.threads or default_threads(ABREAST if settings.sha256 else 1)
        progress.started = self._clock.monotonic()
        hasher = Hasher(settings, survey, self._control, self._clock, Lanes(cores()))
        results: dict[str, FileResult] = {}

        def settle(outcome: Outcome, file: FileProgress) -> None:
            result = file_result(outcome, with_segments=settings.segments)
            self._outcomes[outcome.file.name] = outcome
            results[outcome.file.name] = result
            file.finish(result, self._clock.monotonic(), shared=outcome.shared)

        def job(pending: Pending, file: FileProgress) -> Job:
            def run(buffer: memoryview) -> bool:
                outcome = hasher.read(
                    pending, buffer, begin=lambda: file.start(self._clock.monotonic()), advance=file.advance
                )
                if outcome:
                    settle(outcome, file)
                return outcome is None

            return Job(pending.outcome.file.size, run)

        def find(files: Iterable[tuple[CheckpointFile, FileProgress]]) -> bool:
            """Settle each of them; whether any was read for that."""
            jobs = []
            for file, shown in files:
                self._control.check()
                found = hasher.first_look(file)
                if isinstance(found, Pending):
                    jobs.append(job(found, shown))
                else:
                    settle(found, shown)
            run_longest_first(jobs, progress.threads, self._control)
            return bool(jobs)

        every = [*zip(survey.checkpoint.files, progress.files, strict=True)]
        if find(every):
            # While one was read, another that was done with may have moved, and what is said is of one moment. It is
            # read once more, as where it moves under its reader; what has moved then is changed.
            found = [self._outcomes[file.name] for file, _ in every]
            find(one for one, outcome in zip(every, found, strict=True) if hasher.confirm(outcome) is not outcome)
            for file, shown in every:
                outcome = hasher.confirm(self._outcomes[file.name])
                if outcome is not self._outcomes[file.name]:
                    settle(outcome, shown)
        hasher.close()
        if self._outlines:
            self._outlines.keep()
        progress.finished = self._clock.monotonic()
        self.pause(False)
        files = survey.checkpoint.files
        frame = Frame(
            host=host_name(),
            host_id=host_id(settings.host_id),
            tool=TOOL,
            created=self._clock.time(),
            warnings=hasher.warnings,
            bytes_read=progress.bytes_read,
            seconds=progress.finished - begun,
            threads=progress.threads,
        )
        return scan_result(
            survey,
            [self._outcomes[file.name] for file in files],
            [results[file.name] for file in files],
            frame=frame,
            sha256=settings.sha256,
            logical=hasher.logical,
        )


def scan(
    target: str | os.PathLike[str], settings: ScanSettings | None = None, *, clock: Clock | None = None
) -> ScanResult:
    """Find and hash one checkpoint, and return what is known of it."""
    return Scanner(os.fspath(target), settings, clock=clock).run()
