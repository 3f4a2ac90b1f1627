"""Two hosts with a cable between them: a network namespace plays the other one. Skipped where none can be made."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.checkpoints import write_checkpoint
from tests.support.ranks import Ranks, wait_for_reading

#: Becomes host-b, whose own name leads to 127.0.1.1, as Debian's hosts file has it.
AS_HOST_B = 'hostname host-b && mount --bind "$0" /etc/hosts && exec "$@"'


def ip(*words: str) -> None:
    """One command of iproute2."""
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


class Cable(NamedTuple):
    """The way to the other host: this machine's address and end of it, and what starts a process over there."""

    address: str
    link: str
    there: tuple[str, ...]


@pytest.fixture
def cable(tmp_path: Path) -> Iterator[Cable]:
    """Two ends in a network of their own."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "unshare", "hostname"))):
        pytest.skip("network namespaces need root, iproute2 and util-linux")
    number = os.getpid()
    space, here, there = f"ckpt{number}", f"ckpta{number}", f"ckptb{number}"
    net = f"198.18.{number // 64 % 256}.{number % 64 * 4}"
    first, second = (f"{net.rpartition('.')[0]}.{int(net.rpartition('.')[2]) + end}" for end in (1, 2))
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.1.1 host-b\n")
    with undone(space, here):
        try:
            ip("netns", "add", space)
            ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
            ip("address", "add", f"{first}/30", "dev", here)
            ip("link", "set", here, "up")
            inside = ("netns", "exec", space, "ip")
            ip(*inside, "address", "add", f"{second}/30", "dev", there)
            ip(*inside, "link", "set", there, "up")
            ip(*inside, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no network namespaces here: {getattr(error, 'stderr', error)!r}")
        # Another host's processes are not seen to end.
        apart = ("--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
        enter = ("ip", "netns", "exec", space, "unshare", *apart, "sh", "-c", AS_HOST_B, str(hosts))
        yield Cable(first, here, enter)


@contextmanager
def undone(space: str, link: str) -> Iterator[None]:
    """Leave nothing behind, however far it got."""
    try:
        yield
    finally:
        for words in (("link", "del", link), ("netns", "del", space)):
            subprocess.run(["ip", *words], check=False, capture_output=True, timeout=20)


def test_two_hosts_whose_names_lead_to_loopback_find_each_other_through_gloo(tmp_path: Path, cable: Cable) -> None:
    """Case R06, names that lead to loopback."""
    folders = [write_checkpoint(tmp_path / name) for name in "ab"]
    with Ranks(2, host=cable.address) as ranks:
        ranks.start(None, folders[0], name="here")
        ranks.start(None, folders[1], name="there", before=cable.there)
        ended = ranks.end()
    assert [one.code for one in ended] == [0, 0]
    told = [line for one in ended for line in one.err.splitlines() if "waiting for" not in line]  # for a slow start
    assert not told, "a way around Gloo would be told"
    ranks_told = ended[0].agreement["ranks"]
    assert [rank["rank"] for rank in ranks_told] == [0, 1]
    assert ranks_told[1]["host"] == "host-b"


def test_a_rank_that_is_cut_off_is_named_by_the_others_and_accuses_nobody(tmp_path: Path, cable: Cable) -> None:
    folder = write_checkpoint(tmp_path / "model", shape=(512, 1024))
    with Ranks(3, ("--max-rate", "2M", "--rank-timeout", "3"), host=cable.address) as ranks:
        ranks.start(0, folder)
        ranks.start(1, folder)
        ranks.start(2, folder, before=cable.there)
        wait_for_reading(ranks.port, 3)
        ip("link", "set", cable.link, "down")
        ranks.mark()
        first, second, cut_off = ranks.end()
    assert (first.code, second.code, cut_off.code) == (4, 4, 4)
    assert first.out == second.out
    assert first.agreement["absent"] == [2]
    assert "on host-b, silent for" in first.agreement["absent_detail"][0]
    assert "was reading model-0000" in first.agreement["absent_detail"][0]
    assert f"lost contact with the store on {cable.address}" in cut_off.agreement["summary"]
    assert cut_off.agreement["absent_detail"] == ["rank 0: not known", "rank 1: not known"]
    assert max(first.seconds, second.seconds, cut_off.seconds) < 3 + 5
