"""The real program in a real terminal: opened, watched, left in the middle of hashing; the terminal as it was."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.checkpoints import write_checkpoint
from tests.support.waiting import state_of, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A shell in a tmux window of its own server."""

    def __init__(self, folder: Path, columns: int = 110, rows: int = 30, **env: str) -> None:
        self._socket = str(folder / "tmux")
        self.folder = folder
        self._tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "env", *_pairs(env), "sh")
        self.run("PS1='$ '")
        self.run(f"stty -a > {folder / 'before'}")
        wait_until((folder / "before").exists, 10)

    def _tmux(self, *args: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *args]
        # A size in the environment would outrank the window's.
        env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10, env=env).stdout

    def run(self, command: str) -> None:
        self._tmux("send-keys", "-l", command)
        self._tmux("send-keys", "Enter")

    def key(self, name: str) -> None:
        self._tmux("send-keys", name)

    def reset(self) -> None:
        """Nothing on the screen, and no mode on."""
        self._tmux("send-keys", "-R")

    @property
    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    @property
    def raw(self) -> str:
        """With escape sequences."""
        return self._tmux("capture-pane", "-p", "-e")

    def shows(self, *texts: str, seconds: float = 20) -> None:
        with contextlib.suppress(AssertionError):
            wait_until(lambda: all(text in self.screen for text in texts), seconds)
        screen = self.screen
        assert not [text for text in texts if text not in screen], screen

    @property
    def modes(self) -> str:
        """Alternate screen, mouse, keypad: all off at a shell's prompt; and the cursor, which is on."""
        return self._tmux("display-message", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}").strip()

    def is_sane(self) -> bool:
        """Whether a new `stty -a` is what it was, and no mode is left on."""
        after = self.folder / f"after-{uuid.uuid4().hex}"
        self.run(f"stty -a > {after}")
        wait_until(lambda: after.exists() and after.stat().st_size, 10)
        same = after.read_text() == (self.folder / "before").read_text()
        return same and self.modes == "0 0 1"

    def close(self) -> None:
        """As a window is closed. Nobody who had it may stay behind."""
        with contextlib.suppress(subprocess.SubprocessError):
            self._tmux("kill-server")
        wait_until(lambda: not processes(self.folder), 20, what="the end of all who had the terminal")


def _pairs(env: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in env.items()]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, TERM="tmux-256color")
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", shards=4, tensors=2, shape=(512, 1024))


def command(checkpoint: Path, *options: str) -> str:
    """The screen on a scan; the shell tells its code on a line of its own."""
    argv = [sys.executable, "-P", "-m", "ckpt_tui", str(checkpoint), f"--cache-dir={checkpoint.parent / 'cache'}"]
    return f"clear; {shlex.join([*argv, *options])}; echo left with $?"


SLOW = "--max-rate=1M"


