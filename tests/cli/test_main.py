"""What a command leaves with, whatever happens to it: a code that means what the help says, and never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ckpt_tui.cli import main
from ckpt_tui.facts.outcome import Exit
from tests.support.checkpoints import write_checkpoint

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small whole checkpoint."""
    return write_checkpoint(tmp_path / "model")


def shell(words: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """A command line with redirections, as a shell runs it."""
    env = os.environ | {"CKPT_TUI_CACHE_DIR": str(folder.parent / "cache"), "MODEL": str(folder), "PY": sys.executable}
    script = f'exec "$PY" -m ckpt_tui {words}'
    return subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, timeout=60, check=False)


@needs_full
@pytest.mark.parametrize(
    "words", ['scan "$MODEL"', 'scan --json "$MODEL"', "cache stats", "--help", 'ranks "$MODEL" --world-size 1']
)
def test_a_result_that_cannot_be_written_is_not_the_code_of_a_difference(words: str, folder: Path) -> None:
    told = shell(f"{words} >/dev/full", folder)
    assert told.returncode == Exit.UNDECIDED
    assert b"ENOSPC" in told.stderr
    assert b"Traceback" not in told.stderr


@needs_full
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ('scan "$MODEL" >/dev/full', Exit.UNDECIDED),
        ('scan "$MODEL" --no-such-option', Exit.USAGE),
        ('scan "$MODEL/nowhere"', Exit.USAGE),
    ],
)
def test_the_code_is_right_where_not_even_an_error_can_be_written(words: str, code: Exit, folder: Path) -> None:
    assert shell(f"{words} 2>/dev/full", folder).returncode == code


@pytest.mark.parametrize("words", ["--help", "scan --help", "--version"])
def test_a_reader_that_has_left_is_not_the_code_of_a_difference(words: str, folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ckpt_tui", *words.split()]
    told = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (told.returncode, told.stderr) == (Exit.UNDECIDED, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere_and_change_nothing(closed: str, folder: Path) -> None:
    told = shell(f'scan "$MODEL" {closed}', folder)
    assert (told.returncode, told.stderr) == (Exit.SAME, b"")


@pytest.mark.parametrize("module", ["click", "ckpt_tui.cli.main"])
def test_ctrl_c_before_the_command_has_begun_leaves_no_traceback(module: str) -> None:
    script = f"""
import os, signal, sys
class Interrupts:
    def find_spec(self, name, *_more):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from ckpt_tui.__main__ import main
sys.argv = ["ckpt-tui", "cache", "path"]
main()
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (-signal.SIGINT, b"", b"")


def test_what_nobody_foresaw_is_a_line_with_its_place_and_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*_args: object, **_more: object) -> None:
        raise ValueError("bad\x1b[31m")

    monkeypatch.setattr(main.cli, "main", breaks)
    assert main.run(["scan", "x"]) == Exit.UNDECIDED
    said = capsys.readouterr().err
    assert said.startswith("ckpt-tui: this should not have happened: ValueError: bad\\x1b[31m (test_main.py:")


@needs_full
def test_what_was_found_comes_before_what_could_not_be_written(folder: Path) -> None:
    whole = shell('scan --save /dev/full "$MODEL"', folder)
    assert (whole.returncode, whole.stdout.startswith(b"DONE")) == (Exit.UNDECIDED, True)
    assert b"could not be written" in whole.stderr
    with (folder / "model-00001-of-00002.safetensors").open("ab") as shard:
        shard.write(b"more")
    for words in ('scan --save /dev/full "$MODEL"', 'scan "$MODEL" >/dev/full', 'compare "$MODEL" "$MODEL" >/dev/full'):
        assert shell(words, folder).returncode == Exit.DIFFERENT, words


@pytest.mark.parametrize(
    "words",
    [
        'scan "$MODEL" --save',
        'verify "$MODEL" --save',
        'verify "$MODEL" --report',
        'compare "$MODEL" "$MODEL" --report',
    ],
)
def test_a_place_where_nothing_can_be_written_is_refused_before_anything_is_read(words: str, folder: Path) -> None:
    told = shell(f"{words} no-such-folder/r.json", folder)
    assert (told.returncode, told.stdout) == (Exit.USAGE, b"")
    assert told.stderr == b"ckpt-tui: no-such-folder/r.json: cannot be written: there is no folder no-such-folder\n"
    assert not (folder.parent / "cache").exists()


@pytest.mark.parametrize(
    ("word", "meant"), [("scna", "scan"), ("comapre", "compare"), ("verfy", "verify"), ("rank", "ranks")]
)
def test_a_command_that_is_nearly_one_is_told_from_a_path(
    word: str, meant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.run([word, "x", "y"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"ckpt-tui: {word}: neither a command nor a path; `ckpt-tui {meant}` is one")
    assert said.count("\n") == 1
    (tmp_path / word).mkdir()
    main.run([word])
    assert "neither a command" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--join-timeout", "--rank-timeout"])
def test_no_time_at_all_to_wait_is_a_wrong_word(option: str, folder: Path) -> None:
    told = shell(f'ranks "$MODEL" --world-size 1 {option} 0s', folder)
    assert told.returncode == Exit.USAGE
    assert b"'0s' is too short; 1s at least is needed" in told.stderr
