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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ckpt_tui.facts.status import RankStatus
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.messages import Pulse, decode
from ckpt_tui.ranks.native import load_torch
from ckpt_tui.ranks.roster import read_roster
from ckpt_tui.ranks.store import connect
from ckpt_tui.ranks.telemetry import pulse_key
from tests.support.waiting import wait_until

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
    host: str = "127.0.0.1"
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
        rank: int | None,
        folder: Path | str,
        *options: str,
        world_size: int | None = None,
        name: str = "",
        env: dict[str, str] | None = None,
        before: tuple[str, ...] = (),
        program: tuple[str, ...] = ("ckpt_tui",),
    ) -> None:
        """Start one rank, by the words in `before`; `name` tells it from another process of the same rank.

        None: the store hands it a number. `program` is the module that stands in for ours, and its arguments.
        """
        command = [
            *(*before, sys.executable, "-m", *program, "ranks", str(folder), "--json", "--no-cache"),
            *("--master", f"{self.host}:{self.port}", "--world-size", str(world_size or self.world_size)),
            *(() if rank is None else ("--rank", str(rank))),
            *self.options,
            *options,
        ]
        self.launch(name or str(rank), command, env)

    def launch(self, name: str, command: list[str], env: dict[str, str] | None = None) -> None:
        """Start any process as part of this session."""
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        clean = {key: value for key, value in os.environ.items() if key not in LAUNCHER}
        clean["PYTHONFAULTHANDLER"] = "1"  # one that hangs tells where
        self._streams[name] = (out, err)
        self._processes[name] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=clean | (env or {}), start_new_session=True
        )

    def process(self, name: int | str) -> subprocess.Popen[bytes]:
        """The process of a rank."""
        return self._processes[str(name)]

    def mark(self) -> None:
        """Count seconds from now on."""
        self._since = time.monotonic()

    def signal(self, name: int | str, number: signal.Signals) -> None:
        """Send a rank a signal, and count seconds from now on."""
        self.mark()
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
            assert not left or time.monotonic() < deadline, self._stuck(left, seconds)
            time.sleep(0.01)
        return [ended[name] for name in wanted]

    def _stuck(self, left: list[str], seconds: float) -> str:
        """What those who hang have said, and where each of their threads is."""
        for name in left:
            self._processes[name].send_signal(signal.SIGABRT)
            with suppress(subprocess.TimeoutExpired):
                self._processes[name].wait(5)
        return f"still running after {seconds} s: " + "\n".join(f"{name}: {self.said(name)}" for name in left)


def session(folders: list[Path], *options: str, seconds: float = 40) -> list[Ended]:
    """One whole session, a rank for each folder."""
    with Ranks(len(folders), options) as ranks:
        for rank, folder in enumerate(folders):
            ranks.start(rank, folder)
        return ranks.end(seconds=seconds)


def wait_for_reading(port: int, world_size: int, *, scope: str = "ckpt-tui") -> None:
    """Watch a session's store from outside until all ranks hash, and until each has then heard the others."""
    address = Address("127.0.0.1", port)
    wait_until(lambda: is_open(address), 30, what="the store")
    store = connect(load_torch(), address, seconds=30, patience=30)
    try:
        wait_until(lambda: store.has(f"{scope}/call/1/roster"), 30, what="the first rank")

        def statuses() -> dict[int, RankStatus]:
            hellos, _ = read_roster(store.get([f"{scope}/call/1/roster"])[0])
            pulses = store.get([pulse_key(scope, hello) for hello in hellos])
            return {hello.rank: decode(raw, Pulse).status for hello, raw in zip(hellos, pulses, strict=True)}

        def read() -> bool:
            doing = [status.doing for status in statuses().values()]
            return len(doing) == world_size and all(words.startswith("reading model-") for words in doing)

        wait_until(read, 30, what="all ranks hashing")
        beats = {rank: status.beat for rank, status in statuses().items()}
        # Two beats on, a rank has listened to all others once, whole.
        wait_until(lambda: all(now.beat >= beats[rank] + 2 for rank, now in statuses().items()), 30, what="two beats")
    finally:
        store.close()


def is_open(address: Address) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True
