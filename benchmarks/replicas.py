"""Proving that live replicas are equal, beside the way everybody writes first: `python -m benchmarks.replicas`.

Four ranks, as processes of this machine, hold equal models: 1 GB in few tensors, and 20,000 tensors of 16 KiB. The
naive way is sha256 of each tensor, and one `all_gather_object` of names and digests. Rounds are interleaved; a round
takes as long as its slowest rank. Prints Markdown, and leaves with 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import multiprocessing
import pickle
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from ckpt_tui.replicas import assert_rank_equal

from .table import Aim, aims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RANKS = 4
#: Tensors, and elements of each (float32).
MODELS = {"1 GB in 61 tensors": (61, 1 << 22), "20,000 tensors of 16 KiB": (20_000, 4096)}
WIRE = 1024

Model = dict[str, torch.Tensor]


class Cost(NamedTuple):
    """What one comparison cost one rank: seconds, processor seconds, bytes on the wire, and MiB above what it held."""

    seconds: float
    processor: float
    wire: int
    memory: float


def naive(model: Model, group: Any) -> None:
    """sha256 of `p.detach().cpu().contiguous().numpy().tobytes()`, and everybody's digests to all.

    With or without numpy, the last two calls are one copy of the bytes.
    """
    gathered(
        {name: hashlib.sha256(copied(tensor.detach().cpu().contiguous())).digest() for name, tensor in model.items()},
        group,
    )


def copied(tensor: torch.Tensor) -> bytes:
    """A tensor's bytes."""
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes)


def without_a_copy(model: Model, group: Any) -> None:
    """The same with somebody's care: hashed where the bytes lie."""
    gathered(
        {
            name: hashlib.sha256((ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())).digest()
            for name, tensor in model.items()
        },
        group,
    )


def gathered(digests: dict[str, bytes], group: Any) -> None:
    """Everybody's digests to all, pickled."""
    heard: list[dict[str, bytes]] = [{}] * RANKS
    dist.all_gather_object(heard, digests, group=group)
    assert all(told == digests for told in heard)


def ours(model: Model, group: Any) -> None:
    """xxh3-128, as it is by default."""
    assert_rank_equal(model, group=group, phase="benchmark")


def ours_sha256(model: Model, group: Any) -> None:
    """The same with the naive way's hash."""
    assert_rank_equal(model, group=group, phase="benchmark", digest="sha256")


WAYS: dict[str, Callable[[Model, Any], None]] = {
    "naive: sha256 a tensor, `all_gather_object`": naive,
    "**`assert_rank_equal`**": ours,
    "naive, but hashed where the bytes lie": without_a_copy,
    'the same with `digest="sha256"`': ours_sha256,
}
NAIVE, OURS = list(WAYS)[:2]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deadline", type=float, default=600, help="seconds for all (default: 600)")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="ckpt-tui-bench-") as scratch:
        place = str(Path(scratch, "store"))
        pipes, processes = [], []
        for rank in range(RANKS):
            ours_end, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, place, rank, options.rounds), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours_end)
            processes.append(process)
        end = time.monotonic() + options.deadline
        try:
            costs = [received(pipe, end) for pipe in pipes]
        finally:
            for process in processes:
                process.kill()
                process.join()
    return told(costs)


def received(pipe: Any, end: float) -> Costs:
    """A rank's answer, or an error where it does not come in time."""
    if not pipe.poll(max(end - time.monotonic(), 0)):
        raise TimeoutError("a rank has not answered in time")
    costs: Costs = pipe.recv()
    return costs


#: By model and way, the cost of each round.
Costs = dict[str, dict[str, list[Cost]]]


def told(costs: list[Costs]) -> int:
    """Print the tables; 1 where an aim is missed."""
    print("| 4 ranks, all equal | seconds | processor s a rank | bytes on the wire a rank | memory on top, MiB |")
    print("|---|---:|---:|---:|---:|")
    rows = []
    for model, ways in costs[0].items():
        rounds = {
            way: [max(of_rank[model][way][n].seconds for of_rank in costs) for n in range(len(ways[way]))]
            for way in ways
        }
        for way in ways:
            all_costs = [cost for of_rank in costs for cost in of_rank[model][way]]
            print(
                f"| {model}: {way} | {statistics.median(rounds[way]):.3f} "
                f"| {statistics.median(cost.processor for cost in all_costs):.3f} "
                f"| {max(cost.wire for cost in all_costs):,} | {max(cost.memory for cost in all_costs):.1f} |"
            )
        wire = [float(max(cost.wire for of_rank in costs for cost in of_rank[model][OURS]))]
        rows.append(Aim(f"{model}, naive : `assert_rank_equal`, seconds", rounds[NAIVE], rounds[OURS], 3))
        rows.append(Aim(f"{model}, bytes on the wire : 1 KiB", wire, [float(WIRE)], 1, at_most=True))
    table = aims(rows)
    print(f"\n{table}")
    return int("missed" in table)


def serve(pipe: Any, place: str, rank: int, rounds: int) -> None:
    """Be one rank, and send what everything cost it."""
    torch.set_num_threads(1)
    if find_spec("numpy") is None:
        distributed_c10d._tensor_to_object = without_numpy  # noqa: SLF001
    dist.init_process_group("gloo", store=dist.FileStore(place, RANKS), rank=rank, world_size=RANKS)
    group = dist.new_group(backend="gloo")
    wire = Wire()
    costs: Costs = {}
    for words, (count, elements) in MODELS.items():
        random = torch.Generator().manual_seed(7)
        model = {f"model.layers.{n}.weight": torch.randn(elements, generator=random) for n in range(count)}
        found: dict[str, list[Cost]] = {way: [] for way in WAYS}
        for _ in range(rounds + 1):
            for way, work in WAYS.items():
                found[way].append(cost_of(partial(work, model, group), group, wire))
        costs[words] = {way: rounds_[1:] for way, rounds_ in found.items()}  # the first warms up
    pipe.send(costs)
    with suppress(EOFError):
        pipe.recv()  # until all have told


def without_numpy(tensor: torch.Tensor, size: int, _: Any) -> Any:
    """What `all_gather_object` does with what it gets, for a Python without numpy."""
    return pickle.loads((ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr()).raw[:size])


def cost_of(work: Callable[[], None], group: Any, wire: Wire) -> Cost:
    """Do it with all ranks at once."""
    gc.collect()
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    dist.barrier(group)
    wire.sent = 0
    begun, processor = time.perf_counter(), time.process_time()
    work()
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    return Cost(seconds, processor, wire.sent, status("VmHWM") - before)


def status(field: str) -> float:
    """MiB that the kernel gives for this process."""
    lines: Iterator[str] = iter(Path("/proc/self/status").read_text().splitlines())
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


class Wire:
    """Counts what this rank gives to others in all-gathers, which are all that either way uses."""

    def __init__(self) -> None:
        self.sent = 0
        plain = distributed_c10d.all_gather

        def all_gather(buffers: list[torch.Tensor], mine: torch.Tensor, *arguments: Any, **more: Any) -> Any:
            self.sent += mine.nbytes * (len(buffers) - 1)
            return plain(buffers, mine, *arguments, **more)

        distributed_c10d.all_gather = dist.all_gather = all_gather


if __name__ == "__main__":
    sys.exit(main())
