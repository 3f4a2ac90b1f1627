"""What differs is read again before anybody is blamed, by real ranks: sick machines, and ranks that go meanwhile."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ranks
from tests.support.waiting import wait_until

SHARD = "model-00002-of-00002.safetensors"


def sick(fault: str, folder: Path, mark: Path | str = "-") -> tuple[str, ...]:
    """A rank on a machine that reads a byte of the second shard wrongly."""
    return ("tests.support.sick", fault, SHARD, str(payload_offset(folder / SHARD) + 7), str(mark))


def verdict_on_both(ranks: Ranks) -> dict[str, Any]:
    """The agreement of two ranks that find a difference."""
    ended = ranks.end()
    assert [one.code for one in ended] == [1, 1], [one.err for one in ended]
    assert ended[0].out == ended[1].out
    return ended[0].agreement


def test_a_machine_that_read_wrongly_once_is_unstable_and_no_file_is_blamed(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name) for name in "ab"]
    with Ranks(2) as ranks:
        ranks.start(0, folders[0])
        ranks.start(1, folders[1], program=sick("flips-once", folders[1]))
        agreement = verdict_on_both(ranks)
    (difference,) = agreement["differences"]
    assert difference["cause"]["code"] == "unstable-read"
    assert difference["cause"]["mend"] == ""
    assert difference["segments"][0]["drill"]["read_again"] == {"A": True, "B": False}
    assert {group["standing"] for group in agreement["groups"]} == {"undecided"}
    assert "read again, it gave other bytes" in agreement["groups"][1]["evidence"]


def test_one_folder_that_two_ranks_read_differently_is_one_file_and_a_host_is_at_fault(tmp_path: Path) -> None:
    """Case R13, old bytes under the new size."""
    folder = write_checkpoint(tmp_path / "shared")
    with Ranks(2) as ranks:
        ranks.start(0, folder)
        ranks.start(1, folder, program=sick("flips", folder))
        agreement = verdict_on_both(ranks)
    (difference,) = agreement["differences"]
    assert (difference["cause"]["code"], difference["cause"]["candidate"]) == ("same-file-read-differently", False)
    assert difference["segments"][0]["drill"]["read_again"] == {"A": True, "B": True}
    assert "1 bit in 1 byte" in difference["cause"]["facts"]
    assert {group["standing"] for group in agreement["groups"]} == {"undecided"}


@pytest.mark.parametrize(
    ("leaver", "number"), [(1, signal.SIGKILL), (1, signal.SIGINT), (0, signal.SIGINT)], ids=["killed", "it", "other"]
)
def test_a_rank_that_goes_while_the_bytes_are_read_again_is_named(
    tmp_path: Path, leaver: int, number: signal.Signals
) -> None:
    good, bad = (write_checkpoint(tmp_path / name) for name in ("good", "bad"))
    flip_bit(bad / SHARD, payload_offset(bad / SHARD) + 7)
    mark = tmp_path / "reads again"
    with Ranks(2) as ranks:
        ranks.start(0, good)
        ranks.start(1, bad, program=sick("hangs-again", bad, mark))
        wait_until(mark.exists, 30, what="the second reading")
        ranks.signal(leaver, number)
        left, stayed = ranks.end(leaver, 1 - leaver)
    assert left.code == (-signal.SIGKILL if number is signal.SIGKILL else 130)
    assert (stayed.code, stayed.agreement["absent"]) == (4, [leaver])
    assert stayed.seconds < 5
    said = "its process has ended" if number is signal.SIGKILL else "interrupted"
    assert said in stayed.agreement["absent_detail"][0]
