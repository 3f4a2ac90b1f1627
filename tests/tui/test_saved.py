"""A saved result on the screen, and the ways that lead there from the command line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from ckpt_tui.facts.agreement import Agreement, Between, Cause, CauseCode, DifferingSegment, Standing
from ckpt_tui.facts.files import MissReason, SegmentKind, Source, State
from ckpt_tui.report import json
from ckpt_tui.tui.saved import messages, view_of
from tests.tui import streams
from tests.tui.screen import driven, run

if TYPE_CHECKING:
    from pathlib import Path

    from ckpt_tui.facts.base import Fact


def test_a_saved_agreement_opens_at_what_differs_as_far_as_it_was_drilled() -> None:
    found = streams.drilled(found=streams.drill(runs=(29_590_683, 41_943_041)))

    async def check() -> None:
        async with driven(messages(found), size=(120, 40), start_view=view_of(found)) as screen:
            await screen.shows("DIFFER", "rank 2 (node-c) differs", "bit 15, the sign", "leaf 28")
            await screen.press("down", "enter")
            await screen.shows("nobody is held ready: this is a saved result.")
            await screen.press("2")
            await screen.shows("node-c", "33/33", "wrong: breaks a recorded hash")
            await screen.press("1")
            await screen.shows("a saved agreement lists no files but those that differ")
            assert screen.source.commands == []

    run(check())


def test_a_report_of_live_replicas_opens_at_its_tensors() -> None:
    found = replicas()

    async def check() -> None:
        async with driven(messages(found), size=(120, 40), start_view=view_of(found)) as screen:
            await screen.shows("DIFFER", "1 kind differs", "▾ parameters", "norm.weight", "dad907b786e9", "128 bytes")
            assert "cause" not in screen.text
            assert "of the file" not in screen.text
            await screen.press("2")
            await screen.shows("minority: 1 of 2 ranks", "1 kind differs", "1 of 15 differs: 1 in its bits")
            assert "0/15" not in screen.text

    run(check())


def replicas() -> Agreement:
    """One parameter that one of two ranks holds otherwise."""
    tensor = DifferingSegment(
        name="norm.weight", kind=SegmentKind.TENSOR, offset=0, length=128,
        held={"A": "F32 [32] dad907b786e9", "B": "F32 [32] 8ea51dd47f55"},
    )  # fmt: skip
    cause = Cause(
        code=CauseCode.UNKNOWN, summary="1 of 15 differs: 1 in its bits", facts=(), mend="", candidate=False
    )  # fmt: skip
    found = streams.agreement()
    different = msgspec.structs.replace(
        found.differences[0], file="parameters", segments=(tensor,), cause=cause,
        groups={"A": "15 entries, c3712547fcb3", "B": "15 entries, 2c302242f41c"},
    )  # fmt: skip
    groups = [
        msgspec.structs.replace(group, ranks=(rank,), copies=1, standing=standing, evidence=("1 of 2 ranks",))
        for rank, (group, standing) in enumerate(zip(found.groups, (Standing.MAJORITY, Standing.MINORITY), strict=True))
    ]
    return msgspec.structs.replace(
        found, between=Between.REPLICAS, world_size=2, differences=(different,), groups=tuple(groups),
        ranks=tuple(msgspec.structs.replace(one, group="AB"[one.rank], files=15) for one in found.ranks[:2]),
    )  # fmt: skip


def test_a_saved_scan_opens_with_its_files() -> None:
    good = streams.result("model-00001-of-00002.safetensors", cached=True)
    bad = streams.result(
        "model-00002-of-00002.safetensors",
        state=State.TRUNCATED,
        error="12 bytes short",
        digest=None,
        sha256=None,
        source=Source.READ,
        miss_reason=MissReason.NEW,
    )
    found = streams.scan_result((good, bad))

    async def check() -> None:
        async with driven(messages(found), start_view=view_of(found)) as screen:
            await screen.shows("DAMAGED", "1 shard truncated", "truncated: 12 bytes short", "cached, 3 d ago")
            await screen.press("R")
            await screen.shows("the worker has ended")

    run(check())


def written(folder: Path, result: Fact) -> str:
    path = folder / "result.json"
    path.write_bytes(json.encode(result))
    return str(path)


def ckpt_tui(*argv: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "ckpt_tui", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)


def test_a_saved_result_as_path_prints_what_report_prints_where_there_is_no_terminal(tmp_path: Path) -> None:
    path = written(tmp_path, streams.drilled())
    shown, told = ckpt_tui(path), ckpt_tui("report", path)
    assert (shown.returncode, told.returncode) == (0, 0)
    assert shown.stdout == told.stdout
    assert shown.stdout.startswith("DIFFER  rank 2")


@pytest.mark.parametrize("argv", [("compare", "a", "b", "--tui"), ("report", "{}", "--tui")])
def test_a_screen_without_a_terminal_is_refused_with_advice(argv: tuple[str, ...], tmp_path: Path) -> None:
    path = written(tmp_path, streams.drilled())
    done = ckpt_tui(*(word.format(path) for word in argv))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--tui needs a terminal; without one" in done.stderr


@pytest.mark.parametrize("more", [("--json",), ("--report", "x.md")])
def test_a_screen_writes_no_report_and_no_json(more: tuple[str, ...]) -> None:
    done = ckpt_tui("compare", "a", "b", "--tui", *more)
    assert done.returncode == 2
    assert "--tui draws a screen" in done.stderr


def test_a_json_that_holds_no_result_is_wrong_usage(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}")
    done = ckpt_tui(str(path))
    assert done.returncode == 2
    assert "holds no result of ckpt-tui" in done.stderr


def test_on_a_terminal_a_saved_result_is_shown_without_any_child_process(tmp_path: Path) -> None:
    path = written(tmp_path, streams.drilled())
    code = (
        "import subprocess, sys, threading, ckpt_tui.tui.app as app\n"
        "def none(*_args, **_more): raise AssertionError('a child process')\n"
        "subprocess.Popen = none\n"
        "kept = app.CkptApp.on_mount\n"
        "def mounted(self):\n"
        "    kept(self); self.set_interval(0.05, lambda: self.desk.agreement and self.action_leave())\n"
        "app.CkptApp.on_mount = mounted\n"
        "from ckpt_tui.cli.main import run\n"
        f"sys.exit(run([{path!r}]))\n"
    )
    master, slave = pty.openpty()
    try:
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env) as child:
            os.close(slave)
            shown = b""
            try:
                while chunk := os.read(master, 1 << 16):
                    shown += chunk
            except OSError:  # the other end is closed
                pass
            assert child.wait(30) == 0
    finally:
        os.close(master)
    assert b"DIFFER  rank 2" in shown
