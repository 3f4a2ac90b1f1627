"""What the demo sets up: one folder a rank, the fault, the digests that an earlier scan left, the rank processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..checkpoint import locate
from ..digest import scan
from ..facts.files import State
from ..facts.outcome import CkptError, UsageError
from ..facts.settings import ScanSettings
from ..present import units
from . import model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..checkpoint import Checkpoint, CheckpointFile

#: The shard that gets the fault, counted from 1: behind those that were scanned before.
FAULTY_SHARD = 3


@dataclass(frozen=True)
class Stage:
    """A set-up demo: a checkpoint folder for each rank, and what was done to the last rank's."""

    folders: tuple[Path, ...]
    cache_dir: Path
    fault: str | None


def set_up(
    folder: Path,
    *,
    ranks: int,
    size: int,
    own_model: str | None,
    fault: bool,
    say: Callable[[str], None],
) -> Stage:
    """Lay everything out in `folder`; `say` gets a line before each step.

    Raises CkptError where the disk is too small.
    """
    nodes = [folder / f"node-{chr(ord('a') + rank)}" for rank in range(ranks)]
    if own_model is None:
        _check_room(folder, ranks * (size + size // 8))
        source = nodes.pop(0) / "demo-model"
        source.mkdir(parents=True)
        say(f"writing a checkpoint of {units.size(size)} in {model.SHARDS} shards")
        model.write(source, size)
    else:
        source = Path(own_model)
    checkpoint = locate(str(source))
    whole = [file for file in checkpoint.weights if file.state is State.GOOD]
    if not whole or len(whole) < len(checkpoint.weights):
        raise UsageError(f"{checkpoint.ref.path}: its weights are not whole; try: ckpt-tui scan {checkpoint.ref.path}")
    if own_model is not None:
        _check_room(folder, ranks * sum(file.size for file in checkpoint.files))
    say(f"copying it for {units.count(ranks, 'rank')}")
    copies = [node / checkpoint.root.name for node in nodes]
    for target in copies:
        _copy(checkpoint, target)
    folders = tuple(copies if own_model else [source, *copies])
    done = f"{_plant_fault(whole, folders[-1])}, on rank {ranks - 1}" if fault else None
    cache_dir = folder / "cache"
    say("scanning half of the shards once, so that the cache has something to say")
    before = ScanSettings(cache_dir=str(cache_dir), runtime_dir=str(folder))
    for file in whole[: len(whole) // 2]:
        for target in folders:
            scan(str(target / os.fsdecode(file.raw_name)), before)
    return Stage(folders, cache_dir, done)


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise CkptError(
            f"{folder}: the demo needs {units.size(needed)} here and {units.size(free)} are free; "
            "name a larger disk with TMPDIR, or a smaller checkpoint with --size"
        )


def _copy(checkpoint: Checkpoint, target: Path) -> None:
    for file in checkpoint.files:
        copy = target / os.fsdecode(file.raw_name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, copy)


def _plant_fault(weights: list[CheckpointFile], folder: Path) -> str:
    """Flip the sign bit of one element in the middle of a tensor; what was done, in words."""
    file = weights[min(FAULTY_SHARD, len(weights)) - 1]
    if file.header is not None and file.header.tensors:
        largest = max(file.header.tensors, key=lambda tensor: tensor.length)
        offset, where = largest.offset + largest.length // 2 | 1, f"{largest.name} in {file.name}"
    else:
        offset, where = file.size // 2, file.name
    with (folder / os.fsdecode(file.raw_name)).open("r+b") as opened:
        opened.seek(offset)
        byte = opened.read(1)[0]
        opened.seek(offset)
        opened.write(bytes([byte ^ 0x80]))
    return f"one bit flipped in {where}"


def rank_arguments(stage: Stage, rank: int, master: str, max_rate: float, *, hold: bool = False) -> list[str]:
    """The arguments that make a process this rank of the demo's session."""
    return [
        str(stage.folders[rank]),
        f"--master={master}",
        f"--world-size={len(stage.folders)}",
        f"--rank={rank}",
        f"--cache-dir={stage.cache_dir}",
        f"--max-rate={max_rate:.0f}",
        *(["--hold"] if hold else []),
    ]


def free_address() -> str:
    """A loopback address whose port the system chose."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def other_ranks(stage: Stage, master: str, max_rate: float, log: Path, *, hold: bool) -> Iterator[None]:
    """Ranks 1 and up as processes of their own; whatever happens, none outlives the block.

    With `hold` they stay ready to be asked after the verdict.
    """
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("wb") as output:
            for rank in range(1, len(stage.folders)):
                arguments = rank_arguments(stage, rank, master, max_rate, hold=hold)
                command = [sys.executable, "-P", "-m", "ckpt_tui", "ranks", *arguments]
                with undisturbed():
                    processes.append(
                        subprocess.Popen(
                            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
                        )
                    )
        yield
    finally:
        end(processes)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals wait until the block is left: one that raised inside Popen would leave a process that nobody knows of."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for first in came[:1]:
        signal.raise_signal(first)


def end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """End those that still run: a second to leave, then they are killed."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
