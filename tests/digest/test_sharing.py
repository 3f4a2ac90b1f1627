"""The processes of a host read each byte once between them, and none waits for one that does not get on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ckpt_tui.digest import Scanner, scan, sharing
from ckpt_tui.digest.filesystem import FileSystem, FileSystems
from ckpt_tui.digest.sharing import Aim, Turns, open_turns
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.files import MissReason, Source, State
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.facts.status import Cell
from tests.digest.conftest import SetClock
from tests.support.checkpoints import noise, write_checkpoint
from tests.support.waiting import wait_until

FULL = Aim(sha256=True, git_sha1=False, limited=False)
#: A scan in a process of its own; it says what it found as one line of JSON.
PROGRAM = """
import json, sys, msgspec
from ckpt_tui.digest import Scanner
from ckpt_tui.facts.settings import ScanSettings
settings = msgspec.convert(json.loads(sys.argv[2]), ScanSettings)
scanner = Scanner(sys.argv[1], settings)
scanner.survey()
print("ready", flush=True)
sys.stdin.readline()
result = scanner.run()
print(json.dumps({
    "content": result.content, "sha256": result.content_sha256, "read": result.totals.bytes_read,
    "bytes": result.totals.bytes, "cells": "".join(file.cell for file in scanner.progress.files),
    "warnings": list(result.warnings),
}))
"""


class Processes:
    """Scans in processes of their own, that begin when they are told to. None outlives the test."""

    def __init__(self) -> None:
        self.all: list[subprocess.Popen[str]] = []

    def start(self, folder: Path, **settings: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(folder), json.dumps(settings)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.all.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    @staticmethod
    def go(process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    @staticmethod
    def result(process: subprocess.Popen[str]) -> dict[str, object]:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        found: dict[str, object] = json.loads(out)
        return found


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    for process in made.all:
        process.kill()
        process.communicate()


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A folder of this user's own."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def settings(cache: Path, runtime: Path) -> dict[str, object]:
    return {"cache_dir": str(cache), "runtime_dir": str(runtime)}


@pytest.mark.parametrize("more", [{}, {"rehash": True}, {"sha256": False, "threads": 2}, {"max_rate": 2.0**28}])
def test_eight_processes_read_each_byte_once_between_them(
    more: dict[str, object], tmp_path: Path, settings: dict[str, object], runtime: Path, processes: Processes
) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=6, tensors=2, shape=(512, 256))
    if more.get("rehash"):
        scan(folder, ScanSettings(cache_dir=str(settings["cache_dir"])))
    eight = [processes.start(folder, **settings, **more) for _ in range(8)]
    for process in eight:
        processes.go(process)
    results = [processes.result(process) for process in eight]
    total = results[0]["bytes"]
    assert sum(int(str(result["read"])) for result in results) == total
    assert len({(result["content"], result["sha256"]) for result in results}) == 1
    assert results[0]["content"] == scan(folder, ScanSettings(use_cache=False)).content
    assert {cell for result in results for cell in str(result["cells"])} <= {Cell.READ, Cell.SHARED, Cell.CACHED}
    assert list((runtime / "ckpt-tui").iterdir()) == []


def big(tmp_path: Path) -> Path:
    """One file that takes a while under a rate limit."""
    path = tmp_path / "one.gguf"
    path.write_bytes(b"GGUF" + noise("big", 4 << 20))
    return path


@pytest.fixture
def reading(
    tmp_path: Path, settings: dict[str, object], runtime: Path, processes: Processes
) -> tuple[Path, subprocess.Popen[str]]:
    """A file, and a process that is in the middle of reading it, for a long time."""
    path = big(tmp_path)
    holder = processes.start(path, **settings, max_rate=2.0**21)
    processes.go(holder)
    wait_until(lambda: beats(runtime) and any(beats(runtime).values()), what="the holder reads")
    return path, holder


def beats(runtime: Path) -> dict[str, int]:
    """Bytes read by the holder of each turn."""
    found = {}
    for place in (runtime / "ckpt-tui").glob("*.beat"):
        raw = place.read_bytes()
        found[place.name] = int.from_bytes(raw[:8], "little")
    return found


def limited(settings: dict[str, object]) -> ScanSettings:
    """Settings of a scan that would wait for one with a rate limit: its own limit is out of the way."""
    return ScanSettings(**settings, max_rate=2.0**40)  # type: ignore[arg-type]


def test_a_file_that_another_process_reads_is_not_read_but_waited_for(
    reading: tuple[Path, subprocess.Popen[str]], settings: dict[str, object], processes: Processes
) -> None:
    path, holder = reading
    scanner = Scanner(str(path), limited(settings))
    result = scanner.run()
    assert (result.totals.bytes_read, result.files[0].source) == (0, Source.CACHE)
    assert result.files[0].miss_reason is None
    assert scanner.progress.files[0].cell is Cell.SHARED
    assert processes.result(holder)["content"] == result.content


def test_a_stopped_holder_blocks_nobody(
    reading: tuple[Path, subprocess.Popen[str]],
    settings: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    processes: Processes,
) -> None:
    path, holder = reading
    monkeypatch.setattr(sharing, "STALLED", 0.3)
    holder.send_signal(signal.SIGSTOP)
    result = scan(path, limited(settings))
    assert result.files[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert result.totals.bytes_read == result.totals.bytes
    holder.send_signal(signal.SIGCONT)
    assert processes.result(holder)["content"] == result.content


def test_a_killed_holder_frees_its_file_at_once(
    reading: tuple[Path, subprocess.Popen[str]], settings: dict[str, object], runtime: Path
) -> None:
    path, holder = reading
    holder.kill()
    holder.wait(10)
    assert beats(runtime), "what it left behind"
    result = scan(path, limited(settings))
    assert result.files[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert scan(path, limited(settings)).totals.bytes_read == 0
    assert beats(runtime) == {}


def test_nobody_waits_for_a_reader_that_is_held_back_or_computes_less(
    reading: tuple[Path, subprocess.Popen[str]], settings: dict[str, object]
) -> None:
    path, holder = reading
    result = scan(path, ScanSettings(**settings))  # type: ignore[arg-type]
    assert result.totals.bytes_read == result.totals.bytes
    assert holder.poll() is None


@pytest.mark.parametrize(
    ("mine", "serves"),
    [
        (FULL, True),
        (FULL._replace(sha256=False), True),
        (FULL._replace(git_sha1=True), False),
        (FULL._replace(limited=True), True),
    ],
)
def test_a_reading_serves_those_who_want_no_more_than_it_gives(mine: Aim, serves: bool) -> None:
    assert FULL.serves(mine) is serves
    assert FULL._replace(limited=True).serves(mine) is (serves and mine.limited)


def test_two_names_of_one_file_are_read_once_in_one_scan(tmp_path: Path, settings: dict[str, object]) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    big(folder)
    (folder / "two.gguf").symlink_to("one.gguf")
    result = scan(folder, ScanSettings(**settings))  # type: ignore[arg-type]
    assert result.totals.bytes_read == result.totals.bytes // 2
    assert result.files[0].sha256 == result.files[1].sha256


@pytest.fixture
def turns(runtime: Path, clock: SetClock) -> tuple[Turns, Turns]:
    """Two processes' views of the same turns."""
    pair = open_turns(str(runtime), FileSystems(), clock), open_turns(str(runtime), FileSystems(), clock)
    assert pair[0]
    assert pair[1]
    return pair[0], pair[1]


