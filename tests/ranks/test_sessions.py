"""Whole sessions of real processes: what every rank prints, and with which code it leaves."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ended, Ranks, session, wait_for_reading
from tests.support.waiting import wait_until

#: Six tensors of 2 MiB read at 2 MiB a second: time enough for something to happen while they are hashed.
LARGE = (512, 1024)
SLOW = ("--max-rate", "2M")
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))


def one_verdict(ended: list[Ended]) -> dict[str, Any]:
    """The agreement that all of these ranks printed, to the byte."""
    assert len({rank.out for rank in ended}) == 1, [rank.err for rank in ended]
    return ended[0].agreement


def flipped(folder: Path) -> Path:
    """A copy that has one bit flipped in the first tensor of its second shard."""
    shard = write_checkpoint(folder) / "model-00002-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard) + 5)
    return folder


def test_equal_copies_under_other_names_agree(tmp_path: Path) -> None:
    ended = session([write_checkpoint(tmp_path / name) for name in ("one", "two", "three")])
    assert [rank.code for rank in ended] == [0, 0, 0]
    agreement = one_verdict(ended)
    assert (agreement["verdict"], agreement["stage"], agreement["weights_equal"]) == ("agree", "content", True)
    assert [rank["path"] for rank in agreement["ranks"]] == [str(tmp_path / name) for name in ("one", "two", "three")]
    assert all(0 < rank["bytes_sent"] < 1000 for rank in agreement["ranks"])
    assert not any(rank.err for rank in ended)


def test_one_flipped_bit_is_named_by_every_rank_and_the_odd_one_stands_out(tmp_path: Path) -> None:
    """Case R02, three ranks."""
    folders = [write_checkpoint(tmp_path / "a"), flipped(tmp_path / "b"), write_checkpoint(tmp_path / "c")]
    ended = session(folders)
    assert [rank.code for rank in ended] == [1, 1, 1]
    agreement = one_verdict(ended)
    assert agreement["verdict"] == "differ"
    standing = {tuple(group["ranks"]): group["standing"] for group in agreement["groups"]}
    assert standing == {(0, 2): "majority", (1,): "minority"}
    (difference,) = agreement["differences"]
    assert difference["file"] == "model-00002-of-00002.safetensors"
    assert [segment["name"] for segment in difference["segments"]] == ["model.layers.2.mlp.0.weight"]
    assert difference["cause"]["code"] == "bit-flip"
    assert difference["segments"][0]["drill"]["read_again"] == {"A": True, "B": True}


def test_of_two_ranks_nobody_is_accused(tmp_path: Path) -> None:
    """Case R02, two ranks."""
    ended = session([write_checkpoint(tmp_path / "a"), flipped(tmp_path / "b")])
    assert [rank.code for rank in ended] == [1, 1]
    assert {group["standing"] for group in one_verdict(ended)["groups"]} == {"undecided"}


def test_other_tensor_names_stop_the_session_before_a_tensor_is_read(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / "a"), write_checkpoint(tmp_path / "b", prefix="other.layers")]
    cache = tmp_path / "cache"
    with Ranks(2) as ranks:
        for rank, folder in enumerate(folders):
            ranks.launch(
                str(rank),
                [
                    *(sys.executable, "-m", "ckpt_tui", "ranks", str(folder), "--json", "--cache-dir", str(cache)),
                    *("--master", f"127.0.0.1:{ranks.port}", "--world-size", "2", "--rank", str(rank)),
                ],
            )
        ended = ranks.end()
    assert [rank.code for rank in ended] == [1, 1]
    agreement = one_verdict(ended)
    assert (agreement["verdict"], agreement["stage"]) == ("differ", "identity")
    # Whatever is read is remembered: nothing was.
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_given_fact_that_differs_stops_the_session_before_a_tensor_is_read(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(2) as ranks:
        ranks.start(0, folder, "--with", "engine=0.8", "--with", "tp=2")
        ranks.start(1, folder, "--with", "engine=0.9\x1b[31m", "--with", "tp=2")
        ended = ranks.end()
    assert [rank.code for rank in ended] == [1, 1]
    agreement = one_verdict(ended)
    assert (agreement["verdict"], agreement["stage"]) == ("differ", "identity")
    assert agreement["unequal"] == [
        {
            "key": "engine",
            "values": [{"value": "0.8", "ranks": [0]}, {"value": "0.9\\x1b[31m", "ranks": [1]}],
        }
    ]


def test_keep_going_reads_on_where_the_headers_differ(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / "a"), write_checkpoint(tmp_path / "b", prefix="other.layers")]
    agreement = one_verdict(session(folders, "--keep-going"))
    assert (agreement["verdict"], agreement["stage"]) == ("differ", "content")


def test_a_rank_whose_folder_is_missing_answers_with_its_error(tmp_path: Path) -> None:
    """Case R03, an absent folder."""
    ended = session([write_checkpoint(tmp_path / "a"), tmp_path / "no\x1b[31mwhere"])
    assert [rank.code for rank in ended] == [3, 3]
    agreement = one_verdict(ended)
    (error,) = agreement["errors"]
    assert error["rank"] == 1
    assert "no\\x1b[31mwhere: " in error["message"]
    assert agreement["absent"] == []


def test_a_rank_with_a_missing_shard_is_named_on_all_ranks(tmp_path: Path) -> None:
    """Case R03, a missing shard."""
    folders = [write_checkpoint(tmp_path / "a"), write_checkpoint(tmp_path / "b")]
    (folders[1] / "model-00002-of-00002.safetensors").unlink()
    ended = session(folders)
    assert [rank.code for rank in ended] == [1, 1]
    agreement = one_verdict(ended)
    assert agreement["verdict"] == "differ"
    assert "model-00002-of-00002.safetensors" in {difference["file"] for difference in agreement["differences"]}


def test_one_rank_is_a_session_too(tmp_path: Path) -> None:
    (ended,) = session([write_checkpoint(tmp_path / "a")])
    assert (ended.code, ended.agreement["verdict"]) == (0, "agree")


def test_a_rank_that_never_comes_is_named_within_the_timeout(tmp_path: Path) -> None:
    """Case R05, too few."""
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(3, ("--join-timeout", "8")) as ranks:
        ranks.start(0, folder)
        ranks.start(1, folder)
        ended = ranks.end()
    assert [rank.code for rank in ended] == [4, 4]
    assert all(rank.seconds < 8 + 5 for rank in ended)
    agreement = one_verdict(ended)
    assert (agreement["verdict"], agreement["absent"]) == ("incomplete", [2])
    assert "has not come" in agreement["absent_detail"][0]


def test_where_rank_0_never_comes_nobody_listens(tmp_path: Path) -> None:
    """Case R05, nobody at the address."""
    with Ranks(2, ("--join-timeout", "3")) as ranks:
        ranks.start(1, write_checkpoint(tmp_path / "a"))
        (ended,) = ranks.end()
    assert ended.code == 4
    assert "nobody listens" in ended.agreement["summary"]
    assert "waiting for the store: nobody listens" in ended.err


def test_a_rank_that_is_killed_while_hashing_is_named_at_once(tmp_path: Path) -> None:
    """Case R04 c."""
    with Ranks(3, SLOW) as ranks:
        start_reading(ranks, write_checkpoint(tmp_path / "a", shape=LARGE))
        ranks.signal(1, signal.SIGKILL)
        ended = ranks.end(0, 2)
    assert [rank.code for rank in ended] == [4, 4]
    assert all(rank.seconds < 5 for rank in ended)
    agreement = one_verdict(ended)
    assert (agreement["verdict"], agreement["absent"]) == ("incomplete", [1])
    assert "its process has ended" in agreement["absent_detail"][0]
    assert "was reading model-0000" in agreement["absent_detail"][0]


def test_where_the_store_dies_with_rank_0_contact_is_lost(tmp_path: Path) -> None:
    with Ranks(2, SLOW) as ranks:
        start_reading(ranks, write_checkpoint(tmp_path / "a", shape=LARGE))
        ranks.signal(0, signal.SIGKILL)
        (ended,) = ranks.end(1)
    assert ended.code == 4
    assert ended.seconds < 5
    assert "lost contact with the store on 127.0.0.1" in ended.agreement["summary"]
    # It died on this machine, so this much is known.
    assert "its process has ended" in ended.agreement["absent_detail"][0]


def test_a_rank_that_is_stopped_is_lost_and_knows_it_when_it_wakes(tmp_path: Path) -> None:
    """Case R04 b."""
    with Ranks(2, (*SLOW, "--rank-timeout", "2")) as ranks:
        start_reading(ranks, write_checkpoint(tmp_path / "a", shape=LARGE))
        ranks.signal(1, signal.SIGSTOP)
        (ended,) = ranks.end(0)
        assert ended.code == 4
        assert 1.5 < ended.seconds < 2 + 5
        assert "silent for" in ended.agreement["absent_detail"][0]
        ranks.signal(1, signal.SIGCONT)
        assert ranks.end(1)[0].code == 4


def test_a_store_that_falls_silent_accuses_no_rank(tmp_path: Path) -> None:
    with Ranks(2, (*SLOW, "--rank-timeout", "2")) as ranks:
        start_reading(ranks, write_checkpoint(tmp_path / "a", shape=LARGE))
        ranks.signal(0, signal.SIGSTOP)
        (ended,) = ranks.end(1)
    assert ended.code == 4
    assert ended.seconds < 2 + 5
    assert "lost contact with the store on 127.0.0.1" in ended.agreement["summary"]
    assert ended.agreement["absent_detail"] == ["rank 0: not known"]


@pytest.mark.parametrize("leaver", [0, 1])
def test_ctrl_c_ends_one_rank_with_130_and_the_others_are_told(tmp_path: Path, leaver: int) -> None:
    with Ranks(2, SLOW) as ranks:
        start_reading(ranks, write_checkpoint(tmp_path / "a", shape=LARGE))
        ranks.signal(leaver, signal.SIGINT)
        left, stayed = ranks.end(leaver, 1 - leaver)
    assert (left.code, left.out) == (130, "")
    assert left.seconds < 2
    assert stayed.code == 4
    assert "interrupted" in stayed.agreement["absent_detail"][0]


def test_ranks_that_count_differently_are_told_so(tmp_path: Path) -> None:
    """Case R05, other world sizes."""
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(2) as ranks:
        ranks.start(0, folder)
        ranks.start(1, folder, world_size=3)
        ended = ranks.end()
    assert [rank.code for rank in ended] == [2, 2]
    assert all("says world size 2" in rank.err and "says 3" in rank.err for rank in ended)
    assert not any(rank.out for rank in ended)


def test_ranks_that_would_go_another_course_are_told_so(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(2) as ranks:
        ranks.start(0, folder)
        ranks.start(1, folder, "--fast", "--strict", "--identity-only")
        ended = ranks.end()
    assert [(one.code, one.out) for one in ended] == [(2, "")] * 2
    assert all("was started with no such option, rank 1 (" in one.err for one in ended)
    assert all("with --identity-only --strict --fast" in one.err for one in ended)


def test_where_gloo_cannot_form_on_one_rank_all_compare_through_the_store(tmp_path: Path) -> None:
    """Case R06, an interface that is not there."""
    folders = [write_checkpoint(tmp_path / "a"), flipped(tmp_path / "b")]
    with Ranks(2) as ranks:
        ranks.start(0, folders[0])
        ranks.start(1, folders[1], env={"GLOO_SOCKET_IFNAME": "nosuch0"})
        ended = ranks.end()
    assert [rank.code for rank in ended] == [1, 1]
    assert one_verdict(ended)["differences"][0]["segments"][0]["name"] == "model.layers.2.mlp.0.weight"
    assert "through the store instead" in ended[1].err


def test_for_people_rank_0_tells_it_all_and_the_others_a_line(tmp_path: Path) -> None:
    result = tmp_path / "agreement.json"
    folders = [write_checkpoint(tmp_path / "a"), flipped(tmp_path / "b")]
    first, second = session(folders, "--format", "human", "--result", str(result))
    assert "model.layers.2.mlp.0.weight" in first.out
    assert second.out.startswith("rank 1: differ: ")
    assert second.out.count("\n") == 1
    assert json.loads(result.read_text())["verdict"] == "differ"


@pytest.mark.parametrize("rank", [0, 1])
def test_two_processes_of_one_rank_are_named_to_all(tmp_path: Path, rank: int) -> None:
    """Case R05, one number twice."""
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(3) as ranks:
        ranks.start(0, folder)
        ranks.start(1, folder)
        wait_until(lambda: "waiting for rank 2" in ranks.said(1) + ranks.said(0), 20)
        ranks.start(rank, folder, name="again")
        ended = ranks.end()
    pids = sorted(str(ranks.process(name).pid) for name in (rank, "again"))
    assert [one.code for one in ended] == [2, 2, 2]
    assert all(f"two processes say rank {rank}" in one.err for one in ended)
    assert all(pid in one.err for one in ended for pid in pids)


def test_ranks_without_numbers_are_handed_them_out(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / "a"), flipped(tmp_path / "b"), write_checkpoint(tmp_path / "c")]
    with Ranks(3) as ranks:
        for folder in folders:
            ranks.start(None, folder, name=folder.name)
        ended = ranks.end()
    assert [one.code for one in ended] == [1, 1, 1]
    agreement = one_verdict(ended)
    assert [rank["rank"] for rank in agreement["ranks"]] == [0, 1, 2]
    assert sorted(rank["path"] for rank in agreement["ranks"]) == [str(folder) for folder in folders]
    (minority,) = [group for group in agreement["groups"] if group["standing"] == "minority"]
    assert [agreement["ranks"][rank]["path"] for rank in minority["ranks"]] == [str(tmp_path / "b")]


def test_numbers_that_are_given_and_handed_out_do_not_mix(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with Ranks(2) as ranks:
        ranks.start(0, folder)
        ranks.start(None, folder, name="without")
        ended = ranks.end()
    assert [one.code for one in ended] == [2, 2]
    assert all("give --rank to all ranks or to none" in one.err for one in ended)
    assert not any(one.out for one in ended)


def start_reading(ranks: Ranks, folder: Path) -> None:
    """Start all ranks on one folder, and return when every one of them hashes and knows that of the others."""
    for rank in range(ranks.world_size):
        ranks.start(rank, folder)
    wait_for_reading(ranks.port, ranks.world_size)


def torchrun(script: Path, processes: int, *options: str) -> Ended:
    """torchrun with some processes of a shell script."""
    with Ranks(processes) as ranks:
        ranks.launch("torchrun", [TORCHRUN, f"--nproc-per-node={processes}", *options, "--no-python", str(script)])
        return ranks.end(seconds=60)[0]


def write_script(path: Path, body: str) -> Path:
    """An executable shell script with the command in `$CKPT_TUI`."""
    path.write_text(f'#!/bin/sh\nCKPT_TUI="{sys.executable} -m ckpt_tui"\n{body}\n')
    path.chmod(0o755)
    return path


def test_under_torchrun_every_rank_prints_the_same_verdict(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "rank0")
    flipped(tmp_path / "rank1")
    write_checkpoint(tmp_path / "rank2")
    script = write_script(tmp_path / "ranks", f'exec $CKPT_TUI ranks "{tmp_path}/rank$RANK" --json --no-cache')
    done = torchrun(script, 3)
    assert done.code == 1
    lines = done.out.splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1
    agreement = json.loads(lines[0])
    assert agreement["verdict"] == "differ"
    assert agreement["differences"][0]["segments"][0]["name"] == "model.layers.2.mlp.0.weight"


def test_a_second_call_and_a_restart_on_torchruns_store_are_sessions_of_their_own(tmp_path: Path) -> None:
    """Attempt 0 compares and fails; attempt 1 compares twice, on other folders. No value of another session is read."""
    for rank in range(2):
        write_checkpoint(tmp_path / f"first{rank}")
        write_checkpoint(tmp_path / f"second{rank}", seed="other")
    flipped(tmp_path / "first1")
    script = write_script(
        tmp_path / "ranks",
        f"""
        if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then
            exec $CKPT_TUI ranks "{tmp_path}/first$RANK" --json --no-cache
        fi
        $CKPT_TUI ranks "{tmp_path}/second$RANK" --json --no-cache || exit 9
        exec $CKPT_TUI ranks "{tmp_path}/first0" --json --no-cache
        """,
    )
    done = torchrun(script, 2, "--max-restarts", "1")
    assert done.code == 0, done.err
    agreements = [json.loads(line) for line in dict.fromkeys(done.out.splitlines())]
    assert len(done.out.splitlines()) == 6
    assert [agreement["verdict"] for agreement in agreements] == ["differ", "agree", "agree"]
    assert agreements[1]["groups"][0]["content"] != agreements[2]["groups"][0]["content"]


def test_a_rank_that_dies_under_torchrun_is_named_although_the_launcher_ends_the_others(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a", shape=LARGE)
    script = write_script(
        tmp_path / "ranks",
        f"""
        echo $$ $MASTER_PORT $TORCHELASTIC_RUN_ID > "{tmp_path}/rank$RANK"
        exec $CKPT_TUI ranks "{folder}" --json --no-cache --max-rate 2M
        """,
    )
    with Ranks(3) as ranks:
        ranks.launch("torchrun", [TORCHRUN, "--nproc-per-node", "3", "--no-python", str(script)])
        about = tmp_path / "rank1"
        wait_until(lambda: about.exists() and len(about.read_text().split()) == 3)
        pid, port, run = about.read_text().split()
        wait_for_reading(int(port), 3, scope=f"ckpt-tui/{run}/0")
        os.kill(int(pid), signal.SIGKILL)
        (done,) = ranks.end("torchrun")
    agreements = [json.loads(line) for line in done.out.splitlines()]
    assert len(agreements) == 2, done.err
    assert agreements[0] == agreements[1]
    assert (agreements[0]["verdict"], agreements[0]["absent"]) == ("incomplete", [1])
