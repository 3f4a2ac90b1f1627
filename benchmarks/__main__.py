"""Speed beside its peers, on the same files in one run: `python -m benchmarks`, or `make bench`.

Rounds are interleaved, so that whatever else the machine does hits everybody; a ratio is the median of the rounds' own
ratios. The tables go into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from ckpt_tui import __version__, native

from .data import MIB, bytes_of, drop, files, write_model, write_small_model
from .peers import Action, Runner, in_process, peers, plain_read, sha256_limit, two_abreast
from .table import Aim, Column, Times, aims, rates, starts

if TYPE_CHECKING:
    from collections.abc import Callable

README = Path(__file__).with_name("README.md")
MARKS = "<!-- measured -->", "<!-- end -->"
SHARDS = 8
#: The small tensors' length, and how many of them; the large ones' of the file that is alone.
SMALL, MANY, LARGE = 16 << 10, 120_000, 64 * MIB
#: Slow peers take part in so many rounds.
FEW = 2
#: What a cold round leaves out.
NOT_COLD = {"signing", "sha256sum", "limit", "limit-read", "two", "full-in", "fast-in"}
STARTS = {
    "pass": "`python -c pass`",
    "imports": "`python -c 'import click, msgspec'`",
    "33": "warm `ckpt-tui scan`, 33 shards, 9,900 tensors",
    "1000": "the same, 1,000 shards, 10,000 tensors",
    "1000-many": "the same, 1,000 shards, 100,000 tensors",
}


def main() -> None:
    """Measure, print, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--mib", type=int, default=6000, help="size of the sharded checkpoint (default: 6000)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: 5)")
    parser.add_argument("--folder", help="where the files go for the while (default: the temporary folder)")
    parser.add_argument("--model-signing", metavar="PYTHON", help="a Python that has model-signing installed")
    options = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ckpt-tui-bench-", dir=options.folder) as scratch:
        text = measure(Path(scratch), options.mib * MIB, options.rounds, options.model_signing)
    text += f"\nThe whole run took {time.perf_counter() - begun:.0f} s.\n"
    print(text)
    before, _, rest = README.read_text("utf-8").partition(MARKS[0])
    README.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}", "utf-8")


