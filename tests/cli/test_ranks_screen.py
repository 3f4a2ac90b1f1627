"""`ranks --tui`: the screen on a rank, and where there is none to be had."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ckpt_tui.cli import ranks
from ckpt_tui.cli.options import as_arguments
from ckpt_tui.cli.worker import RANK_PARAMS
from tests.support.ranks import LAUNCHER

PLACE = ("--master", "node-a:29400", "--world-size", "2", "--rank", "1")


def refusal(*options: str) -> str:
    """What `ranks --tui` says, with terminals for its streams and none of its own, as under torchrun."""
    master, slave = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key not in LAUNCHER} | {"TERM": "xterm-256color"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ckpt_tui", "ranks", "/model", "--tui", *options],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=env,
            timeout=30,
            check=False,
        )
        assert done.returncode == 2
        return os.read(master, 1 << 16).decode()
    finally:
        os.close(master)
        os.close(slave)


def test_without_a_terminal_of_its_own_it_is_refused_with_the_address_to_attach_to() -> None:
    assert "ckpt-tui attach node-a:29400" in refusal(*PLACE)


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--", "true"), "--tui with -- CMD"), (("--json",), "--result FILE"), (("--with", "x"), "KEY=VALUE")],
)
def test_what_does_not_go_with_a_screen_is_refused(options: tuple[str, ...], said: str) -> None:
    with pytest.raises(Exception, match=said):
        ranks.command.main(["/model", "--tui", *PLACE, *options], standalone_mode=False)


def test_the_worker_gets_every_option_that_bears_on_the_verdict(tmp_path: Path) -> None:
    words = [
        *("--with=a=1", "--with=b=2", "--strict", "--identity-only", "--keep-going", "--rehash", "--include=*.bin"),
        *("--result=r.json", "--max-rate=2M", "--join-timeout=90s", "--master=node-a:29400", "--rank=1"),
    ]
    given = ranks.command.make_context("ranks", ["/model", "--tui", *words]).params
    passed = as_arguments(RANK_PARAMS, given)
    again = ranks.command.make_context("ranks", ["/model", *passed]).params
    assert again == given | {"tui": False}
