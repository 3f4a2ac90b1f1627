"""A terminal that nobody reads any more: a screen that is told to end does so all the same, and leaves it as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

from tests.support.checkpoints import write_checkpoint
from tests.support.waiting import wait_until


def read(master: int) -> bytes:
    return os.read(master, 1 << 16) if select.select([master], [], [], 0.1)[0] else b""


def children(process: int) -> set[int]:
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, check=False, timeout=10).stdout
    return set(map(int, found.split()))


def test_a_terminal_that_is_not_read_keeps_nobody_who_was_told_to_end(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model")
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "ckpt_tui", str(folder)]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env) as screen:
        try:
            shown = bytearray()
            wait_until(lambda: shown.extend(read(master)) or b"DONE" in shown, 30)
            worker = children(screen.pid)
            assert worker
            full = False
            while not full:  # each key draws the whole screen anew, until nothing more goes in
                os.write(master, b"16")
                full = not select.select([], [slave], [], 0.5)[1]
            screen.send_signal(signal.SIGTERM)
            assert screen.wait(10) == 128 + signal.SIGTERM
            assert termios.tcgetattr(slave) == before
            wait_until(lambda: not any(Path(f"/proc/{child}/fd/0").exists() for child in worker), 10)
        finally:
            screen.kill()
            os.close(slave)
            os.close(master)
