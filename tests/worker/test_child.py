"""Real worker processes over real checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.status import Cell, Phase
from ckpt_tui.stream.messages import Level, Quit, Resync, Watch, Word
from tests.support.checkpoints import flip_bit, write_checkpoint
from tests.support.waiting import state_of, wait_until
from tests.worker.child import scan_argv, watching, worker_argv


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", shards=3, tensors=2, shape=(256, 512))


def test_a_scan_streams_its_files_its_result_and_its_code(checkpoint: Path, tmp_path: Path) -> None:
    with watching(scan_argv(checkpoint, tmp_path / "cache")) as child:
        state = child.until(lambda state: state.ended)
    assert state.skipped == 0
    assert state.survey is not None
    assert state.survey.roles == "swwwss"
    assert isinstance(state.result, ScanResult)
    assert [file.name for file in state.result.files] == [file.name for _, file in sorted(state.files[0].items())]
    assert {file.cell for file in state.files[0].values()} == {Cell.READ}
    assert state.ranks[0].status.phase is Phase.DONE
    assert state.ranks[0].status.bytes_done == state.survey.bytes_total
    assert state.verdict is not None
    assert (state.verdict.word, state.verdict.code) == (Word.DONE, 0)
    assert state.bye is not None
    assert state.ended is not None
    assert (state.bye.code, state.ended.code) == (0, 0)


def test_a_warm_start_reads_nothing_and_says_so(checkpoint: Path, tmp_path: Path) -> None:
    for _ in range(2):
        with watching(scan_argv(checkpoint, tmp_path / "cache")) as child:
            state = child.until(lambda state: state.ended)
    assert state.verdict is not None
    assert state.verdict.text.startswith("3/3 cached, 0.0 GiB read")
    assert state.ranks[0].status.bytes_cached == state.ranks[0].status.bytes_total


def test_damage_is_said_while_the_rest_is_still_read(checkpoint: Path, tmp_path: Path) -> None:
    cut = checkpoint / "model-00002-of-00003.safetensors"
    os.truncate(cut, cut.stat().st_size - 12_345)
    with watching(scan_argv(checkpoint, tmp_path / "cache", max_rate=200_000.0)) as child:
        state = child.until(lambda state: state.verdict)
        assert state.verdict is not None
        assert state.verdict.code is None
        assert (state.verdict.word, state.verdict.text) == (Word.DAMAGED, "1 shard truncated")
        row = next(file for file in state.files[0].values() if file.name == cut.name)
        assert "12,345" in str(row.note)
        child.source.send(Quit())
        assert child.until(lambda state: state.bye).bye.code == 130


def test_a_path_that_is_no_checkpoint_ends_with_its_reason_and_no_traceback(tmp_path: Path) -> None:
    with watching(scan_argv(tmp_path / "no\nwhere", tmp_path / "cache")) as child:
        state = child.until(lambda state: state.ended)
    assert state.bye is not None
    assert state.bye.code == 2
    assert "no\\nwhere" in state.bye.reason
    assert [line.level for line in state.logs.values()] == [Level.ERROR]
    assert "Traceback" not in str(state)


def test_quit_leaves_within_a_second_while_it_hashes(checkpoint: Path, tmp_path: Path) -> None:
    with watching(scan_argv(checkpoint, tmp_path / "cache", max_rate=100_000.0)) as child:
        child.until(lambda state: any(file.cell is Cell.READING for file in state.files.get(0, {}).values()))
        begun = time.monotonic()
        child.source.send(Quit())
        state = child.until(lambda state: state.ended)
        assert time.monotonic() - begun < 1.0
    assert state.ended is not None
    assert state.ended.code == 130


def test_resync_brings_everything_again(checkpoint: Path, tmp_path: Path) -> None:
    with watching(scan_argv(checkpoint, tmp_path / "cache", max_rate=300_000.0)) as child:
        child.until(lambda state: state.files)
        child.state.files.clear()
        child.source.send(Resync())
        child.until(lambda state: len(state.files.get(0, {})) == 6)


def test_a_worker_without_a_parent_ends_by_itself(checkpoint: Path, tmp_path: Path) -> None:
    """The parent is killed with -9: the kernel or the end of stdin ends the child."""
    argv = scan_argv(checkpoint, tmp_path / "cache", max_rate=50_000.0)
    code = "import subprocess,sys,time; p=subprocess.Popen(sys.argv[1:],stdin=-1,stdout=-1,start_new_session=True);"
    code += "p.stdout.readline(); print(p.pid,flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", code, *argv], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    orphan = int(parent.stdout.readline())
    parent.kill()
    parent.wait(5)
    parent.stdout.close()
    wait_until(lambda: not _alive(orphan), 5, what="the worker to end with its parent")


def _alive(pid: int) -> bool:
    try:
        return state_of(pid) != "Z"
    except FileNotFoundError:
        return False


def test_the_end_of_stdin_ends_a_worker(checkpoint: Path, tmp_path: Path) -> None:
    argv = scan_argv(checkpoint, tmp_path / "cache", max_rate=50_000.0)
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    process.stdin.close()
    assert process.wait(5) == 130
    process.stdout.close()


def test_native_output_and_prints_go_to_the_log_not_into_the_stream(tmp_path: Path) -> None:
    code = (
        "from ckpt_tui.worker.lifetime import claim_stdout, write_all\n"
        "import os\n"
        "fd = claim_stdout()\n"
        "print('stray print'); os.write(1, b'native \\x1b[31m line\\n'); os.write(2, b'[W socket.cpp] hello\\n')\n"
        'write_all(fd, b\'{"seq":1,"message":{"type":"bye","code":0}}\\n\')\n'
    )
    with watching([sys.executable, "-c", code]) as child:
        state = child.until(lambda state: state.ended)
    assert state.skipped == 0
    assert state.bye is not None
    texts = [line.text for line in state.logs.values()]
    assert set(texts) == {"stray print", "native \\x1b[31m line", "[W socket.cpp] hello"}
    assert {line.level for line in state.logs.values()} == {Level.NATIVE}


def test_a_killed_worker_is_told_by_its_signal(checkpoint: Path, tmp_path: Path) -> None:
    with watching(scan_argv(checkpoint, tmp_path / "cache", max_rate=50_000.0)) as child:
        child.until(lambda state: state.hello)
        os.kill(child.source.pid, signal.SIGKILL)
        state = child.until(lambda state: state.ended)
    assert state.ended is not None
    assert state.ended.code == -9
    assert state.bye is None


def test_ranks_stream_all_ranks_and_the_watched_ones_files(checkpoint: Path, tmp_path: Path) -> None:
    """Two real ranks, one bit apart: the same worker that the screen watches."""
    import shutil
    import socket

    other = tmp_path / "elsewhere" / "model"
    shutil.copytree(checkpoint, other)
    flip_bit(other / "model-00002-of-00003.safetensors", 200_000)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{listener.getsockname()[1]}"
    common = [f"--master={master}", "--world-size=2", f"--cache-dir={tmp_path / 'cache'}", "--max-rate=2M"]
    with (
        watching(worker_argv("ranks", str(checkpoint), "--rank=0", *common)) as zero,
        watching(worker_argv("ranks", str(other), "--rank=1", *common)) as one,
    ):
        zero.until(lambda state: len(state.files.get(0, {})) == 6 and len(state.ranks) == 2, 60)
        zero.source.send(Watch(rank=1))
        zero.until(lambda state: state.watched == 1 and list(state.files) == [1])
        zero.until(lambda state: state.holding, 60)
        zero.source.send(Quit())
        state = zero.until(lambda state: state.ended)
        assert one.until(lambda state: state.ended).verdict == state.verdict
    assert state.verdict is not None
    assert (state.verdict.word, state.verdict.code) == (Word.DIFFER, 1)
    assert "model-00002-of-00003.safetensors" in state.verdict.lines[0]
    assert "model.layers.2.mlp" in state.verdict.lines[0]
    assert state.ended is not None
    assert state.ended.code == 1
