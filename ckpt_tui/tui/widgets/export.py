"""The box that asks which file a report goes to, and writes it: whole or not at all."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from ...facts.outcome import UsageError
from ...present.safe import escape
from ...report.saving import save
from ..aside import aside
from ..rows.report import FORMATS, format_named
from ..rows.spans import Line, line, pieces
from .line_view import LineView

if TYPE_CHECKING:
    from textual.app import App, ComposeResult

    from ..desk import Desk


class Export(ModalScreen[None]):
    """A file name, its format, and whether hosts and paths are named."""

    BINDINGS: ClassVar = [
        Binding("escape", "app.pop_screen", "back"),
        Binding("down", "format(1)", "another format", priority=True),
        Binding("up", "format(-1)", "another format", priority=True),
        Binding("tab", "redact", "hosts and paths, or none", priority=True),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        #: The name that is there already and may be replaced, because it was asked for a second time.
        self._sure = ""
        self._said: tuple[str, str] = ("", "")
        self._busy = False

    def compose(self) -> ComposeResult:
        """What it will be, the name, and what became of it."""
        with Vertical() as box:
            yield LineView(self._format, id="export-format", height=1)
            yield Input(self._desk.report_name, id="export-name", compact=True)
            yield LineView(self._message, id="export-message")
        box.border_title = "export the report"
        box.border_subtitle = "enter write   esc back"

    def on_mount(self) -> None:
        """The cursor at the end of the name."""
        field = self.query_one(Input)
        field.focus()
        field.cursor_position = len(field.value)

    def _redraw(self) -> None:
        for view in self.query(LineView):
            view.redraw()
            view.refresh(layout=True)

    def _format(self, width: int, _height: int) -> list[Line]:
        kind = format_named(self._desk.report_name)
        named = "without hosts and paths" if self._desk.draft.redact else "with hosts and paths"
        up_down = "up/down" if self._desk.charset.ascii_only else "↑↓"
        parts = [
            (0, line((FORMATS[kind][0] if kind else "no format", "strong"))),
            (2, line((up_down, "active"), (" format", "dim"))),
            (1, line(named)),
            (3, line(("tab", "active"), (" hosts", "dim"))),
        ]
        return [pieces(parts, width)]

    def _message(self, width: int, _height: int) -> list[Line]:
        text, tone = self._said
        text = self._desk.charset.name(text or f"in {escape(str(Path.cwd()))}")
        wrapped = wrap(text, max(width, 8), break_on_hyphens=False, max_lines=4, placeholder=" ...")
        return [line((part, tone or "dim")) for part in wrapped]

    def _say(self, text: str, tone: str = "warn") -> None:
        self._said = (text, tone if text else "")
        self._redraw()

    def action_format(self, by: int) -> None:
        """Another format: the name gets its suffix."""
        desk, field = self._desk, self.query_one(Input)
        desk.draft.name = field.value
        desk.draft.format = format_named(field.value) or desk.draft.format
        desk.turn_format(by)
        field.value = desk.report_name
        field.cursor_position = len(field.value)
        self._redraw()

    def action_redact(self) -> None:
        """With hosts and paths, or without."""
        self._desk.draft.redact = not self._desk.draft.redact
        self._redraw()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another name is another file."""
        event.stop()
        draft = self._desk.draft
        draft.name = event.value if event.value != self._desk.report_name else draft.name
        draft.format = format_named(event.value) or draft.format
        self._sure = ""
        self._say("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write it, in a thread: a disk may hang."""
        event.stop()
        desk, name = self._desk, event.value.strip()
        if format_named(name) is None or desk.state.result is None:
            known = ", ".join(suffix for _, suffix in FORMATS.values())
            self._say(f"the name has to end in one of {known}: it says what is written")
            return
        if self._busy:
            return
        self._busy = True
        result, redact, force, app = desk.state.result, desk.draft.redact, name == self._sure, self.app

        def work() -> str:
            path = Path(name).expanduser().absolute()
            try:
                save(result, path, force=force, redact=redact)
            except UsageError as error:
                if isinstance(error.__cause__, FileExistsError):
                    return ""
                raise
            told = escape(str(path))
            desk.written.append(told)  # also where the screen is gone by now: the shell is told
            return told

        def then(path: str | None, error: str) -> None:
            self._busy, desk.writing = False, None
            self._finish(app, name, path, error)

        desk.writing = aside(app, work, then)

    def _finish(self, app: App[int], name: str, path: str | None, error: str) -> None:
        if path:
            app.notify(f"written: {path}", timeout=4, markup=False)
            if self.is_current:
                self.dismiss()
        elif path is not None:
            self._sure = name
            self._say(f"{escape(name)} is there already: enter again replaces it")
        else:
            self._say(error, "bad")
