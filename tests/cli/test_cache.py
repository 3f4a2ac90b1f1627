"""`ckpt-tui cache` as a user meets it: a process, its two streams, its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckpt_tui.digest.cache import encode, parse
from ckpt_tui.facts.cached import CACHE_SCHEMA
from tests.support.checkpoints import write_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of two shards."""
    return write_checkpoint(tmp_path / "model")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: a cache of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CKPT_TUI", "HF_", "LC_"))}
    return kept | {"CKPT_TUI_CACHE_DIR": str(tmp_path / "cache"), "PYTHONUTF8": "1"}


def run(env: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ckpt_tui", *map(str, words)]
    return subprocess.run(command, env=env, capture_output=True, timeout=60, check=False, text=True)


def report(env: dict[str, str], *words: str | Path) -> dict[str, Any]:
    done = run(env, "cache", *words, "--json")
    assert done.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["schema"], found["command"]) == (CACHE_SCHEMA, words[0])
    return found


def test_path_is_where_the_records_lie(folder: Path, env: dict[str, str], tmp_path: Path) -> None:
    place = Path(run(env, "cache", "path").stdout.strip())
    assert place.parent == tmp_path / "cache"
    assert not place.exists(), "asking makes nothing"
    run(env, "scan", folder)
    assert len(list(place.glob("*.digest"))) == 5
    assert run(env, "cache", "path", "--cache-dir", tmp_path / "x").stdout.startswith(str(tmp_path / "x"))


def test_list_and_stats_say_what_is_remembered_and_what_it_was_good_for(folder: Path, env: dict[str, str]) -> None:
    assert run(env, "cache", "list").stdout.startswith("0 records")
    run(env, "scan", folder)
    run(env, "scan", folder)
    totals = report(env, "stats")["totals"]
    assert (totals["records"], totals["hits"], totals["misses"]) == (5, 5, 5)
    assert totals["bytes_saved"] == totals["bytes"]
    listed = report(env, "list")
    assert [one["path"] for one in listed["folders"]] == [str(folder)]
    assert {one["standing"] for one in listed["files"]} == {"current"}
    assert str(folder) in run(env, "cache", "list").stdout
    assert str(folder / "config.json") in run(env, "cache", "list", "--files").stdout
    assert str(folder / "config.json") not in run(env, "cache", "list", "--files", folder / "tokenizer.json").stdout
    assert "5 files" in run(env, "cache", "stats").stdout
    *rows, rest = map(json.loads, run(env, "cache", "list", "--format", "jsonl").stdout.splitlines())
    assert len(rows) == 6
    assert "files" not in rest


def test_prune_and_clear_say_first_and_then_do(folder: Path, env: dict[str, str]) -> None:
    run(env, "scan", folder)
    (folder / "config.json").unlink()
    assert run(env, "cache", "prune", "--dry-run").stdout.startswith("would remove 1 file")
    assert run(env, "cache", "prune").stdout.startswith("removed 1 file")
    assert run(env, "cache", "prune").stdout.startswith("removed 0 files")
    assert run(env, "cache", "prune", "--older-than", "30d").stdout.startswith("removed 0 files")
    assert len(report(env, "clear", "--dry-run")["removed"]) == 7
    assert len(report(env, "clear")["removed"]) == 7
    assert report(env, "stats")["totals"]["records"] == 0
    assert run(env, "cache", "prune", "--older-than", "soon").returncode == 2


def test_scrub_leaves_with_1_on_corruption_alone(folder: Path, env: dict[str, str], tmp_path: Path) -> None:
    assert run(env, "cache", "scrub").stdout.startswith("nothing to read")
    run(env, "scan", folder)
    assert run(env, "cache", "scrub", "--dry-run").stdout.startswith("would read 5 files")
    done = run(env, "cache", "scrub", "--max-rate", "1G", "--limit", "9", "--max-bytes", "1G", "--older-than", "0s")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("INTACT  5 files")
    (folder / "config.json").write_text("{}")
    assert run(env, "cache", "scrub").returncode == 0
    assert run(env, "cache", "scrub", "--strict").returncode == 1
    for place in (tmp_path / "cache").rglob("*.digest"):
        found = parse(place.read_bytes())
        assert isinstance(found, tuple)
        place.write_bytes(encode(found[0], found[1]._replace(digest=b"o" * 16)))
    done = run(env, "cache", "scrub")
    assert done.returncode == 1
    assert done.stdout.startswith("CORRUPT  4 of 4 files")
    assert run(env, "scan", folder).returncode == 1
    fates = {Path(one["path"]).name: one["fate"] for one in report(env, "scrub")["scrubbed"]}
    assert fates["config.json"] == "intact", "the scan has read it since"


def test_a_scrub_that_could_not_read_a_file_does_not_begin_with_intact(folder: Path, env: dict[str, str]) -> None:
    run(env, "scan", folder)
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    done = run(env, "cache", "scrub")
    assert done.returncode == 3
    assert done.stdout.startswith("UNDECIDED  1 file could not be read; 4 files intact")


def test_a_name_with_control_characters_reaches_no_terminal(env: dict[str, str], tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a\x1b[31m\n")
    run(env, "scan", folder)
    for words in (("list", "--files"), ("scrub",), ("clear", "--dry-run")):
        done = run(env, "cache", *words)
        assert "\x1b" not in done.stdout
        assert "a\\x1b[31m\\n" in done.stdout
