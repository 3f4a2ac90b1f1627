"""The screen. It hashes nothing and holds no process group: it drains a source and draws."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, SystemCommand
from textual.command import CommandPalette
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widgets import Input

from ..facts.clock import SystemClock
from ..present import units
from ..stream.messages import Again, Mode, Pause, Release, Resync, Watch
from ..stream.state import Changes, apply
from .desk import Desk
from .driver import TerminalDriver
from .farewell import exit_code
from .keys import KEYS, commands, shown
from .rows import lines
from .rows.charset import charset
from .theme import ANSI, DARK, LIGHT, SIXTEEN, themes
from .views.cache import CacheView
from .views.files import FilesView
from .views.log import LogView
from .views.mismatch import MismatchView
from .views.ranks import RanksView
from .views.report import ReportView
from .widgets.box import Box, Keys, Leave, ReadAgain
from .widgets.export import Export
from .widgets.line_view import LineView
from .widgets.tab_bar import TabBar
from .widgets.table import TABLE_KEYS, PlainScrollBar, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events
    from textual.app import ComposeResult
    from textual.screen import Screen

    from ..facts.clock import Clock
    from .keys import ViewName
    from .rows.spans import Line
    from .sources import Source
    from .views.view import View

#: Seconds between two looks into the inbox.
_TICK = 0.1
#: What a field that is empty says.
_FIELD = "part of a name"
#: Below these heights the air goes; then tabs and legend go.
_SHORT, _LOW = 28, 20

VIEWS: dict[ViewName, type[View]] = {
    "files": FilesView,
    "ranks": RanksView,
    "mismatch": MismatchView,
    "cache": CacheView,
    "report": ReportView,
    "log": LogView,
}


class CkptApp(App[int]):
    """Files, Ranks and Log of one worker."""

    CSS_PATH = "app.tcss"
    TITLE = "ckpt-tui"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar = [*KEYS]
    #: What the help lists.
    keys: ClassVar = KEYS

    def __init__(
        self,
        source: Source,
        *,
        path: str,
        start_view: ViewName = "files",
        ascii_only: bool = False,
        plain: bool = False,
        light: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """`plain`: no colours of our own, as NO_COLOR asks."""
        super().__init__(TerminalDriver, ansi_color=True if plain else None)
        self._source = source
        self.desk = Desk(charset(ascii_only=ascii_only, plain=plain), clock or SystemClock(), path)
        self.desk.heard_at = self.desk.clock.monotonic()
        self.desk.opened = self.desk.clock.time()
        self._view: ViewName = start_view
        #: The view from which the present one was entered.
        self._before: ViewName = "files" if start_view == "files" else "ranks"
        self._resync_at = float("-inf")
        self._missed = False
        self.set_class(ascii_only, "-ascii")
        ScrollBar.renderer = PlainScrollBar if ascii_only else ScrollBarRender
        for theme in themes():
            self.register_theme(theme)
        self.theme = ANSI if plain else LIGHT if light else DARK
        for name in self.available_themes.keys() - {DARK, LIGHT, ANSI, SIXTEEN}:
            self.unregister_theme(name)

    def compose(self) -> ComposeResult:
        """Title, verdict, tabs, the views, and the keys."""
        yield LineView(lambda width, _: [lines.title(self.desk.state, self.desk.path, self.desk.charset, width)],
                       id="title", height=1)  # fmt: skip
        yield LineView(self._verdict, id="verdict", height=1)
        yield TabBar(self.desk.charset, lambda name: VIEWS[name].applies(self.desk))
        yield FilesView(self.desk)
        yield RanksView(self.desk)
        yield MismatchView(self.desk)
        yield CacheView(self.desk)
        yield ReportView(self.desk)
        yield LogView(self.desk)
        yield Input(placeholder=_FIELD, id="filter", compact=True)
        yield LineView(self._footer, id="footer", height=1)

    def on_mount(self) -> None:
        """Start to drain; leave orderly on the signals that would leave the terminal broken."""
        if self.theme != ANSI and not self.is_headless and self.console.color_system == "standard":
            self.theme = SIXTEEN  # where a terminal has 16 colours ours would become others
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            try:
                loop.add_signal_handler(number, partial(self._leave, 128 + number))
            except (RuntimeError, ValueError):  # not in the main thread, as under some test runners
                break
            # The loop's own handler does nothing; this one runs even where the loop waits for the terminal.
            signal.signal(number, self._told_to_end)
        # What the shell wrote in between is everywhere: a redraw of changed lines is not enough.
        self.app_resume_signal.subscribe(self, lambda _app: self.screen.refresh(layout=True))
        self._show(self._view)
        self.set_interval(_TICK, self._tick)
        self._tick()

    @property
    def view(self) -> View:
        """The view that is shown."""
        return self._base.query_one(VIEWS[self._view])

    @property
    def _base(self) -> Screen[object]:
        """The screen under any box."""
        return self.screen_stack[0]

    def _tick(self) -> None:
        """Take in what has come and draw what changed."""
        desk = self.desk
        batch = self._source.drain()
        changes = apply(desk.state, batch)
        now = desk.clock.monotonic()
        if batch:
            desk.heard_at = now
        self._missed = changes.resync or (self._missed and not changes.snapshot)
        if self._missed and now - self._resync_at >= 1.0:
            self._missed, self._resync_at = False, now
            self._source.send(Resync())
        if lines.nothing_to_watch(desk.state):
            self.action_leave()  # the shell is told why
            return
        desk.sample(changes)
        self._draw(changes)

    def _draw(self, changes: Changes, *, force: bool = False) -> None:
        if not self.is_running or not self.screen_stack:
            return
        for name in ("#title", "#verdict", "#tabs", "#footer"):
            self._base.query_one(name, LineView).redraw()
        self.view.update_rows(changes, force=force)

    def _show(self, name: ViewName) -> None:
        if name != self._view:
            self._view, self._before = name, self._view
        self._base.query_one(TabBar).view = name
        self.view.shown()
        field = self._base.query_one(Input)
        with self.prevent(Input.Changed):
            field.value = self.view.needle
        field.set_class(bool(field.value), "-open")
        for other, kind in VIEWS.items():
            self._base.query_one(kind).display = other == name
        self.view.table.focus()
        self.call_after_refresh(self._draw, Changes(all=True), force=True)

    def on_resize(self, event: events.Resize) -> None:
        """Short screens do without air, low ones without tabs and legend."""
        self._base.set_class(event.size.height < _SHORT, "-short")
        self._base.set_class(event.size.height < _LOW, "-low")
        self.call_after_refresh(self._draw, Changes(all=True), force=True)

    def _verdict(self, width: int, _height: int) -> list[Line]:
        desk = self.desk
        silent = desk.clock.monotonic() - desk.heard_at
        return [lines.verdict_line(lines.standing(desk.state, silent, desk.path), desk.charset, width)]

    def _footer(self, width: int, _height: int) -> list[Line]:
        return [lines.footer(self.view.hints, self.desk.charset, width, self.desk.held)]

    def on_tab_bar_turned(self, event: TabBar.Turned) -> None:
        """A click on a tab."""
        self._show(event.view)

    def on_view_wish(self, event: View.Wish) -> None:
        """What a view wants of the worker."""
        self._source.send(event.command)

    def on_view_left(self) -> None:
        """Back to the view from which the one that is left was entered."""
        self._show(self._before)

    def action_difference(self, by: int) -> None:
        """The next or previous difference; from another view, what differs under its cursor or after it."""
        view, target = self.view, self._base.query_one(MismatchView)
        if not MismatchView.applies(self.desk):
            self.notify("nothing differs, as far as is known", timeout=2)
        elif view is target:
            target.next_difference(by)
            self._draw(Changes(), force=True)
        elif (found := view.next_difference(by)) is not None:
            self._show("mismatch")
            self._draw(Changes(all=True), force=True)
            target.show(found)

    def action_view(self, name: ViewName) -> None:
        """Another view."""
        self._show(name)

    def action_rank(self, by: int) -> None:
        """Watch another rank's files; the answer arrives as state."""
        ranks = sorted(self.desk.state.ranks)
        if not lines.turns(self.desk.state):
            self.notify("there is no other rank to watch", timeout=2)
        else:
            watched = self.desk.state.watched
            place = ranks.index(watched) if watched in ranks else 0
            self._source.send(Watch(rank=ranks[(place + by) % len(ranks)]))

    def action_filter(self) -> None:
        """Type a part of a name."""
        if not self.view.filters:
            self._show("files")
        field = self.query_one(Input)
        field.add_class("-open")
        field.focus()

    def action_out(self) -> None:
        """Away with the filter, or else where the view came from."""
        field = self.query_one(Input)
        if field.has_class("-open"):
            field.value = ""
            field.remove_class("-open")
        else:
            self.view.back()
        self.view.table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed."""
        self.view.set_filter(event.value)
        self._draw(Changes(), force=True)

    def on_input_submitted(self) -> None:
        """The filter stays; the keys go to the table again."""
        field = self.query_one(Input)
        field.set_class(bool(field.value), "-open")
        self.view.table.focus()

    def action_sort(self) -> None:
        """The next order, of the files where the view has none."""
        if not self.view.sorts:
            self._show("files")
        self.view.turn_sort()
        self._draw(Changes(all=True), force=True)

    def action_fold(self) -> None:
        """Open or fold the row under the cursor."""
        self.view.turn_fold()
        self._draw(Changes(all=True), force=True)

    def action_copy(self) -> None:
        """The digest under the cursor to the clipboard, through the terminal."""
        copied = self.view.copied()
        if copied is None:
            self.notify("nothing to copy here yet", timeout=2)
            return
        self.copy_to_clipboard(copied[0])
        # Of a digest its first digits; a whole text is only named.
        shown_ = "" if "\n" in copied[0] else f" {copied[0][:12]}"
        self.notify(f"{copied[1]}{shown_} copied", timeout=2, markup=False)

    def action_export(self) -> None:
        """Ask for a file, and write the report."""
        if self.desk.state.result is None:
            self.notify("there is no result to report yet", timeout=2)
        else:
            self.push_screen(Export(self.desk), lambda _: self._draw(Changes(), force=True))

    def action_format(self) -> None:
        """The report in another format."""
        self.desk.turn_format()
        self._show("report")

    def action_redact(self) -> None:
        """The report with hosts and paths, or without."""
        self.desk.draft.redact = not self.desk.draft.redact
        self._show("report")

    def action_pause(self) -> None:
        """Rest from reading, or go on; what this process reads, that is."""
        hello, status = self.desk.state.hello, lines.pausable(self.desk.state)
        if status is not None:
            self._source.send(Pause(on=not status.paused))
        elif hello is not None and hello.mode is Mode.ATTACH:
            self.notify("only the screen of the rank itself can pause it", timeout=3)
        elif hello is not None and hello.mode is Mode.COMPARE:
            self.notify("a comparison cannot be paused", timeout=2)
        else:
            self.notify("nothing is being read", timeout=2)

    def action_again(self) -> None:
        """Read everything again, after a question; in a session no rank can alone."""
        state = self.desk.state
        if state.hello is None or state.hello.mode is not Mode.SCAN:
            said = "a session reads once, on all ranks: to read again, start every rank anew with --rehash"
            self.push_screen(Box("read again?", [("", said)]))
        elif state.over:
            self.push_screen(Box("read again?", [("", "the worker has ended: start ckpt-tui anew, with --rehash")]))
        else:
            size = units.size(state.survey.bytes_total) if state.survey else "every byte"
            said = f"{size} are read, whatever the cache remembers; the verdict is made anew"
            self.push_screen(ReadAgain([("", said)]))

    def action_start_over(self) -> None:
        """Read everything again."""
        self.pop_screen()
        self._source.send(Again())

    def on_table_opened(self, event: Table.Opened) -> None:
        """Everything about one row, or a step deeper."""
        event.stop()
        if self.view.deeper():
            self._draw(Changes(), force=True)
            return
        details = self.view.details()
        if details is None:
            self.action_fold()
        else:
            name = self.desk.charset.name
            pairs = [(what, name(value)) for what, value in details[1]]
            self.push_screen(Box(name(details[0]), pairs, "y copy   esc back"))

    def action_light(self) -> None:
        """Light or dark; a terminal with few colours has its own ground."""
        if self.theme in {DARK, LIGHT}:
            self.theme = LIGHT if self.theme == DARK else DARK

    def action_help(self) -> None:
        """All keys, made from the bindings."""
        pairs = [(shown(binding.key), binding.description) for binding in (*self.keys, *TABLE_KEYS)]
        self.push_screen(Keys("keys", pairs))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what the keys do, by name."""
        del screen
        for title, help_, action in commands():
            yield SystemCommand(title, help_, partial(self.run_action, action))

    def action_command_palette(self) -> None:
        """The palette; its field says what the filter's says."""
        if not any(isinstance(screen, CommandPalette) for screen in self.screen_stack):
            self.push_screen(CommandPalette(placeholder=_FIELD, id="--command-palette"))

    def action_ask(self) -> None:
        """Leave; in a session whose other ranks would miss this one, ask first."""
        others = lines.in_company(self.desk.state)
        if not others:
            self.action_leave()
            return
        said = f"this rank leaves; {units.count(others, 'other')} will report it missing"
        self.push_screen(Leave([("", said)]))

    def action_leave(self) -> None:
        """Leave with the session's code."""
        self._leave(exit_code(self.desk.state))

    def _told_to_end(self, number: int, _frame: object) -> None:
        if isinstance(self._driver, TerminalDriver):
            self._driver.end_where_stalled(128 + number)

    def _leave(self, code: int) -> None:
        hello = self.desk.state.hello
        if self.desk.held_since is not None and (hello is None or hello.mode is not Mode.ATTACH):
            self._source.send(Release())
        self.exit(return_code=code)
