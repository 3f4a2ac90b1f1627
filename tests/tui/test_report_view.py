"""The Report view, and the box that writes a report."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
import pytest

from ckpt_tui import tui
from ckpt_tui.report import document as doc
from ckpt_tui.report.saving import Format, render, save
from ckpt_tui.tui.app import CkptApp
from ckpt_tui.tui.farewell import farewell
from ckpt_tui.tui.rows import report as rows
from ckpt_tui.tui.rows.charset import ASCII, UNICODE
from ckpt_tui.tui.rows.spans import width
from ckpt_tui.tui.widgets import export
from tests.tui import streams
from tests.tui.screen import driven, run
from tests.tui.test_files_view import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that reports go to. Its path is short: how a long one is wrapped is not what is asked here."""
    with TemporaryDirectory() as folder, monkeypatch.context() as patch:
        patch.chdir(folder)
        yield Path(folder)


def test_before_there_is_a_result_the_view_says_what_will_be_there() -> None:
    async def check() -> None:
        async with driven(streams.scanning()) as screen:
            await screen.press("5")
            await screen.shows("The report is made when the verdict is there.")
            await screen.press("e")
            await screen.shows("there is no result to report yet")
            screen.source.feed(*streams.scanned()[-3:])
            await screen.shows("Files: 34", "kept (hub)")

    run(check())


def test_the_report_reads_as_it_will_be_written_and_scrolls() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=True)) as screen:
            await screen.press("5")
            await screen.shows("Groups", "breaks a recorded hash of the hub", "Differences: 1 file")
            await screen.press("G")
            await screen.until(lambda: "Groups" not in screen.text)
            await screen.press("g")
            await screen.shows("Groups")
            await screen.press("y")
            await screen.until(lambda: screen.app.clipboard)
            assert screen.app.clipboard.encode() == render(streams.agreement(), Format.MARKDOWN)

    run(check())


def test_format_and_redaction_turn_by_a_key_from_any_view() -> None:
    async def check() -> None:
        async with driven(streams.session(decided=True), size=(120, 60)) as screen:
            await screen.press("f")
            await screen.shows("HTML", "GLM-5.3-Flash-EXL3-differ.html")
            await screen.press("f")
            await screen.shows("JSON", "differ.json")
            await screen.press("x")
            await screen.shows("without hosts and paths", "host-1")
            assert "node-b" not in screen.text
            await screen.press("x")
            await screen.shows("with hosts and paths", "node-b")

    run(check())


def test_e_writes_the_file_says_where_and_the_shell_is_told(here: Path) -> None:
    async def check() -> None:
        async with driven(streams.session(decided=True)) as screen:
            await screen.press("e")
            await screen.shows("export the report", "GLM-5.3-Flash-EXL3-differ.md", f"in {here}")
            await screen.press("enter")
            target = here / "GLM-5.3-Flash-EXL3-differ.md"
            await screen.until(lambda: screen.app.desk.written)
            assert screen.app.desk.written == [str(target)]
            assert target.read_bytes() == render(streams.agreement(), Format.MARKDOWN)
            await screen.until(lambda: "export the report" not in screen.text)
            said = farewell(screen.app.desk.state, "", screen.app.desk.written)
            assert said[-1] == f"  report    {target}"

    run(check())


def test_a_file_that_is_there_is_replaced_only_when_asked_twice(here: Path) -> None:
    async def check() -> None:
        target = here / "GLM-5.3-Flash-EXL3-differ.md"
        target.write_text("mine")
        async with driven(streams.session(decided=True)) as screen:
            await screen.press("e")
            await screen.shows("export the report")
            await screen.press("enter")
            await screen.shows("is there already: enter again replaces it")
            assert target.read_text() == "mine"
            await screen.press("enter")
            await screen.until(lambda: screen.app.desk.written)
            assert target.read_bytes() == render(streams.agreement(), Format.MARKDOWN)
        assert os.listdir(here) == [target.name]  # noqa: PTH208

    run(check())


def test_the_name_says_the_format_and_another_format_changes_the_name(here: Path) -> None:
    async def check() -> None:
        async with driven(streams.scanned()) as screen:
            await screen.press("e")
            await screen.shows("GLM-5.3-Flash-EXL3-scan.md", "Markdown")
            await screen.press("up")
            await screen.shows("GLM-5.3-Flash-EXL3-scan.json", "JSON")
            await screen.press("tab")
            await screen.shows("without hosts and paths")
            await screen.press("home", *"a", "enter")
            await screen.until(lambda: screen.app.desk.written)
            written = json.loads((here / "aGLM-5.3-Flash-EXL3-scan.json").read_text())
            assert written["host"] == "host-1"
            await screen.press("e")
            await screen.shows("aGLM-5.3-Flash-EXL3-scan.json")
            await screen.press("backspace", "enter")
            await screen.shows("the name has to end in one of")

    run(check())


