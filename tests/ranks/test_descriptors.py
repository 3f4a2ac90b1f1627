"""Too few descriptors are noticed before Gloo is entered, which would abort the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkpoints import write_checkpoint
from tests.support.ranks import Ended, Ranks

ROOM = """
import resource
from ckpt_tui.ranks.descriptors import room
print(room(100), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("limits", "raised"), [("-Sn 40", True), ("-n 40", False), ("-n 1024", False)])
def test_the_soft_limit_is_raised_as_far_as_needed_and_the_hard_one_lets(limits: str, raised: bool) -> None:
    shell = f'ulimit {limits} && exec "$0" -c "$1"'
    done = subprocess.run(["sh", "-c", shell, sys.executable, ROOM], capture_output=True, text=True, check=True)
    room, soft, hard = map(int, done.stdout.split())
    if raised:
        assert room == 100
        assert 100 < soft < hard
    else:
        assert soft == hard == int(limits.split()[1])
        assert 0 < room < soft


def few(ranks: Ranks, rank: int, folder: Path, limit: int) -> None:
    """Start one rank that may not open more than so many files."""
    ranks.start(rank, folder, before=("sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh"))


def session(folder: Path, **limits: int) -> list[Ended]:
    """Two ranks, some of them with few descriptors."""
    with Ranks(2) as ranks:
        for rank in range(2):
            few(ranks, rank, folder, limits.get(f"rank{rank}", 1024))
        return ranks.end()


def test_a_rank_with_few_descriptors_has_all_compare_through_the_store(tmp_path: Path) -> None:
    ended = session(write_checkpoint(tmp_path / "a"), rank1=40)
    assert [one.code for one in ended] == [0, 0]
    assert "rank 1 " in ended[0].err
    assert "the ranks compare through the store (ulimit -n raises that)" in ended[0].err


def test_a_store_that_could_not_take_all_ranks_in_is_not_begun(tmp_path: Path) -> None:
    with Ranks(1000) as ranks:
        few(ranks, 0, write_checkpoint(tmp_path / "a"), 1024)
        (ended,) = ranks.end()
    assert (ended.code, ended.out) == (2, "")
    assert "serves the store for 1,000 ranks and needs 2,032 more files open" in ended.err