def measure(scratch: Path, size: int, rounds: int, model_signing: str | None) -> str:
    """All rounds of everything, as Markdown."""
    run = Runner(scratch)
    others = peers(run, model_signing)
    if native.ABREAST == 2:
        others["two"] = Action(two_abreast)
    missing = frozenset(name for name, action in others.items() if action is None)
    actions = {
        "read": Action(plain_read),
        "read-all": Action(partial(plain_read, threads=len(os.sched_getaffinity(0)))),
        "limit": Action(partial(sha256_limit, read=False)),
        "limit-read": Action(partial(sha256_limit, read=True)),
        "full": Action(run.scan("--no-cache")),
        "full-in": Action(partial(in_process, sha256=True)),
        "fast": Action(run.scan("--no-cache", "--fast")),
        "fast-in": Action(partial(in_process, sha256=False)),
        **{name: action for name, action in others.items() if action is not None},
    }
    many = write_model(scratch / "many", SHARDS, 1, size // SHARDS)
    tiny = write_model(scratch / "tiny", SHARDS, MANY // SHARDS, SMALL)
    few = write_model(scratch / "few", SHARDS, 1, MANY // SHARDS * SMALL)
    one = write_model(scratch / "one", 1, size // 2 // LARGE, LARGE)
    ours = {name: actions[name] for name in ("full", "fast")}
    cold_actions = {name: action for name, action in actions.items() if name not in NOT_COLD}
    (cached,) = in_turns([(many, actions)], rounds)
    small, large = in_turns([(tiny, ours), (few, ours)], 3 * rounds)
    (alone,) = in_turns([(one, actions)], rounds)
    (cold,) = in_turns([(many, cold_actions)], max(2, rounds - 2), drop)
    (cold_alone,) = in_turns([(one, cold_actions)], max(2, rounds - 2), drop)
    columns = [
        Column("8 shards, cached", bytes_of(many), cached),
        Column("one file, cached", bytes_of(one), alone),
        Column("8 shards, cold", bytes_of(many), cold),
        Column("one file, cold", bytes_of(one), cold_alone),
    ]
    warm = warm_starts(scratch, run, 3 * rounds)
    reads = [min(times) for times in zip(cold["read"], cold["read-all"], strict=True)]
    lowest = [max(times) for times in zip(reads, cached["limit"], strict=False)]
    asked = [
        Aim("`scan` : huggingface_hub's loop", cached["hub"], cached["full"], 3.5),
        Aim("`scan`, in process : huggingface_hub's loop", cached["hub"], cached["full-in"], 3.5),
        Aim("`scan`, in process : the cores' sha256", cached["limit"], cached["full-in"], 0.95),
        Aim("`scan`, in process : the same, each block read before", cached["limit-read"], cached["full-in"], 0.95),
        Aim("`scan --fast` : `xxhsum -H2`", cached.get("xxhsum", []), cached["fast"], 1.5),
        Aim("`scan --fast` : `b3sum`", cached.get("b3sum", []), cached["fast"], 1),
        Aim("`scan --fast`, in process : `xxhsum -H2`", cached.get("xxhsum", []), cached["fast-in"], 1.5),
        Aim("cold, `--fast`, 8 shards : fastest plain read", reads, cold["fast"], 0.95),
        Aim("cold, full, 8 shards : the lower of that and the cores' sha256", lowest, cold["full"], 0.9),
        Aim("120,000 tensors of 16 KiB : one a shard, full", small["full"], large["full"], 1.25, at_most=True),
        Aim("the same, `--fast`", small["fast"], large["fast"], 1.25, at_most=True),
        Aim("warm, 33 shards : `import click, msgspec`", warm["33"], warm["imports"], 2, at_most=True),
        Aim("warm, 1,000 shards, 10,000 tensors : the same", warm["1000"], warm["imports"], 5, at_most=True),
        Aim("warm, 1,000 shards, 100,000 tensors : the same", warm["1000-many"], warm["imports"], 5, at_most=True),
    ]
    gib = ", ".join(f"{bytes_of(folder) / (1 << 30):.2f} GiB in {len(files(folder))}" for folder in (many, one))
    head = f"{machine()}; {gib} files; {rounds} rounds, of them cold {max(2, rounds - 2)}."
    return "\n\n".join(["", head, rates(columns, missing), aims(asked), starts(warm, STARTS), ""])


def warm_starts(scratch: Path, run: Runner, rounds: int) -> Times:
    """Whole processes that read no weights, and two that do nothing."""
    cache = scratch / "cache"
    actions: dict[str, Callable[[Path], object]] = {
        "pass": run.python("-c", "pass"),
        "imports": run.python("-c", "import click, msgspec"),
    }
    for name, shards, tensors in (("33", 33, 300), ("1000", 1000, 10), ("1000-many", 1000, 100)):
        folder = write_small_model(scratch / f"warm-{name}", shards, tensors)
        scan = run.scan("--cache-dir", cache)
        actions[name] = lambda _, scan=scan, folder=folder: scan(folder)  # type: ignore[misc]
    (times,) = in_turns([(scratch, {name: Action(action) for name, action in actions.items()})], rounds)
    return times


def in_turns(
    sets: list[tuple[Path, dict[str, Action]]], rounds: int, before: Callable[[Path], None] | None = None
) -> list[Times]:
    """Seconds of each action over each set in each round; a round before them all only warms up."""
    results: list[Times] = [{name: [] for name in actions} for _, actions in sets]
    for number in range(rounds + 1):
        for (folder, actions), times in zip(sets, results, strict=True):
            order = list(actions.items())
            Random(number).shuffle(order)  # so that nobody always comes after the same
            for name, action in order:
                if action.slow and not 0 < number <= FEW:
                    continue
                if before:
                    before(folder)
                begun = time.perf_counter()
                action.run(folder)
                if number:
                    times[name].append(time.perf_counter() - begun)
    return results


def machine() -> str:
    """What was measured on, without naming it."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, Python {platform.python_version()}, ckpt-tui {__version__}"


if __name__ == "__main__":
    main()
