"""The screen: `run` and `replay` open it. Only this package imports textual, and not before the worker runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts.agreement import Agreement
    from ..facts.scan import ScanResult
    from ..stream.playback import Player
    from ..stream.recording import Recorder
    from .app import CkptApp
    from .sources import ChildSource

__all__ = ["replay", "run", "show", "worker"]


def run(
    worker_argv: Sequence[str],
    *,
    title: str,
    start_view: Literal["files", "ranks"] = "files",
    ascii_only: bool = False,
    plain: bool = False,
    recorder: Recorder | None = None,
) -> int:
    """Open the screen on a worker (`ckpt-tui _worker ...worker_argv`) and return the exit code.

    `title` is the path as escaped text; `plain` leaves colours out, as NO_COLOR asks. The worker ends with the screen.
    The verdict stays on stdout; why there is none goes to stderr.
    """
    source = worker(["--stay", *worker_argv], recorder)
    try:
        from .app import CkptApp

        app = CkptApp(source, path=title, start_view=start_view, ascii_only=ascii_only, plain=plain)
        app.run()
    finally:
        source.close()
    return _left(app, title)


def replay(player: Player, *, title: str, ascii_only: bool = False, plain: bool = False) -> int:
    """Open the screen on a recording and return the exit code, as `run` does."""
    from .replay import ReplayApp

    try:
        app = ReplayApp(player, path=title, ascii_only=ascii_only, plain=plain)
        app.run()
    finally:
        player.close()
    return _left(app, title)


def show(result: Agreement | ScanResult, *, title: str, ascii_only: bool = False, plain: bool = False) -> int:
    """Open the screen on a saved result, without any worker. The code says whether that could be done."""
    from .app import CkptApp
    from .farewell import exit_code
    from .saved import messages, view_of
    from .sources import MemorySource

    source = MemorySource(messages(result))
    app = CkptApp(source, path=title, start_view=view_of(result), ascii_only=ascii_only, plain=plain)
    app.run()
    code = _left(app, title)
    return 0 if code == exit_code(app.desk.state) else code


def _left(app: CkptApp, title: str) -> int:
    """What is to be said when the screen is gone, and the code that it was left with."""
    from .farewell import await_report, part

    unwritten = await_report(app.desk.writing)
    part(app.desk.state, title, [*app.desk.written, *unwritten])
    return app.return_code or 0


def worker(argv: Sequence[str], recorder: Recorder | None = None) -> ChildSource:
    """Start a worker. It ends when the source is closed."""
    from .sources import ChildSource

    # -P: no module is ever taken from the folder that we stand in, which may be a checkpoint with code in it.
    return ChildSource([sys.executable, "-P", "-m", "ckpt_tui", "_worker", *argv], recorder=recorder)