def test_a_waiter_gives_up_only_when_nothing_moves(turns: tuple[Turns, Turns], clock: SetClock) -> None:
    ours, theirs = turns
    held = theirs.claim(Path("/record"), FULL)
    assert held
    for _ in range(10):
        clock.sleep(sharing.STALLED * 0.9)
        assert ours.claim(Path("/record"), FULL) is None
        held.advance(1)
    clock.sleep(sharing.STALLED)
    ours.claim(Path("/record"), FULL)
    clock.sleep(sharing.STALLED)
    second = ours.claim(Path("/record"), FULL)
    assert second, "its own turn, after the stalled one"
    assert not second.spoilt
    third = open_third = Turns(ours._folder, clock)
    assert third.claim(Path("/record"), FULL) is None
    clock.sleep(sharing.STALLED)
    second.advance(1)
    assert open_third.claim(Path("/record"), FULL) is None, "the second gets on, so one reader more is enough"
    held.end(finished=True)
    second.end(finished=True)


def test_what_a_reader_could_not_remember_is_waited_for_no_more(turns: tuple[Turns, Turns]) -> None:
    ours, theirs = turns
    held = theirs.claim(Path("/record"), FULL)
    assert held
    assert ours.claim(Path("/record"), FULL) is None
    held.end(finished=True)
    turn = ours.claim(Path("/record"), FULL)
    assert turn
    assert turn.spoilt
    turn.end(finished=True)
    held = theirs.claim(Path("/other"), FULL)
    assert held
    assert ours.claim(Path("/other"), FULL) is None
    held.end(finished=False)
    turn = ours.claim(Path("/other"), FULL)
    assert turn
    assert not turn.spoilt, "it was interrupted: whoever reads now reads for all"


