"""What stays on the terminal when the screen is gone: the verdict and where it differs, and the exit code."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from ..facts.outcome import Exit
from ..stream.messages import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stream.state import StreamState
    from .aside import Aside

#: Seconds after which it is said that a report is still being written, and after which it is given up.
_SOON, _PATIENCE = 0.3, 20.0


def exit_code(state: StreamState) -> int:
    """The session's code; 130 if left before a verdict, 3 where the worker was lost."""
    if state.verdict is not None and state.verdict.code is not None:
        return state.verdict.code
    if state.bye is not None:
        return state.bye.code
    return Exit.INTERRUPTED if state.ended is None else Exit.UNDECIDED


def is_decided(state: StreamState) -> bool:
    """Whether there is a verdict to tell."""
    return state.verdict is not None and state.verdict.code is not None


def farewell(state: StreamState, path: str, written: Sequence[str] = ()) -> list[str]:
    """The lines to print: what the verdict line said, where it differs, and where the reports are."""
    verdict = state.verdict
    reports = [f"  report    {report}" for report in written]
    if verdict is not None and verdict.code is not None:
        return [f"{verdict.word}  {verdict.text}", *(f"  {line}" for line in verdict.lines), *reports]
    if state.bye is not None and state.bye.code != Exit.INTERRUPTED:
        return [f"{Word.FAILED}  {state.bye.reason or path}"]
    if state.ended is not None and state.ended.said:
        return [f"{Word.STOPPED}  {state.ended.said}, before a verdict: {path}"]
    if state.ended is not None and state.bye is None:
        code = state.ended.code
        how = "ended without a verdict" if code is None or code >= 0 else f"died with signal {-code}"
        native = [entry.text for number, entry in state.logs.items() if number < 0][-3:]
        return [f"{Word.UNDECIDED}  the worker {how}: {path}", *(f"  {text}" for text in native)]
    return [f"{Word.STOPPED}  before a verdict: {path}", *reports]


def await_report(writing: Aside[str] | None) -> list[str]:
    """Wait for a report that was asked for just before the screen was left; what to say of one that is not there."""
    if writing is None:
        return []
    if not writing.done.wait(_SOON):
        with suppress(OSError):
            sys.stderr.write("writing the report; ^C leaves without it\n")
            sys.stderr.flush()
        try:
            if not writing.done.wait(_PATIENCE):
                return ["not written: the file system does not answer"]
        except KeyboardInterrupt:
            return ["not written: it was not waited for"]
    if writing.error:
        return [f"not written: {writing.error}"]
    return [] if writing.made else ["not written: there is a file of that name"]


def part(state: StreamState, title: str, written: Sequence[str] = ()) -> None:
    """Print what stays: the verdict on stdout, and why there is none on stderr."""
    stream = sys.stdout if is_decided(state) else sys.stderr
    said = "\n".join([*farewell(state, title, written), ""])
    with suppress(OSError):  # the terminal may be gone
        stream.flush()
        stream.buffer.write(said.encode(stream.encoding, "backslashreplace"))
        stream.flush()
