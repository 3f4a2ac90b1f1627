"""`--plain`: a stream as lines on stdout, for screen readers and logs; and `--record`: the stream in a file."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

import click

from ..facts.clock import SystemClock
from ..stream.state import StreamState, apply
from .stdout import emit
from .stopping import stopping

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..stream.recording import Recorder
    from ..tui.sources import Source

F = TypeVar("F", bound="Callable[..., Any]")

#: Seconds between two looks at the stream, and between two tellings: a few lines a second at most.
_LOOK, _TELL = 0.1, 1.0


def plain_option(function: F) -> F:
    """`--plain`; passes `line_by_line` to the command."""
    return click.option(
        "--plain", "line_by_line", is_flag=True, help="Lines instead of a screen: for screen readers and logs."
    )(function)


def record_options(function: F) -> F:
    """`--record` and its `--force`; `recorder` takes them."""
    force = click.option("--force", is_flag=True, help="Replace a recording that is there already.")
    return record_option(force(function))


def record_option(function: F) -> F:
    """`--record` alone, for commands that have a `--force` already."""
    return click.option(
        "--record", metavar="FILE", help="Keep what the screen is told in a file, for `ckpt-tui replay`."
    )(function)


def recorder(record: str | None, *, force: bool) -> Recorder | None:
    """The recording to write, if one is wanted. UsageError where it is there already, CkptError where it cannot be."""
    if record is None:
        return None
    from ..stream.recording import Recorder

    return Recorder(record, SystemClock(), force=force)


def narrate(source: Source, title: str, *, at_once: bool = False) -> int:
    """Tell a stream until it ends, a signal comes or the reader has left; the exit code is the screen's.

    `at_once`: only how it ended. CkptError where stdout cannot be written.
    """
    from ..stream.messages import Resync
    from ..stream.narrator import Narrator
    from ..tui.farewell import exit_code, farewell, is_decided, part

    state, narrator = StreamState(), Narrator()
    heard = told = time.monotonic()
    stopped: list[bool] = []
    listening = True
    try:
        with stopping(lambda: stopped.append(True)) as stop:
            while not state.over and not stopped and listening:
                batch = source.drain()
                changes = apply(state, batch)
                now = time.monotonic()
                heard = now if batch else heard
                if changes.resync:
                    source.send(Resync())
                if not at_once and (now - told >= _TELL or state.over):
                    told = now
                    listening = _print(narrator.tell(state, now, now - heard))
                if not batch:
                    time.sleep(_LOOK)
    finally:
        source.close()
    if is_decided(state):
        _print(farewell(state, title))
    else:
        part(state, title)
    return stop.code if stopped else exit_code(state)


def _print(lines: list[str]) -> bool:
    """Whether anybody still reads them."""
    return emit("\n".join([*lines, ""]).encode(sys.stdout.encoding, "backslashreplace")) if lines else True
