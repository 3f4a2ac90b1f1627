"""Signals that come at any moment: what they ask for is done between two steps of the app, never amid one."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.support.waiting import state_of, wait_until

#: An app whose main thread is writing (it holds the lock of the queue of what is to be written) when the signal comes,
#: and which is continued once more after it has left the terminal.
SCRIPT = """
import asyncio, os, signal, sys
from textual.app import App, ComposeResult
from textual.widgets import Static
from ckpt_tui.tui.driver import TerminalDriver

class Writing(App[int]):
    def __init__(self) -> None:
        super().__init__(driver_class=TerminalDriver)

    def compose(self) -> ComposeResult:
        yield Static("before", id="text")

    def on_mount(self) -> None:
        self.set_timer(0.2, self.signal)

    def signal(self) -> None:
        with self._driver._writer_thread._queue.mutex:
            os.kill(os.getpid(), int(sys.argv[1]))
        self.query_one("#text").update("afterwards")
        self.set_timer(0.5, lambda: self.exit(7))

async def run(app: Writing) -> None:
    await app.run_async()
    os.kill(os.getpid(), signal.SIGCONT)  # a terminal that is closed sends it, also to who is about to end
    await asyncio.sleep(0.2)

app = Writing()
asyncio.run(run(app))
sys.exit(app.return_value)
"""


@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGTSTP])
def test_a_signal_that_comes_amid_writing_stops_nothing_and_one_that_comes_late_keeps_nobody(number: int) -> None:
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    command = [sys.executable, "-c", SCRIPT, str(int(number))]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env) as app:
        try:
            shown, stopped = b"", 0
            deadline = time.monotonic() + 30
            while app.poll() is None and time.monotonic() < deadline:
                if select.select([master], [], [], 0.1)[0]:
                    shown += os.read(master, 1 << 16)
                if state_of(app.pid) == "T":
                    stopped += 1
                    app.send_signal(signal.SIGCONT)
                    wait_until(lambda: state_of(app.pid) != "T", 10)
            assert app.poll() == 7, shown
            assert stopped == (1 if number == signal.SIGTSTP else 0)
            assert b"afterwards" in shown
        finally:
            app.kill()
            os.close(slave)
            os.close(master)
