"""`ckpt-tui demo`: real ranks on this machine, a real checkpoint, one deliberate fault."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..facts.outcome import Exit, UsageError
from ..present.safe import escape
from .lines import plain_option, record_options, recorder
from .open import is_terminal, watch
from .options import Rate, Size, format_option

if TYPE_CHECKING:
    from ..demo.stage import Stage


@click.command()
@click.option(
    "--model", type=click.Path(exists=True), help="Your own checkpoint instead of a made-up one; it is copied."
)
@click.option("--fault", type=click.Choice(["flip", "none"]), default="flip", show_default=True, help="What to damage.")
@click.option("--ranks", type=click.IntRange(1, 16), default=3, show_default=True, help="How many rank processes.")
@click.option("--size", type=Size(), default="512M", show_default=True, help="About how large the checkpoint is.")
@click.option(
    "--max-rate",
    type=Rate(),
    default="48M",
    show_default=True,
    help="How fast each rank may read, so that there is something to see; 0: as fast as it can.",
)
@click.option("--headless", is_flag=True, help="No screen: print the agreement and leave with its code.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with plain ASCII.")
@plain_option
@record_options
@format_option()
def command(
    *,
    model: str | None,
    fault: str,
    ranks: int,
    size: int,
    max_rate: float,
    headless: bool,
    ascii_only: bool,
    line_by_line: bool,
    record: str | None,
    force: bool,
    format_: str,
) -> int:
    """Watch real ranks find the one bit that differs.

    Everything is made in a temporary folder (TMPDIR names another place) and removed at the end.
    """
    from ..demo import stage as staging

    if headless and (line_by_line or record is not None):
        raise UsageError("--headless prints the agreement alone: leave --plain and --record out")
    if not headless and not line_by_line and not is_terminal():
        raise UsageError("the demo's screen needs a terminal; without one: ckpt-tui demo --plain or --headless")
    recording = recorder(record, force=force)
    # Without this a SIGTERM would leave gigabytes behind in the temporary folder.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    with tempfile.TemporaryDirectory(prefix="ckpt-tui-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ["XDG_RUNTIME_DIR"] = name  # the locks that the ranks share go with the folder
        stage = staging.set_up(
            folder,
            ranks=ranks,
            size=size,
            own_model=model,
            fault=fault == "flip",
            say=lambda line: print(f"demo: {line}", file=sys.stderr),
        )
        if stage.fault:
            print(f"demo: {stage.fault}", file=sys.stderr)
        master = staging.free_address()
        with staging.other_ranks(stage, master, max_rate, folder / "ranks.log", hold=not headless):
            if headless:
                return _headless(stage, master, max_rate, format_)
            return watch(
                ["ranks", *staging.rank_arguments(stage, 0, master, max_rate)],
                title=escape(str(stage.folders[0])),
                start_view="ranks",
                ascii_only=ascii_only,
                line_by_line=line_by_line,
                recorder=recording,
            )


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _headless(stage: Stage, master: str, max_rate: float, format_: str) -> int:
    from ..demo.stage import end, rank_arguments, undisturbed

    command = [sys.executable, "-P", "-m", "ckpt_tui", "ranks", *rank_arguments(stage, 0, master, max_rate)]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with undisturbed():
            processes.append(subprocess.Popen([*command, f"--format={format_}"], stdin=subprocess.DEVNULL))
        return processes[0].wait()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        end(processes)
