"""The screen on a recording: the same views, and keys to stand still and to jump."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from ..present import units
from ..stream.messages import Mode, Pause, Seek
from .app import CkptApp
from .keys import KEYS
from .rows import lines

if TYPE_CHECKING:
    from ..stream.playback import Player
    from .keys import Hint, ViewName
    from .rows.spans import Line

REPLAY_KEYS = (
    Binding("p", "pause", "stand still, go on"),
    Binding("left", "jump(-10)", "10 s back"),
    Binding("right", "jump(10)", "10 s on"),
)


class ReplayApp(CkptApp):
    """A recording's screen. Its clock is the recording's."""

    BINDINGS: ClassVar = [*REPLAY_KEYS]
    #: A key that means something else here is listed once.
    keys: ClassVar = (*REPLAY_KEYS, *(one for one in KEYS if one.key not in {key.key for key in REPLAY_KEYS}))

    def __init__(self, player: Player, *, path: str, ascii_only: bool = False, plain: bool = False) -> None:
        """`plain`: no colours of our own, as NO_COLOR asks."""
        view: ViewName = "files" if player.mode is Mode.SCAN else "ranks"
        super().__init__(player, path=path, start_view=view, ascii_only=ascii_only, plain=plain, clock=player)
        self._player = player

    def action_pause(self) -> None:
        """Stand still, or go on."""
        self._player.send(Pause(on=not self._player.paused))

    def action_again(self) -> None:
        """There is nothing to read but the recording."""
        self.notify("a recording reads nothing: left and right go through it", timeout=3)

    def action_rank(self, by: int) -> None:
        """Only the files of the rank that was watched were recorded."""
        del by
        self.notify("a recording shows the rank that was watched", timeout=3)

    def action_jump(self, seconds: int) -> None:
        """Elsewhere in the recording."""
        self._player.send(Seek(seconds=seconds))

    def action_ask(self) -> None:
        """Nobody would miss us."""
        self.action_leave()

    def _footer(self, width: int, _height: int) -> list[Line]:
        now, length = self._player.passed
        how = "ended" if self._player.over else "paused" if self._player.paused else "replay"
        hints: tuple[Hint, ...] = (
            (1, how, f"{units.stopwatch(now)} of {units.stopwatch(length)}"),
            *(() if self._player.over else ((2, "p", "go on" if self._player.paused else "pause"),)),
            (3, "left right", "10 s"),
        )
        # The recorded worker hears nothing.
        others = (hint for hint in self.view.hints if hint[1] not in {"p", "[ ]"})
        return [lines.footer((*hints, *others), self.desk.charset, width)]