def test_files_that_nobody_may_remember_are_read_by_all_without_waiting_in_line(
    tmp_path: Path, settings: dict[str, object], processes: Processes
) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=2, tensors=2, shape=(512, 256))
    with (folder / "model-00001-of-00002.safetensors").open("r+b"):
        four = [processes.start(folder, **settings) for _ in range(4)]
        for process in four:
            processes.go(process)
        results = [processes.result(process) for process in four]
    assert len({result["content"] for result in results}) == 1
    assert all("open for writing" in str(result["warnings"]) for result in results)


@pytest.mark.parametrize("trouble", ["open", "a link", "a file", "a network home", "relative"])
def test_a_folder_that_is_not_ours_alone_is_not_used(
    trouble: str, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    own = runtime / "ckpt-tui"
    chosen = str(runtime)
    if trouble == "open":
        own.mkdir()
        own.chmod(0o755)
    elif trouble == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        own.symlink_to(tmp_path / "elsewhere")
    elif trouble == "a file":
        own.touch()
    elif trouble == "relative":
        chosen = "run"
    real = FileSystems.of

    def of(self: FileSystems, path: str, device: int) -> FileSystem:
        if trouble == "a network home" and path.startswith(str(runtime)):
            return FileSystem("nfs4", "server:/home", "nfs4:server:/home")
        return real(self, path, device)

    monkeypatch.setattr(FileSystems, "of", of)
    found = open_turns(chosen, FileSystems(), SystemClock())
    assert found
    assert found._folder == tmp_path / "tmp" / f"ckpt-tui-{os.geteuid()}"
    assert found._folder.stat().st_mode & 0o777 == 0o700


def test_where_no_folder_will_do_the_scan_reads_for_itself(
    folder: Path, scanned: Callable[..., ScanResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    result = scanned(folder, runtime_dir="/proc/nowhere")
    assert result.content
    assert {file.miss_reason for file in result.files} == {MissReason.NEW}
    assert {file.state for file in result.files} == {State.GOOD}
    assert scanned(folder).totals.bytes_read == 0


def test_a_paused_holder_blocks_nobody_and_goes_on_cleanly(
    tmp_path: Path, settings: dict[str, object], runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = big(tmp_path)
    holder = Scanner(str(path), ScanSettings(**settings, max_rate=2.0**22))  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(holder.run)
        try:
            wait_until(lambda: beats(runtime) and any(beats(runtime).values()), what="the holder reads")
            holder.pause(True)
            monkeypatch.setattr(sharing, "STALLED", 0.3)
            result = scan(path, limited(settings))
            assert result.totals.bytes_read == result.totals.bytes
            assert not held.done()
            assert holder.progress.paused
        finally:
            holder.pause(False)
        assert held.result(30).content == result.content
        assert not holder.progress.paused


def test_what_has_read_everything_cannot_be_paused(tmp_path: Path, settings: dict[str, object]) -> None:
    scanner = Scanner(str(big(tmp_path)), ScanSettings(**settings))  # type: ignore[arg-type]
    scanner.run()
    scanner.pause(True)
    assert not scanner.progress.paused
    assert scanner.read_again("one.gguf", 0, 4).data == b"GGUF"
