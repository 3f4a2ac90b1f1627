"""`ranks --report`: one rank writes it; what is in its way is known to all before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckpt_tui.report.json import decode
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ranks


def test_the_lowest_rank_writes_the_report_and_without_hosts_where_that_is_wished(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / name) for name in "ab"]
    shard = folders[1] / "model-00001-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard))
    with Ranks(2, ("--redact",)) as ranks:
        for rank, folder in enumerate(folders):
            ranks.start(rank, folder, "--report", str(tmp_path / f"by-{rank}.json"))
        ended = ranks.end()
    assert [one.code for one in ended] == [1, 1], ended
    assert not (tmp_path / "by-1.json").exists()
    report = decode((tmp_path / "by-0.json").read_bytes(), "report")
    assert report.schema == "ckpt-tui/agreement/1"
    assert str(folders[1]) not in (tmp_path / "by-0.json").read_text()
    assert str(folders[1]) in ended[0].out


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--report", "old.md", "old.md: is there already; --force replaces it"),
        ("--result", "no/r.json", "r.json: cannot be written: there is no folder"),
    ],
)
def test_what_is_in_the_way_of_any_rank_stops_all_before_they_begin(
    tmp_path: Path, option: str, name: str, words: str
) -> None:
    folder = write_checkpoint(tmp_path / "a")
    (tmp_path / "old.md").write_text("precious")
    with Ranks(2) as ranks:
        ranks.start(0, folder, "--report", str(tmp_path / "new.md"))
        ranks.start(1, folder, option, str(tmp_path / name))
        ended = ranks.end()
    assert [one.code for one in ended] == [2, 2]
    assert all("rank 1 (" in one.err and words in one.err for one in ended)
    assert (tmp_path / "old.md").read_text() == "precious"
    assert not (tmp_path / "new.md").exists()


def test_a_name_that_can_be_no_report_is_refused_before_any_rank_meets_another(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(2) as ranks:
        ranks.start(0, folder, "--report", str(tmp_path / "report.pdf"))
        ranks.start(1, folder, "--force")
        ended = ranks.end(seconds=15)
    assert [one.code for one in ended] == [2, 2]
    assert "ends in one of" in ended[0].err
    assert "--force goes with --report" in ended[1].err


def test_a_report_that_could_not_be_written_keeps_every_rank_from_leaving_with_0(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(2) as ranks:
        (tmp_path / "full.md").symlink_to("/dev/full")
        for rank in range(2):
            command = ("--", "touch", str(tmp_path / f"started-{rank}"))
            ranks.start(rank, folder, "--report", str(tmp_path / "full.md"), "--force", *command)
        ended = ranks.end()
    assert [one.code for one in ended] == [3, 3]
    assert "could not be written" in ended[0].err
    assert not list(tmp_path.glob("started-*"))