def test_what_cannot_be_written_is_said_and_leaves_nothing(here: Path) -> None:
    async def check() -> None:
        async with driven(streams.scanned()) as screen:
            await screen.press("e")
            await screen.shows("export the report")
            await screen.press("home", *"no/", "enter")
            await screen.shows("could not be written:", "ENOENT: No such")
            await screen.press("escape")
            await screen.until(lambda: "export the report" not in screen.text)
        assert not screen.app.desk.written
        assert os.listdir(here) == []  # noqa: PTH208

    run(check())


class Hearing(io.StringIO):
    """Sets an event when anything is written to it."""

    def __init__(self, heard: threading.Event) -> None:
        super().__init__()
        self._heard = heard

    def write(self, text: str) -> int:
        self._heard.set()
        return super().write(text)


def left_while_writing(monkeypatch: pytest.MonkeyPatch, waits: threading.Event) -> CkptApp:
    """`e`, `enter` and at once `ctrl+c`, while the disk takes its time until an event is set."""

    def slowly(*args: object, **options: object) -> None:
        assert waits.wait(20)
        save(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(export, "save", slowly)
    apps: list[CkptApp] = []

    async def check() -> None:
        async with driven(streams.scanned()) as screen:
            await screen.press("e")
            await screen.shows("export the report")
            await screen.press("enter", "ctrl+c")
            await screen.until(lambda: screen.app.return_code is not None)
            apps.append(screen.app)

    run(check())
    return apps[0]


def test_a_report_that_was_asked_for_just_before_leaving_is_waited_for_and_told(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited = threading.Event()
    app = left_while_writing(monkeypatch, waited)
    assert os.listdir(here) == []  # noqa: PTH208
    monkeypatch.setattr(sys, "stderr", Hearing(waited))
    assert tui._left(app, "") == 0
    target = here / "GLM-5.3-Flash-EXL3-scan.md"
    assert target.read_text()
    assert f"  report    {target}\n" in capsys.readouterr().out


def test_a_report_that_could_not_be_written_after_leaving_is_said(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "GLM-5.3-Flash-EXL3-scan.md").write_text("mine")
    waited = threading.Event()
    app = left_while_writing(monkeypatch, waited)
    waited.set()
    tui._left(app, "")
    assert "  report    not written: there is a file of that name\n" in capsys.readouterr().out
    assert (here / "GLM-5.3-Flash-EXL3-scan.md").read_text() == "mine"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_in_the_report(name: str) -> None:
    part = doc.Table(("file", ""), (((doc.Code(name.encode("unicode_escape").decode()),), ("x",)),), "<>")
    drawn = rows.drawn(doc.Document("t", "DONE", "plain", "s", (part,)), UNICODE, 60)
    text = "\n".join("".join(span.text for span in line) for line in drawn)
    assert name.encode("unicode_escape").decode()[:40] in text


@pytest.mark.parametrize("room", [34, 74, 134])
@pytest.mark.parametrize("charset", [UNICODE, ASCII])
def test_every_line_of_a_report_fits_the_screen(room: int, charset: object) -> None:
    parts = (
        doc.Heading(2, doc.line("Groups and ", doc.Code("a" * 90))),
        doc.Paragraph(doc.line("word " * 40, doc.Code("/x" * 60)), "bad"),
        doc.Table(("a", "bb", "ccc"), (((doc.Code("n" * 80),), ("5",), ("w" * 40,)),), "<><", "3 more"),
        doc.Listing((doc.line("模型" * 30), doc.line("short")), "and 2 more"),
        doc.Block("hf download " + "x" * 100 + "\nsecond"),
    )
    for line in rows.drawn(doc.Document("t", "DIFFER", "bad", "s " * 90, parts), charset, room):  # type: ignore[arg-type]
        assert width(line) <= room, line


def test_names_are_safe_for_a_shell_and_say_what_the_report_is_of() -> None:
    agreement = streams.agreement()
    assert rows.file_name(agreement) == "GLM-5.3-Flash-EXL3-differ.md"
    ranks = (msgspec.structs.replace(agreement.ranks[0], path="/m/-x; rm $HOME \\u202e/"),)
    assert rows.file_name(msgspec.structs.replace(agreement, ranks=ranks)) == "x-rm-HOME-u202e-differ.md"
    assert rows.with_format("a.markdown", Format.HTML) == "a.html"
    assert rows.with_format("a", Format.JSON) == "a.json"
