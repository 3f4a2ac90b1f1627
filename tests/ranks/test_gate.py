"""`ckpt-tui ranks PATH -- CMD`: becomes CMD when all agree, as if CMD had been started in its place; else leaves."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from ckpt_tui.cli.gate import Gate
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.channel import Channel
from ckpt_tui.ranks.meet import Meeting
from ckpt_tui.ranks.store import Store
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ended, Ranks, is_open
from tests.support.waiting import wait_until

#: Tells what a program that has just been started finds.
FINDS = """
import json, os, resource, signal, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
numbers = [int(name) for name in os.listdir("/proc/self/fd")]
print(json.dumps({
    "pid": os.getpid(), "argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ),
    "fds": sorted(number for number in numbers if os.path.exists(f"/proc/self/fd/{number}")),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "threads": status["Threads"].strip(),
    "blocked": status["SigBlk"].strip(), "ignored": status["SigIgn"].strip(), "stdin": sys.stdin.read(),
}))
sys.exit(7)
"""


def ignored() -> int:
    """The signals that this process ignores, and so its children: whoever started it may have had some ignored."""
    lines = Path("/proc/self/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    # Python itself ignores these two.
    return mask | 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1


def becoming(folder: Path, ranks: Ranks, rank: int, *command: str, options: tuple[str, ...] = ()) -> list[str]:
    """The words that start one rank which becomes a command."""
    return [
        *(sys.executable, "-m", "ckpt_tui", "ranks", str(folder), "--no-cache", *options),
        *("--master", f"127.0.0.1:{ranks.port}", "--world-size", str(ranks.world_size), "--rank", str(rank)),
        *("--", *command),
    ]


def gated(
    folders: list[Path], *command: str, options: tuple[str, ...] = (), before: tuple[str, ...] = ()
) -> tuple[list[Ended], list[int]]:
    """A session whose ranks become the command: how they ended, and their process ids. `before` starts each rank."""
    with Ranks(len(folders)) as ranks:
        for rank, folder in enumerate(folders):
            ranks.launch(str(rank), [*before, *becoming(folder, ranks, rank, *command, options=options)])
        return ranks.end(), [ranks.process(rank).pid for rank in range(len(folders))]


def test_when_all_agree_each_becomes_the_command_and_finds_nothing_of_ours(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name) for name in ("a", "b")]
    # So few open files that a session raises the limit for itself.
    few = ("sh", "-c", 'ulimit -Sn 32; exec "$@"', "sh")
    ended, pids = gated(folders, sys.executable, "-c", FINDS, "--rank", "x", "--", "-h", before=few)
    assert [rank.code for rank in ended] == [7, 7], [rank.err for rank in ended]
    ours = set(os.environ) | {"LC_CTYPE", "PYTHONFAULTHANDLER"}  # the latter is what `Ranks` sets
    for rank, pid in zip(ended, pids, strict=True):
        found: dict[str, Any] = json.loads(rank.out)  # nothing of ours is on its stdout
        assert found["pid"] == pid
        assert found["argv"] == ["--rank", "x", "--", "-h"]
        assert found["cwd"] == str(Path.cwd())
        assert set(found["env"]) <= ours
        assert found["fds"] == [0, 1, 2]
        assert found["files"] == 32
        assert (found["threads"], found["stdin"]) == ("1", "")
        assert int(found["blocked"], 16) == 0
        assert int(found["ignored"], 16) == ignored()
    assert "agree" in ended[0].err


def test_where_they_differ_nothing_is_started_and_the_code_is_the_sessions(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name) for name in ("a", "b")]
    shard = folders[1] / "model-00002-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard))
    ended, _ = gated(folders, "touch", str(tmp_path / "started"))
    assert [(rank.code, rank.out) for rank in ended] == [(1, ""), (1, "")]
    assert not (tmp_path / "started").exists()


def test_metadata_alone_proves_no_agreement_and_starts_nothing(tmp_path: Path) -> None:
    ended, _ = gated([write_checkpoint(tmp_path / "a")], "touch", str(tmp_path / "b"), options=("--identity-only",))
    assert ended[0].code == 3
    assert not (tmp_path / "b").exists()


def test_the_host_of_the_store_serves_it_until_the_last_rank_has_heard(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name) for name in "abc"]
    ended, _ = gated(folders, "true")
    assert [rank.code for rank in ended] == [0, 0, 0], [rank.err for rank in ended]


def test_a_command_that_is_not_there_is_told_before_any_session(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    (tmp_path / "plain").write_text("text")
    for program, words in (
        ("no-such-program", "not found in PATH"),
        (str(tmp_path / "none"), "not there: "),
        (str(tmp_path / "plain"), "no program that may be run"),
    ):
        with pytest.raises(UsageError, match=words):
            Gate([program])
    with Ranks(2) as ranks:  # the other never comes, and is not waited for
        ranks.launch("0", becoming(folder, ranks, 0, "no\x1bprogram"))
        ranks.launch("1", [*becoming(folder, ranks, 1), "--"][:-1])
        ended = ranks.end(seconds=20)
    assert [rank.code for rank in ended] == [2, 2]
    assert "the command no\\x1bprogram is not found" in ended[0].err
    assert "after -- comes the command" in ended[1].err


def test_a_file_that_the_kernel_refuses_is_told_in_a_line(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo no first line")
    script.chmod(0o755)
    (ended,), _ = gated([write_checkpoint(tmp_path / "a")], str(script))
    assert ended.code == 2
    assert "the ranks agree, but" in ended.err
    assert "#!/bin/sh" in ended.err


def test_what_the_launcher_ignores_stays_ignored(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(1) as ranks:
        command = becoming(folder, ranks, 0, sys.executable, "-c", FINDS)
        ranks.launch("0", ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command])
        (ended,) = ranks.end()
    assert int(json.loads(ended.out)["ignored"], 16) & 1 << signal.SIGHUP - 1


def test_a_rank_that_never_comes_starts_nothing(tmp_path: Path) -> None:
    with Ranks(2) as ranks:
        folder = write_checkpoint(tmp_path / "a")
        ranks.launch("0", becoming(folder, ranks, 0, "touch", str(tmp_path / "b"), options=("--join-timeout", "6")))
        (ended,) = ranks.end()
    assert ended.code == 4
    assert not (tmp_path / "b").exists()


def test_the_port_is_free_again_while_the_command_runs(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(1) as ranks:
        ranks.launch("0", becoming(folder, ranks, 0, "sh", "-c", f"echo > {tmp_path}/runs; exec sleep 60"))
        wait_until((tmp_path / "runs").exists, 30, what="the command")
        assert not is_open(Address("127.0.0.1", ranks.port))


def test_all_go_on_or_none(connections: Callable[[], Store]) -> None:
    def channel() -> Channel:
        meeting = Meeting(call="c", nonce="n", members={}, absent={})
        joined: Any = SimpleNamespace(store=connections(), meeting=meeting, scope="s", telemetry=Mock())
        return Channel(joined, clock=SystemClock(), watch=nothing)

    impatient, late = channel(), channel()
    assert not impatient.acknowledge(2, 0.0)
    # Both are there now; the first has gone home.
    assert not late.acknowledge(2, 5.0)