def processes(folder: Path, *, worker: bool | None = None) -> list[int]:
    """Processes of ours over this folder; with `worker`, only the worker or only the screen."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                ours = b"ckpt_tui" in words and any(os.fsencode(folder) in word for word in words)
                if ours and worker in {None, b"_worker" in words}:
                    found.append(int(entry.name))
    return found


def leave(terminal: Terminal, code: int, begun: float) -> None:
    """It is gone within two seconds with this code, nothing is left behind, and the terminal is as it was."""
    terminal.shows(f"left with {code}", seconds=2.0)
    assert time.monotonic() - begun < 2.5  # two, and the shell's own
    assert processes(terminal.folder) == []
    assert terminal.is_sane()


@pytest.mark.parametrize("key", ["q", "C-c"])
def test_left_with_a_key_in_the_middle_of_hashing(terminal: Terminal, checkpoint: Path, key: str) -> None:
    """Cases U04, keys; U05."""
    terminal.run(command(checkpoint, SLOW))
    terminal.shows("READING", "model-*-of-00004", "to go", "q quit")
    assert terminal.modes.startswith("1")
    begun = time.monotonic()
    terminal.key(key)
    leave(terminal, 130, begun)
    terminal.shows("STOPPED  before a verdict")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_left_by_a_signal_in_the_middle_of_hashing(
    terminal: Terminal, checkpoint: Path, number: signal.Signals
) -> None:
    """Cases U04, signals; U05."""
    terminal.run(command(checkpoint, SLOW))
    terminal.shows("READING", "to go")
    (screen,) = processes(terminal.folder, worker=False)
    begun = time.monotonic()
    os.kill(screen, number)
    leave(terminal, 128 + number, begun)


def test_a_terminal_that_goes_away_takes_all_of_it_along(terminal: Terminal, checkpoint: Path) -> None:
    """Case U04, SIGHUP."""
    terminal.run(command(checkpoint, SLOW))
    terminal.shows("READING", "to go")
    terminal.close()
    wait_until(lambda: not processes(terminal.folder), 5, what="screen and worker to end")


def test_watched_to_the_end_it_leaves_with_the_scans_code_and_prints_the_verdict(
    terminal: Terminal, checkpoint: Path
) -> None:
    cut = checkpoint / "model-00003-of-00004.safetensors"
    os.truncate(cut, cut.stat().st_size - 1)
    terminal.run(command(checkpoint))
    terminal.shows("DAMAGED", "1 shard truncated")
    terminal.key("q")
    leave(terminal, 1, time.monotonic())
    terminal.shows("DAMAGED  1 shard truncated", cut.name)


def test_a_killed_worker_is_said_and_the_terminal_stays_fine(terminal: Terminal, checkpoint: Path) -> None:
    """Case U04, a crash."""
    terminal.run(command(checkpoint, SLOW))
    terminal.shows("READING", "to go")
    (worker,) = processes(terminal.folder, worker=True)
    os.kill(worker, signal.SIGKILL)
    terminal.shows("NO BEAT", "the worker died with signal 9")
    terminal.key("q")
    leave(terminal, 3, time.monotonic())


def test_a_stopped_worker_is_said_and_still_leaves_in_time(terminal: Terminal, checkpoint: Path) -> None:
    terminal.run(command(checkpoint, SLOW))
    terminal.shows("READING", "to go")
    (worker,) = processes(terminal.folder, worker=True)
    os.kill(worker, signal.SIGSTOP)
    terminal.shows("NO BEAT", "no word from the worker")
    terminal.key("q")
    leave(terminal, 130, time.monotonic())


def test_a_path_that_is_none_is_told_to_the_shell(terminal: Terminal) -> None:
    terminal.run(command(terminal.folder / "nothing-here"))
    terminal.shows("FAILED", "nothing-here", "left with 2")
    assert processes(terminal.folder) == []
    assert terminal.is_sane()


def test_to_the_shell_and_back(terminal: Terminal, checkpoint: Path) -> None:
    terminal.run("set -m")
    terminal.run(command(checkpoint, SLOW))
    terminal.shows("READING", "to go")
    terminal.key("C-z")
    terminal.shows("$")
    wait_until(lambda: terminal.modes.startswith("0"), 5)
    terminal.run("fg")
    terminal.shows("READING", "q quit")
    terminal.key("q")
    wait_until(lambda: terminal.modes == "0 0 1", 5)


def test_stopped_from_outside_it_takes_the_terminal_again_and_no_thread_more(
    terminal: Terminal, checkpoint: Path
) -> None:
    terminal.run("set +m")  # the shell does not notice
    terminal.run(command(checkpoint, SLOW))
    terminal.shows("READING", "to go")
    (screen,) = processes(terminal.folder, worker=False)
    proc = Path(f"/proc/{screen}")
    before = len(list((proc / "task").iterdir()))
    os.kill(screen, signal.SIGSTOP)
    wait_until(lambda: state_of(screen) == "T", 5)
    terminal.reset()
    os.kill(screen, signal.SIGCONT)
    terminal.shows("READING", "q quit")
    wait_until(lambda: terminal.modes == "1 1 0", 5)
    wait_until(lambda: len(list((proc / "task").iterdir())) == before, 5)
    begun = time.monotonic()
    terminal.key("q")
    leave(terminal, 130, begun)


def test_no_colour_is_sent_where_none_is_wanted(tmp_path: Path, checkpoint: Path) -> None:
    """Case U06, NO_COLOR."""
    opened = Terminal(tmp_path, TERM="tmux-256color", NO_COLOR="1")
    try:
        opened.run(command(checkpoint, SLOW))
        opened.shows("READING", "to go")
        # SGR 30-38, 40-48, 90-107 are colours; 39 and 49 the defaults; 0, 1, 2, 7, 22, 27 are styles.
        sequences = {
            number
            for part in opened.raw.split("\x1b[")[1:]
            for number in part.split("m")[0].split(";")
            if part.split("m")[0].replace(";", "").isdecimal()
        }
        assert {number for number in sequences if len(number) > 1} <= {"22", "27", "39", "49"}
        opened.key("q")
        opened.shows("left with 130")
    finally:
        opened.close()


def test_sixteen_colours_keep_amber_amber_and_green_green(tmp_path: Path, checkpoint: Path) -> None:
    """Case U06, sixteen colours."""
    shard = checkpoint / "model-00002-of-00004.safetensors"
    shard.write_bytes(shard.read_bytes()[:-5])
    opened = Terminal(tmp_path, TERM="linux", COLORTERM="")
    try:
        opened.run(command(checkpoint))
        opened.shows("DAMAGED", "truncated")
        colours = re.findall(r"\x1b\[([\d;]*)m", opened.raw)
        numbers = {number for colour in colours for number in colour.split(";")}
        assert numbers >= {"41", "97"}, "the word DAMAGED lies on the terminal's own red"
        assert "38" not in numbers
        assert "48" not in numbers
        opened.key("q")
        opened.shows("left with 1")
    finally:
        opened.close()


def test_a_locale_without_utf8_gets_plain_ascii(tmp_path: Path, checkpoint: Path) -> None:
    """Case U06, LC_ALL=C."""
    opened = Terminal(tmp_path, TERM="tmux-256color", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    try:
        opened.run(command(checkpoint, SLOW))
        opened.shows("READING", "to go", "> ")
        assert opened.screen.isascii()
        opened.key("q")
        opened.shows("left with 130")
    finally:
        opened.close()


def test_a_dumb_terminal_gets_plain_output(tmp_path: Path, checkpoint: Path) -> None:
    """Case U06, TERM=dumb."""
    opened = Terminal(tmp_path, TERM="dumb")
    try:
        opened.run(command(checkpoint))
        opened.shows("left with 0")
        assert opened.modes.startswith("0")
    finally:
        opened.close()


def test_without_a_terminal_it_is_a_scan(checkpoint: Path) -> None:
    """Case U06, no terminal."""
    argv = [sys.executable, "-P", "-m", "ckpt_tui", str(checkpoint), "--no-cache"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert b"content" in done.stdout
