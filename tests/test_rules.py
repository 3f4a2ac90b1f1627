"""The import rules, seen from outside: what a process has loaded after doing its work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkpoints import write_checkpoint

HEAVY = {"torch", "textual", "huggingface_hub", "rich", "numpy"}


def loaded_after(code: str, *arguments: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after running `code`."""
    report = "\nimport sys; print('\\n'.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code + report, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


COMMAND = "import sys; from ckpt_tui.cli.main import run; code = run(sys.argv[1:]); assert code == 0, code"


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert not loaded_after("import ckpt_tui") & (HEAVY | {"msgspec", "click"})


def test_the_room_for_live_tensors_loads_torch_only_when_it_is_used() -> None:
    assert not loaded_after("import ckpt_tui.replicas; ckpt_tui.replicas.RanksDiffer") & HEAVY


def test_a_scan_pays_for_no_part_that_it_does_not_use(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny")
    cache = f"--cache-dir={tmp_path / 'cache'}"
    assert not loaded_after(COMMAND, "scan", "--json", cache, str(folder)) & HEAVY


def test_a_warm_scan_takes_no_locks(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny")
    words = ("scan", "--json", f"--cache-dir={tmp_path / 'cache'}", str(folder))
    assert "filelock" in loaded_after(COMMAND, *words)
    assert not loaded_after(COMMAND, *words) & {"filelock", "tempfile"}


def test_a_compare_needs_neither_torch_nor_textual(tmp_path: Path) -> None:
    folders = [str(write_checkpoint(tmp_path / name)) for name in ("one", "two")]
    cache = f"--cache-dir={tmp_path / 'cache'}"
    assert not loaded_after(COMMAND, "compare", "--json", cache, *folders) & HEAVY


@pytest.mark.parametrize(
    "room", ["facts", "present", "checkpoint", "digest", "agreement", "stream", "report", "worker"]
)
def test_a_room_outside_ranks_and_tui_loads_neither_torch_nor_textual(room: str) -> None:
    code = (
        "import importlib, pkgutil\n"
        f"room = importlib.import_module('ckpt_tui.{room}')\n"
        "for found in pkgutil.walk_packages(room.__path__, room.__name__ + '.'): importlib.import_module(found.name)"
    )
    assert not loaded_after(code) & {"torch", "textual"}


def test_the_screen_loads_no_torch() -> None:
    code = (
        "import importlib, pkgutil, ckpt_tui.tui as room\n"
        "for found in pkgutil.walk_packages(room.__path__, room.__name__ + '.'): importlib.import_module(found.name)"
    )
    loaded = loaded_after(code)
    assert "textual" in loaded
    assert "torch" not in loaded
