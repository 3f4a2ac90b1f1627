"""A session of ranks in real terminals: one rank's own screen, and a viewer's beside it."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ranks
from tests.support.waiting import wait_until
from tests.tui.test_tmux import Terminal

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


def words(*argv: str) -> str:
    return f"clear; {shlex.join([sys.executable, '-P', '-m', 'ckpt_tui', *argv])}; echo left with $?"


def test_a_ranks_own_screen_and_a_viewer_that_leaves_and_comes_back(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name, shape=(512, 512)) for name in ("a", "b")]
    shard = folders[1] / "model-00002-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard) + 5)
    result = tmp_path / "result.json"
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    own, other = (Terminal(tmp_path / name, columns=100, TERM="tmux-256color") for name in ("one", "two"))
    try:
        with Ranks(2, ("--max-rate", "500K")) as ranks:
            master = f"127.0.0.1:{ranks.port}"
            own.run(
                words(
                    *("ranks", str(folders[0]), "--tui", "--no-cache", "--max-rate=500K", f"--result={result}"),
                    *(f"--master={master}", "--world-size=2", "--rank=0"),
                )
            )
            own.shows("MEETING", "1 of 2 ranks are here")
            other.run(words("attach", master, "--wait=20s"))
            other.shows("MEETING", "waiting for rank 1")
            ranks.start(1, folders[1])
            own.shows("READING", "on 2 ranks")
            other.shows("READING", "on 2 ranks")
            other.key("q")
            other.shows("left with 130")
            assert other.is_sane()
            other.run(words("attach", master))
            other.shows("READING")
            other.key("1")
            other.key("]")
            other.shows("rank [1 ", "00002")
            own.shows("DIFFER", "bit-flip")
            other.shows("DIFFER")
            assert [rank.code for rank in ranks.end()] == [1]
        for terminal in (own, other):
            terminal.key("q")
            terminal.shows("left with 1", "DIFFER")
            assert terminal.is_sane()
        wait_until(result.exists, 5)
        assert json.loads(result.read_text())["verdict"] == "differ"
    finally:
        own.close()
        other.close()
