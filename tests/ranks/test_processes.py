"""Processes of this machine: who has died is known at once, and a pid that is used again deceives nobody."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from ckpt_tui.ranks.messages import Hello
from ckpt_tui.ranks.processes import LocalProcesses, process_space, start_time
from tests.support.waiting import wait_until


def hello(rank: int, pid: int) -> Hello:
    """A rank of this machine."""
    return Hello(
        protocol=1,
        layout=1,
        tool="test",
        rank=rank,
        world_size=3,
        host="node",
        pid=pid,
        token=str(rank),
        space=process_space(),
        started=start_time(pid),
    )


def test_a_process_that_is_killed_has_ended_at_once_and_one_that_lives_has_not() -> None:
    me = hello(0, os.getpid())
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as lives,
        subprocess.Popen(command, stdin=subprocess.PIPE) as dies,
    ):
        processes = LocalProcesses(me, [me, hello(1, lives.pid), hello(2, dies.pid)])
        assert processes.ended() == frozenset()
        dies.kill()
        wait_until(lambda: processes.ended() == {2}, 5)  # also while nobody has waited for it
        assert processes.ended() == {2}
        processes.close()


def test_a_pid_that_belongs_to_a_later_process_is_not_that_rank() -> None:
    me = hello(0, os.getpid())
    other = msgspec.structs.replace(hello(1, os.getppid()), started=start_time(os.getppid()) + 1)
    assert LocalProcesses(me, [other]).ended() == {1}


def test_pids_of_another_machine_or_namespace_say_nothing() -> None:
    me = hello(0, os.getpid())
    elsewhere = msgspec.structs.replace(hello(1, 1), pid=2**22 + 1, space="elsewhere")
    unknown = msgspec.structs.replace(elsewhere, space="")
    assert LocalProcesses(me, [elsewhere, unknown]).ended() == frozenset()
