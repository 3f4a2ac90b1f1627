"""`ckpt-tui attach HOST:PORT`: the screen on a session of ranks that runs elsewhere."""

from __future__ import annotations

import click

from ..facts.outcome import UsageError
from .lines import plain_option, record_options, recorder
from .open import is_terminal, watch
from .options import Age


@click.command()
@click.argument("address", metavar="HOST:PORT")
@click.option(
    "--wait", type=Age(), default="15s", show_default=True, help="How long to wait for a session that has not begun."
)
@click.option("--session", type=click.IntRange(min=1), help="Which one, where several run.  [default: the newest]")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with plain ASCII.")
@plain_option
@record_options
def command(
    *,
    address: str,
    wait: float,
    session: int | None,
    ascii_only: bool,
    line_by_line: bool,
    record: str | None,
    force: bool,
) -> int:
    """Watch a session of ranks: HOST:PORT is where rank 0 listens, under torchrun MASTER_ADDR:MASTER_PORT.

    Come and go as you like, on any machine that reaches it: the ranks wait for no viewer. Leaves with the ranks' code,
    with 130 when left before their verdict, and with 4 where there is no session.
    """
    from ..ranks.address import parse_address

    parsed = parse_address(address, given_by="attach")
    if not is_terminal() and not line_by_line:
        raise UsageError("attach needs a terminal for its screen; --plain prints lines instead")
    return watch(
        ["attach", f"--wait={wait}", *([f"--session={session}"] if session else []), "--", address],
        title=str(parsed),
        start_view="ranks",
        ascii_only=ascii_only,
        line_by_line=line_by_line,
        recorder=recorder(record, force=force),
    )
