"""Where a rank's result goes: to stdout, to the file of `--result`, into a report."""

from __future__ import annotations

import fcntl
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.outcome import CkptError
from ..present.safe import error_text
from ..worker.lifetime import write_all
from .reporting import write_report

if TYPE_CHECKING:
    from ..facts.agreement import Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """What one rank was told to do with the agreement; `stdout` is a descriptor."""

    stdout: int
    format_: str
    result: str | None
    report: str | None
    redact: bool
    force: bool

    def take(self, agreement: Agreement, rank: int | None) -> bool:
        """Print and write it; whether all that this rank had to print and write is out.

        Files are written by the lowest surviving rank, and for people only that one tells it all.
        """
        from ..report import json, text
        from ..report.write import write

        first = rank == agreement.speaker
        encoded = json.encode(agreement)
        written = True
        if self.result is not None and first:
            try:
                write(self.result, encoded, force=True)
            except CkptError as error:
                say(f"ckpt-tui: {error}")
                written = False
        if first:
            written &= write_report(agreement, self.report, redact=self.redact, force=self.force)
        if self.format_ in {"json", "jsonl"}:
            written &= self._print(encoded)
        elif self.format_ == "human":
            line = f"rank {rank}: {agreement.verdict}: {agreement.summary}\n"
            written &= self._print((text.agreement_text(agreement, time.time()) if first else line).encode())
        return written

    def _print(self, data: bytes) -> bool:
        """All of it in one piece: ranks that share a pipe take turns, for a pipe keeps only 4 KiB together.

        Whether it is out; a reader that wants no more of it changes nothing.
        """
        with suppress(OSError):  # not everything can be locked
            fcntl.lockf(self.stdout, fcntl.LOCK_EX)
        try:
            write_all(self.stdout, data)
        except BrokenPipeError:
            return True
        except OSError as error:  # the others wait for this rank all the same, and the verdict stands
            say(f"ckpt-tui: stdout: the result could not be written: {error_text(error)}")
            return False
        else:
            return True
        finally:
            with suppress(OSError):
                fcntl.lockf(self.stdout, fcntl.LOCK_UN)


def say(line: str) -> None:
    """A line on stderr, now."""
    print(line, file=sys.stderr, flush=True)
