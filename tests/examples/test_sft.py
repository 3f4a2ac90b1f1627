"""The worked example: each fault is refused where it strikes, on every rank, and leaves a report that opens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.sft import FAULTS, FAULTY_RANK, FAULTY_STEP, RANKS
from tests.support.ranks import LAUNCHER
from tests.support.replicas import Rank, on_ranks

ROOT = Path(__file__).parents[2]
#: Where each fault is found, and which tensors it is found in.
FOUND = {
    "skipped-gradient": (f"gradients, step {FAULTY_STEP}", "gradients", ["head.weight"]),
    "buffer": (f"after the step, step {FAULTY_STEP}", "buffers", ["seen"]),
    "bit-flip": (f"after the step, step {FAULTY_STEP}", "parameters", ["norm.weight"]),
    "seed": ("start, step 0", "parameters", None),
}


def train_with(rank: Rank, folder: Path) -> dict[str, int]:
    """The exit code of every fault, one after the other in one session."""
    from examples.sft import run

    return {fault: run(rank.group, fault, folder / f"{fault}.json") for fault in FAULTS}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, int]], Path]:
    """Exit codes by rank and fault, and the folder of the reports."""
    folder = tmp_path_factory.mktemp("sft")
    return on_ranks(RANKS, train_with, folder), folder


def test_without_a_fault_all_ranks_train_to_the_end_and_leave_no_report(
    trained: tuple[list[dict[str, int]], Path],
) -> None:
    codes, folder = trained
    assert [of_rank["none"] for of_rank in codes] == [0] * RANKS
    assert not (folder / "none.json").exists()


@pytest.mark.parametrize("fault", FOUND)
def test_a_fault_is_refused_on_every_rank_and_the_report_names_where(
    trained: tuple[list[dict[str, int]], Path], fault: str
) -> None:
    codes, folder = trained
    phase, kind, names = FOUND[fault]
    assert [of_rank[fault] for of_rank in codes] == [1] * RANKS
    agreement: dict[str, Any] = json.loads((folder / f"{fault}.json").read_text())
    assert agreement["verdict"] == "differ"
    assert agreement["summary"].startswith(f"{phase}: rank {FAULTY_RANK} differs from ranks [0,1,3] in {kind} ")
    (difference,) = agreement["differences"]
    assert difference["file"] == kind
    assert names is None or [segment["name"] for segment in difference["segments"]] == names


def test_one_command_starts_all_ranks_and_leaves_the_code_of_what_they_found(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    clean = {key: value for key, value in os.environ.items() if key not in LAUNCHER}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "sft.py"), "--fault", "bit-flip", "--report", str(report)],
        capture_output=True,
        text=True,
        timeout=90,
        env=clean,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("step 0: loss ")
    assert "after the step, step 1: 1 of 31 tensors differ between ranks" in done.stderr
    assert f"the report is in {report}" in done.stderr
    opened = subprocess.run(
        [sys.executable, "-m", "ckpt_tui", "report", str(report)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "norm.weight" in opened.stdout
