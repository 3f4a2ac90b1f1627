"""`check_ranks` inside a job: two real processes, as a launcher would start them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import ckpt_tui
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ranks

JOB = """
import sys, ckpt_tui
from ckpt_tui.facts.settings import RankSettings, ScanSettings
settings = RankSettings(scan=ScanSettings(use_cache=False), join_timeout=30, rank_timeout=30)
try:
    agreement = ckpt_tui.check_ranks(sys.argv[1], settings=settings)
except ckpt_tui.RanksDiffer as differ:
    print(differ.agreement.verdict, int(differ.code), differ.agreement.differences[0].segments[0].name)
else:
    print(agreement.verdict, agreement.world_size)
"""


def run_job(folders: list[Path]) -> list[str]:
    with Ranks(len(folders)) as ranks:
        for rank, folder in enumerate(folders):
            where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ranks.port)}
            env = {"RANK": str(rank), "WORLD_SIZE": str(len(folders)), **where}
            ranks.launch(str(rank), [sys.executable, "-c", JOB, str(folder)], env)
        ended = ranks.end()
    assert [one.code for one in ended] == [0] * len(folders), [one.err for one in ended]
    return [one.out for one in ended]


def test_ranks_that_agree_go_on(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name, shards=1) for name in ("a", "b")]
    assert run_job(folders) == ["agree 2\n"] * 2


def test_ranks_that_differ_all_raise_the_same_with_the_agreement_on_it(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name, shards=1) for name in ("a", "b")]
    shard = next(folders[1].glob("*.safetensors"))
    flip_bit(shard, payload_offset(shard))
    assert run_job(folders) == ["differ 1 model.layers.1.mlp.0.weight\n"] * 2


def test_importing_the_library_costs_nothing() -> None:
    code = "import sys, ckpt_tui; print(sorted(m for m in sys.modules if m.split('.')[0] in {'msgspec', 'torch'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
    assert set(ckpt_tui.__all__) >= {"scan", "compare", "check_ranks", "RanksDiffer"}


def test_ranks_that_differ_are_a_runtime_error_that_crosses_process_borders_with_its_agreement(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name, shards=1) for name in ("a", "b")]
    shard = next(folders[1].glob("*.safetensors"))
    flip_bit(shard, payload_offset(shard))
    agreement = ckpt_tui.compare(*folders, settings=ScanSettings(use_cache=False))
    differ = ckpt_tui.RanksDiffer(agreement)
    assert isinstance(differ, RuntimeError)
    again = pickle.loads(pickle.dumps(differ))
    assert (str(again), again.agreement, again.code) == (str(differ), agreement, 1)
