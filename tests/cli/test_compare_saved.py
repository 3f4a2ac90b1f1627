"""Without a network: scans saved on each machine, compared anywhere, say what the ranks would have said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint

SHARD = "model-00002-of-00002.safetensors"
TENSOR = "model.layers.2.mlp.0.weight"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: a cache of its own, and no terminal's wishes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CKPT_TUI", "HF_", "LC_"))}
    return kept | {"CKPT_TUI_CACHE_DIR": str(tmp_path / "cache"), "PYTHONUTF8": "1"}


def run(env: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ckpt_tui", *map(str, words)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def save(env: dict[str, str], folder: Path, target: Path, host: str, *, tables: bool = True) -> Path:
    """What `scan --save` leaves on a machine of that name; without tables, what `scan --json` prints there."""
    env = env | {"CKPT_TUI_HOST_ID": host}
    if tables:
        assert run(env, "scan", folder, "--save", target, "--format", "quiet").returncode in {0, 1}
    else:
        target.write_text(run(env, "scan", folder, "--json").stdout)
    saved = json.loads(target.read_text())
    target.write_text(json.dumps(saved | {"host": host, "checkpoint": saved["checkpoint"] | {"path": "/models/m"}}))
    return target


def odd(folder: Path) -> Path:
    """A copy with one flipped bit in its second shard."""
    shard = write_checkpoint(folder) / SHARD
    flip_bit(shard, payload_offset(shard))
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A good checkpoint, and one with a flipped bit."""
    return write_checkpoint(tmp_path / "good"), odd(tmp_path / "bad")


def nodes(
    env: dict[str, str], folder: Path, folders: tuple[Path, Path], bad: int, count: int, **how: Any
) -> list[Path]:
    """The saved scans of so many machines, one of which has the odd copy."""
    return [
        save(env, folders[place == bad], folder / f"node{place}.json", f"node-{place}", **how) for place in range(count)
    ]


def test_equal_scans_of_several_hosts_agree_each_with_its_own_copy(
    env: dict[str, str], tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    saved = nodes(env, tmp_path, folders, -1, 4)
    agreement = json.loads(run(env, "compare", *saved, "--json").stdout)
    assert (agreement["verdict"], agreement["weights_equal"]) == ("agree", True)
    assert [rank["host"] for rank in agreement["ranks"]] == ["node-0", "node-1", "node-2", "node-3"]
    assert [(group["ranks"], group["copies"]) for group in agreement["groups"]] == [([0, 1, 2, 3], 4)]
    assert run(env, "compare", *saved).returncode == 0


def test_the_odd_machine_is_the_minority_by_its_name_and_to_the_tensor(
    env: dict[str, str], tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    saved = nodes(env, tmp_path, folders, 4, 6)
    done = run(env, "compare", *saved, "--json")
    agreement = json.loads(done.stdout)
    assert (done.returncode, done.stderr, agreement["verdict"]) == (1, "", "differ")
    standing = {tuple(group["ranks"]): (group["standing"], group["copies"]) for group in agreement["groups"]}
    assert standing == {(0, 1, 2, 3, 5): ("majority", 5), (4,): ("minority", 1)}
    (difference,) = agreement["differences"]
    assert difference["file"] == SHARD
    assert [segment["name"] for segment in difference["segments"]] == [TENSOR]
    shown = run(env, "compare", *saved).stdout
    assert "node-4" in shown.splitlines()[0]
    assert TENSOR in shown
    assert "6 copies on 6 hosts" in shown


def test_of_two_machines_nobody_is_accused(env: dict[str, str], tmp_path: Path, folders: tuple[Path, Path]) -> None:
    agreement = json.loads(run(env, "compare", *nodes(env, tmp_path, folders, 1, 2), "--json").stdout)
    assert {group["standing"] for group in agreement["groups"]} == {"undecided"}


def test_one_file_that_many_machines_mount_is_one_copy_by_its_host_alone(
    env: dict[str, str], tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    same = [save(env, folders[0], tmp_path / f"{name}.json", "node-0") for name in ("one", "two", "three")]
    other = save(env, folders[1], tmp_path / "other.json", "node-1")
    agreement = json.loads(run(env, "compare", *same, other, "--json").stdout)
    assert {group["standing"] for group in agreement["groups"]} == {"undecided"}
    assert sorted(group["copies"] for group in agreement["groups"]) == [1, 1]


@pytest.mark.parametrize("lacking", [[0, 1, 2], [2], [0]])
def test_without_segment_tables_files_are_compared(
    env: dict[str, str], tmp_path: Path, folders: tuple[Path, Path], lacking: list[int]
) -> None:
    saved = [
        save(
            env,
            folders[place == 2],
            tmp_path / f"node{place}.json",
            f"node-{place}",
            tables=place not in lacking,
        )
        for place in range(3)
    ]
    done = run(env, "compare", *saved, "--json")
    agreement = json.loads(done.stdout)
    assert (done.returncode, [one["file"] for one in agreement["differences"]]) == (1, [SHARD])
    assert agreement["differences"][0]["segments"] == []
    assert {group["standing"] for group in agreement["groups"]} == {"majority", "minority"}
    (warning,) = agreement["warnings"]
    assert "saved without segment tables: files that differ are compared whole" in warning
    shown = " ".join(run(env, "compare", *saved).stdout.split())
    assert "saved without segment tables" in shown


def test_equal_scans_need_no_tables(env: dict[str, str], tmp_path: Path, folders: tuple[Path, Path]) -> None:
    saved = nodes(env, tmp_path, folders, -1, 3, tables=False)
    agreement = json.loads(run(env, "compare", *saved, "--json").stdout)
    assert (agreement["verdict"], agreement["warnings"]) == ("agree", [])
