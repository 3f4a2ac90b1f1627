"""`ckpt-tui demo`, as a user runs it without a screen: real ranks, a real checkpoint, one deliberate fault."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

DEADLINE = 120
COMMAND = [sys.executable, "-m", "ckpt_tui", "demo", "--headless", "--size=8M", "--max-rate=0"]


def demo(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True, text=True, timeout=DEADLINE, check=False, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip


def test_one_flipped_bit_is_found_named_and_blamed_on_the_odd_rank(tmp_path: Path) -> None:
    done = demo(tmp_path, "--json")
    assert done.returncode == 1, done.stderr
    agreement = json.loads(done.stdout)
    assert agreement["schema"] == "ckpt-tui/agreement/1"
    assert agreement["verdict"] == "differ"
    (difference,) = agreement["differences"]
    assert difference["file"] == "model-00003-of-00004.safetensors"
    (segment,) = difference["segments"]
    assert segment["name"] in done.stderr  # the demo said beforehand what it damaged
    standings = {tuple(group["ranks"]): group["standing"] for group in agreement["groups"]}
    assert standings == {(0, 1): "majority", (2,): "minority"}
    assert [rank["files_cached"] for rank in agreement["ranks"]] == [2, 2, 2]
    assert list(tmp_path.iterdir()) == []


def test_without_a_fault_all_agree(tmp_path: Path) -> None:
    done = demo(tmp_path, "--json", "--fault=none")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "agree"
    assert list(tmp_path.iterdir()) == []


def test_ones_own_model_is_copied_and_left_alone(tmp_path: Path, minilm_folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in minilm_folder.rglob("*")}
    done = demo(tmp_path, "--json", f"--model={minilm_folder}", "--ranks=2")
    assert done.returncode == 1, done.stderr
    agreement = json.loads(done.stdout)
    assert {group["standing"] for group in agreement["groups"]} == {"undecided"}
    assert {path: path.stat().st_mtime_ns for path in minilm_folder.rglob("*")} == before


def test_a_disk_that_is_too_small_is_said_before_anything_is_written(tmp_path: Path) -> None:
    done = demo(tmp_path, "--size=4000T")
    assert done.returncode == 3
    assert "TMPDIR" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_told_in_lines_it_needs_no_terminal(tmp_path: Path) -> None:
    command = [word for word in COMMAND if word != "--headless"]
    done = subprocess.run(
        [*command, "--plain", "--ranks=1", "--fault=none"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert "demo-model: 4 shards" in first
    assert last.startswith("AGREE  ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ended_early_it_leaves_no_process_and_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--max-rate=100K"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until(lambda: ranks_of(tmp_path) == {"0", "1", "2"})
        process.send_signal(number)
        process.communicate(timeout=20)
        assert process.returncode == (130 if number == signal.SIGINT else 143)
        wait_until(lambda: not ranks_of(tmp_path))
        assert list(tmp_path.iterdir()) == []
    finally:
        process.kill()
        process.wait()


def ranks_of(folder: Path) -> set[str]:
    """The rank numbers of the processes that work on a checkpoint below `folder`."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "ranks" in words and any(word.startswith(str(folder)) for word in words):
            found |= {word.removeprefix("--rank=") for word in words if word.startswith("--rank=")}
    return found
