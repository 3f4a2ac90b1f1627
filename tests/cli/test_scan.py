"""`ckpt-tui scan` as a user meets it: a process, its two streams, its exit code."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ckpt_tui.cli.progress import words
from ckpt_tui.digest import FileProgress, ScanProgress
from ckpt_tui.facts.files import Role
from ckpt_tui.facts.scan import SCAN_SCHEMA
from tests.support.checkpoints import noise, payload_offset, write_checkpoint
from tests.support.waiting import wait_until

SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of two shards."""
    return write_checkpoint(tmp_path / "model")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of the command: a cache of its own, and no terminal's wishes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CKPT_TUI", "HF_", "LC_"))}
    return kept | {"CKPT_TUI_CACHE_DIR": str(tmp_path / "cache"), "TERM": "xterm", "PYTHONUTF8": "1"}


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "ckpt_tui", "scan", *map(str, words)]


def run(env: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(*words), env=env, capture_output=True, timeout=60, check=False)


def test_json_is_one_line_in_the_documented_schema_and_nothing_else(folder: Path, env: dict[str, str]) -> None:
    done = run(env, folder, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1
    result = json.loads(done.stdout)
    assert result["schema"] == SCAN_SCHEMA
    assert set(result) >= {
        "schema", "host", "tool", "digest_layout", "created", "checkpoint", "identity", "content", "content_sha256",
        "logical_content", "files", "findings", "not_compared", "totals",
    }  # fmt: skip
    assert {"path", "kind"} <= set(result["checkpoint"])
    for file in result["files"]:
        assert set(file) >= {
            "name", "role", "size", "sha256", "digest", "segmentation", "source", "hashed_at", "segments", "claims",
            "state", "miss_reason",
        }  # fmt: skip
    assert set(result["totals"]) == {"files", "bytes", "files_cached", "bytes_read", "seconds", "threads"}
    warm = json.loads(run(env, folder, "--json").stdout)
    assert warm["totals"]["bytes_read"] == 0
    assert warm["content"] == result["content"]


def test_other_formats_say_the_same(folder: Path, env: dict[str, str]) -> None:
    result = json.loads(run(env, folder, "--json").stdout)
    assert run(env, folder, "--format", "quiet").stdout == b""
    *files, rest = map(json.loads, run(env, folder, "--format", "jsonl").stdout.splitlines())
    assert [file["name"] for file in files] == [file["name"] for file in result["files"]]
    assert (rest["content"], rest["files"]) == (result["content"], [])
    human = run(env, folder).stdout.decode()
    assert result["content"] in human
    assert "2/2 cached" in human
    assert "\x1b" not in human


def test_sha256sum_checks_what_the_scan_lists_whatever_the_names_hold(tmp_path: Path, env: dict[str, str]) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=1, index=False)
    for name in (b"new\nline\\.safetensors", b"\xff\xfe.safetensors"):
        source = next(folder.glob("*.safetensors"))
        (folder / os.fsdecode(name)).write_bytes(source.read_bytes())
    done = run(env, folder, "--format", "sha256sum")
    assert len(done.stdout.splitlines()) == 5
    check = subprocess.run(
        ["sha256sum", "-c", "--strict"], input=done.stdout, cwd=folder, capture_output=True, timeout=60, check=False
    )
    assert check.returncode == 0, check.stderr
    assert run(env, folder, "--format", "sha256sum", "--fast").returncode == 2


def test_names_cannot_break_a_line_nor_an_ascii_locale(tmp_path: Path, env: dict[str, str]) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=1, index=False)
    (folder / "model-00001-of-00001.safetensors").rename(folder / "é\n[red]\x1b[31m.safetensors")
    del env["PYTHONUTF8"]
    done = run(env | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\n[red]\\x1b[31m.safetensors\n" in done.stdout
    assert b"\x1b" not in done.stdout


def test_exit_codes_follow_what_was_found(folder: Path, tmp_path: Path, env: dict[str, str]) -> None:
    assert run(env, tmp_path / "nowhere").returncode == 2
    assert run(env, folder, "--threads", "0").returncode == 2
    assert run(env | {"CKPT_TUI_THREADS": "many"}, folder).returncode == 2
    broken = env | {"CKPT_TUI_CACHE_DIR": "/proc/nowhere"}
    warned = run(broken, folder)
    assert (warned.returncode, b"the digest cache is not written" in warned.stdout) == (0, True)
    assert run(broken, folder, "--strict").returncode == 1
    os.truncate(folder / SHARD, payload_offset(folder / SHARD) + 5)
    cut = run(env, folder)
    assert cut.returncode == 1
    assert b"truncated" in cut.stdout


def test_segment_tables_are_printed_when_asked_for_and_always_saved(
    folder: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    saved = tmp_path / "saved.json"
    printed = json.loads(run(env, folder, "--json", "--save", saved).stdout)
    assert not any("segment_table" in file for file in printed["files"])
    kept = json.loads(saved.read_bytes())
    assert [len(file["segment_table"]) for file in kept["files"]] == [file["segments"] for file in printed["files"]]
    asked = json.loads(run(env, folder, "--json", "--segments").stdout)
    assert asked["files"][1]["segment_table"] == kept["files"][1]["segment_table"]


def test_identity_alone_reads_nothing(folder: Path, env: dict[str, str]) -> None:
    result = json.loads(run(env, folder, "--json", "--identity-only").stdout)
    assert result["totals"]["bytes_read"] == 0
    assert result["identity"]
    assert result["content"] is None


def test_a_reader_that_leaves_early_is_no_finding(folder: Path, env: dict[str, str]) -> None:
    process = subprocess.Popen(command(folder, "--json"), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 0


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Two opaque weight files: at a few MiB a second one is done at once, the other takes long."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "a.gguf").write_bytes(b"GGUF" + noise("a", 1000))
    (folder / "b.gguf").write_bytes(b"GGUF" + noise("b", 8 << 20))
    return folder


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_at_once_and_keeps_what_was_finished(
    number: signal.Signals, code: int, slow: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    process = subprocess.Popen(
        command(slow, "--json", "--max-rate", "500K"), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until(lambda: list((tmp_path / "cache").rglob("*.digest")), what="the small file's record")
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (code, b"")
    assert err == b"ckpt-tui: interrupted; the files that were finished are remembered\n"
    again = json.loads(run(env, slow, "--json").stdout)
    assert [file["source"] for file in again["files"]] == ["cache", "read"]


def test_at_a_terminal_a_bar_is_drawn_on_stderr_alone(slow: Path, env: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(slow, "--json", "--max-rate", "4M"), env=env, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    seen = bytearray()
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # EIO: the process has left, and the terminal with it
        pass
    out, _ = process.communicate(timeout=30)
    os.close(ours)
    assert process.returncode == 0
    assert json.loads(out)["content"]
    assert b"of 8.0 MiB" in seen
    assert b"\x1b[?25h" in seen, "the cursor is shown again"


def test_progress_in_words_counts_the_cache_apart_from_the_rate() -> None:
    progress = ScanProgress()
    progress.files = (FileProgress("a", Role.WEIGHTS, 3 << 30), FileProgress("b", Role.WEIGHTS, 1 << 30))
    progress.files[0].advance(1 << 30)
    assert words(progress, 2.0) == "1.0 of 4.0 GiB  25 %  0.50 GiB/s  6.0 s left"
    assert words(progress, 0.0) == "1.0 of 4.0 GiB  25 %  0.0 MiB/s"
