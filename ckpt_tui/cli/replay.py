"""`ckpt-tui replay FILE`: a recording, shown again."""

from __future__ import annotations

import click

from ..facts.clock import SystemClock
from ..present.safe import escape
from .lines import narrate, plain_option
from .open import is_terminal, speaks_utf8, wants_no_colour


@click.command()
@click.argument("file")
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="How fast: 2 is twice as fast as it was, 0 all at once.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with plain ASCII.")
@plain_option
def command(*, file: str, speed: float, ascii_only: bool, line_by_line: bool) -> int:
    """Show again what `--record FILE` kept, at the pace at which it came: p stands still, the arrow keys jump by 10 s.

    Where there is no terminal, this prints how it ended. The exit code is the recorded one, 3 where the recording ends
    before a verdict.
    """
    from ..stream.playback import Player
    from ..stream.recording import Recording
    from ..tui import replay

    screen = is_terminal() and not line_by_line
    player = Player(Recording(file), SystemClock(), speed=speed if screen or line_by_line else 0)
    if not screen:
        return narrate(player, escape(file), at_once=not line_by_line)
    return replay(player, title=escape(file), ascii_only=ascii_only or not speaks_utf8(), plain=wants_no_colour())
