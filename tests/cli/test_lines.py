"""`--plain`, `--record` and `replay`, as a shell meets them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stream.recordings import minute, record
from tests.support.checkpoints import write_checkpoint
from tests.support.waiting import wait_until
from tests.tui import streams


def ckpt_tui(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "ckpt_tui", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


def test_a_scan_in_lines_is_recorded_and_told_again_the_same(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "model")
    kept = tmp_path / "a.rec"
    live = ckpt_tui(model, "--plain", "--no-cache", "--record", kept)
    assert (live.returncode, live.stderr) == (0, "")
    assert live.stdout.splitlines()[0].startswith(f"{model}: 2 shards")
    assert "\nDONE  " in live.stdout
    again = ckpt_tui("replay", kept, "--plain", "--speed", "0")
    assert (again.returncode, again.stdout, again.stderr) == (0, live.stdout, "")
    ended = ckpt_tui("replay", kept)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == live.stdout[live.stdout.index("DONE  ") :]


def test_a_damaged_checkpoint_has_its_code_and_its_file_is_named(tmp_path: Path) -> None:
    shard = write_checkpoint(tmp_path / "model") / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    done = ckpt_tui(shard.parent, "--plain", "--no-cache")
    assert done.returncode == 1
    assert f"\n{shard.name}: truncated" in done.stdout
    assert "\nDAMAGED  " in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("MODEL", "--record", "NEW"), "add --plain"),
        (("MODEL", "--plain", "--record", "OLD"), "is there already; --force replaces it"),
        (("attach", "127.0.0.1:1"), "--plain"),
        (("attach", "nowhere", "--plain"), "'nowhere' is no HOST:PORT"),
        (("ranks", "MODEL", "--record", "NEW"), "attach HOST:PORT --plain --record FILE"),
        (("replay", "MODEL"), "is no file"),
        (("replay", "OLD"), "is no recording of ckpt-tui"),
        (("replay", "NEW"), "could not be read: ENOENT"),
    ],
)
def test_what_cannot_be_recorded_or_replayed_is_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "OLD").write_bytes(b"precious")
    write_checkpoint(tmp_path / "MODEL")
    names = {name: str(tmp_path / name) for name in ("OLD", "NEW", "MODEL")}
    done = ckpt_tui(*(names.get(word, word) for word in words))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "OLD").read_bytes() == b"precious"
    assert not (tmp_path / "NEW").exists()


def test_a_cut_recording_ends_in_words_and_with_3(tmp_path: Path) -> None:
    path = record(tmp_path / "a.rec", minute(bye=False))
    path.write_bytes(path.read_bytes()[:-10])
    done = ckpt_tui("replay", path)
    assert done.returncode == 3
    assert done.stderr == f"STOPPED  the recording ends here, before a verdict: {path}\n"


def test_a_full_disk_ends_the_recording_and_not_the_scan(tmp_path: Path) -> None:
    done = ckpt_tui(write_checkpoint(tmp_path / "model"), "--plain", "--no-cache", "--record", "/dev/full", "--force")
    assert done.returncode == 0
    assert "DONE  " in done.stdout
    assert done.stderr == "ckpt-tui: /dev/full: the recording ends after 0 B: ENOSPC: No space left on device\n"


def test_a_signal_ends_the_lines_with_its_code_and_leaves_no_process(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "model", shape=(512, 512))
    command = [sys.executable, "-P", "-m", "ckpt_tui", str(model), "--plain", "--no-cache", "--max-rate=100K"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(str(model))
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert (out, error) == ("", f"STOPPED  before a verdict: {model}\n")
    wait_until(lambda: not list(workers(model)), 5)


def test_a_reader_that_leaves_ends_the_lines_as_leaving_a_screen_does(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "model", shape=(512, 512))
    command = [sys.executable, "-P", "-m", "ckpt_tui", str(model), "--plain", "--no-cache", "--max-rate=100K"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(str(model))
        process.stdout.close()
        assert process.stderr.read() == f"STOPPED  before a verdict: {model}\n"
        assert process.wait(20) == 130
    wait_until(lambda: not list(workers(model)), 5)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "words", [("MODEL", "--plain", "--no-cache"), ("replay", "KEPT"), ("replay", "KEPT", "--plain", "--speed=0")]
)
def test_lines_that_cannot_be_written_are_said_and_leave_with_3(tmp_path: Path, words: tuple[str, ...]) -> None:
    kept = record(tmp_path / "a.rec", ((float(at), message) for at, message in enumerate(streams.verified())))
    names = {"MODEL": str(write_checkpoint(tmp_path / "model")), "KEPT": str(kept)}
    command = [sys.executable, "-P", "-m", "ckpt_tui", *(names.get(word, word) for word in words)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stderr == "ckpt-tui: stdout: the result could not be written: ENOSPC: No space left on device\n"


def workers(model: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"_worker" in words and str(model).encode() in words:
            found.append(entry.parent.name)
    return found
