"""Real ranks: processes of `ckpt-tui ranks` on a free port, with a deadline, and none left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: What a launcher sets; a rank that is told its place by flags must not see the test run's own.
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")


@dataclass(frozen=True)
class Ended:
    """How a rank ended: its code, both streams, and seconds since `Ranks` began or `Ranks.mark` was called."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def agreement(self) -> dict[str, Any]:
        """What it printed: one JSON value and nothing else."""
        agreement: dict[str, Any] = json.loads(self.out)
        return agreement


def free_port() -> int:
    """A port that the system chose and nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Ranks:
    """A session's processes. Use as a context manager: whatever happens, none outlives the block."""

    world_size: int
    options: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _streams: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(10)
        for out, err in self._streams.values():
            out.close()
            err.close()

    def start(
        self,
        rank: int,
        folder: Path | str,
        *options: str,
        world_size: int | None = None,
        name: str = "",
        env: dict[str, str] | None = None,
    ) -> None:
        """Start one rank; `name` tells it from another process of the same rank."""
        command = [
            *(sys.executable, "-m", "ckpt_tui", "ranks", str(folder), "--json", "--no-cache"),
            *("--master", f"127.0.0.1:{self.port}", "--world-size", str(world_size or self.world_size)),
            *("--rank", str(rank), *self.options, *options),
        ]
        self.launch(name or str(rank), command, env)

    def launch(self, name: str, command: list[str], env: dict[str, str] | None = None) -> None:
        """Start any process as part of this session."""
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        clean = {key: value for key, value in os.environ.items() if key not in LAUNCHER}
        self._streams[name] = (out, err)
        self._processes[name] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=clean | (env or {}), start_new_session=True
        )

    def process(self, name: int | str) -> subprocess.Popen[bytes]:
        """The process of a rank."""
        return self._processes[str(name)]

    def signal(self, name: int | str, number: signal.Signals) -> None:
        """Send a rank a signal, and count seconds from now on."""
        self._since = time.monotonic()
        self.process(name).send_signal(number)

    def said(self, name: int | str) -> str:
        """What a rank has written on stderr so far."""
        return os.pread(self._streams[str(name)][1].fileno(), 1 << 20, 0).decode()

    def end(self, *names: int | str, seconds: float = 40) -> list[Ended]:
        """Wait for these ranks, or for all, and tell how they ended. One that hangs is an error."""
        wanted = [str(name) for name in names] or list(self._processes)
        deadline = time.monotonic() + seconds
        ended: dict[str, Ended] = {}
        while len(ended) < len(wanted):
            for name in wanted:
                if name not in ended and (code := self._processes[name].poll()) is not None:
                    out, err = (os.pread(stream.fileno(), 1 << 24, 0).decode() for stream in self._streams[name])
                    ended[name] = Ended(code, out, err, time.monotonic() - self._since)
            left = [name for name in wanted if name not in ended]
            assert not left or time.monotonic() < deadline, f"still running after {seconds} s: {left}"
            time.sleep(0.01)
        return [ended[name] for name in wanted]


def session(folders: list[Path], *options: str, seconds: float = 40) -> list[Ended]:
    """One whole session, a rank for each folder."""
    with Ranks(len(folders), options) as ranks:
        for rank, folder in enumerate(folders):
            ranks.start(rank, folder)
        return ranks.end(seconds=seconds)
