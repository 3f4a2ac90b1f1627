"""A scan's progress on stderr, for who waits at a terminal. rich is imported only when the wait is worth a bar."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ..present import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..copies import LookProgress
    from ..digest import ScanProgress

#: A scan that is done within this time shows no bar.
_PATIENCE = 0.3
_PERIOD = 0.1


def words(progress: ScanProgress, elapsed: float) -> str:
    """`118.2 of 190.4 GiB  62 %  0.66 GiB/s  1 m 49 s left  12/33 cached`: the rate counts what was really read."""
    done, total, cached = progress.bytes_done, progress.bytes_total, progress.bytes_cached
    unit = units.size_unit(total)
    rate = progress.bytes_read / elapsed if elapsed > 0 else 0.0
    parts = [
        f"{units.in_unit(done, unit)} of {units.in_unit(total, unit)} {unit[0]}",
        units.percent(done, total),
        units.rate(rate),
    ]
    if rate > 0:
        parts.append(f"{units.duration((total - done) / rate)} left")
    if cached:
        parts.append(f"{progress.files_cached}/{progress.files_total} cached")
    return "  ".join(parts)


def look_words(progress: LookProgress, _elapsed: float) -> str:
    """`12.0 of 64.0 MiB  19 %  of what differs read again`."""
    done, total = progress.bytes_done, progress.bytes_total
    unit = units.size_unit(total)
    share = f"{units.in_unit(done, unit)} of {units.in_unit(total, unit)} {unit[0]}"
    return f"{share}  {units.percent(done, total)}  of what differs read again"


P = TypeVar("P", "ScanProgress", "LookProgress")


@contextmanager
def shown(progress: P, said: Callable[[P, float], str]) -> Iterator[None]:
    """Draw a bar while the work inside goes on, and wipe it away at the end; nothing where stderr is no terminal.

    `said(progress, seconds)` is what stands beside the bar.
    """
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    painter = threading.Thread(target=_paint, args=(progress, said, over), name="progress", daemon=True)
    painter.start()
    try:
        yield
    finally:
        over.set()
        painter.join()


def _paint(progress: P, said: Callable[[P, float], str], over: threading.Event) -> None:
    if over.wait(_PATIENCE):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (BarColumn(bar_width=30), TextColumn("{task.fields[words]}", markup=False))
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=None, words="")
        while True:
            started = progress.started
            if started is not None:
                total, done = progress.bytes_total, progress.bytes_done
                bar.update(task, total=total, completed=done, words=said(progress, time.monotonic() - started))
            bar.refresh()
            if over.wait(_PERIOD):
                return
