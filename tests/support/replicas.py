"""Real Gloo ranks for live tensors: forked from a server that has torch, with a deadline, none left behind."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

#: How long a rank waits for a key that another sets.
_PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True)
class Raised:
    """What a rank's work raised: the exception's class and text, and where."""

    kind: type[BaseException]
    text: str
    trace: str = ""


@dataclass(frozen=True)
class Died:
    """A rank that ended without an answer; the code is as `Process.exitcode` gives it."""

    code: int


@dataclass(frozen=True)
class Rank:
    """What a rank's work is given: its place, a Gloo control group of all, and a store to wait for one another in."""

    rank: int
    size: int
    group: Any
    store: Any

    def tell(self, key: str) -> None:
        """Let others know that something has happened."""
        self.store.set(key, b"1")

    def wait_for(self, *keys: str) -> None:
        """Return once others have told of all of these."""
        self.store.wait(list(keys), _PATIENCE)

    def die(self) -> NoReturn:
        """End as a machine that lost its power does."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def on_ranks(
    size: int, work: Callable[..., Any], *arguments: Any, seconds: float = 60, timeout: float = 30
) -> list[Any]:
    """What `work(rank, *arguments)` returned on each rank, or `Raised` or `Died` in its place.

    `work` is a module's own function. `timeout` is that of the process groups; ranks that have not ended after
    `seconds` are killed, and that is an error.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed", "ckpt_tui.replicas.control"])
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, Path(folder, "store"), (rank, size), timeout, work, arguments), daemon=True
            )
            process.start()
            theirs.close()
            started.append((process, ours))
        end = time.monotonic() + seconds
        try:
            return [_answer(process, ours, rank, end) for rank, (process, ours) in enumerate(started)]
        finally:
            for process, ours in started:
                process.kill()
                process.join(10)
                ours.close()


def _answer(process: Any, ours: Any, rank: int, end: float) -> Any:
    if not multiprocessing.connection.wait([ours], max(end - time.monotonic(), 0)):
        raise AssertionError(f"rank {rank} has not ended in time")
    try:
        return ours.recv()
    except EOFError:
        process.join(10)
        return Died(process.exitcode)


def _serve(  # noqa: PLR0917 - multiprocessing hands them over so
    pipe: Any, path: Path, place: tuple[int, int], timeout: float, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    import torch
    import torch.distributed as dist

    rank, size = place
    torch.set_num_threads(1)
    store = dist.FileStore(str(path), size)
    limit = timedelta(seconds=timeout)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=limit)
    group = dist.new_group(backend="gloo", timeout=limit)
    try:
        answer = work(Rank(rank, size, group, dist.PrefixStore("test", store)), *arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer = Raised(type(error), str(error), traceback.format_exc())
    pipe.send(answer)
    with suppress(EOFError):
        pipe.recv()  # who is done stays until all are: leaving would break the others' group
    os._exit(0)
