"""`ranks --hold`: real ranks that stay after their verdict, are asked, lose one another, and are let go."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckpt_tui.cli.ranks import command
from ckpt_tui.facts.files import SegmentKind
from ckpt_tui.facts.settings import RankSettings, ScanSettings
from ckpt_tui.facts.status import Phase
from ckpt_tui.ranks import Place as RankPlace
from ckpt_tui.ranks.address import Address
from ckpt_tui.ranks.holding import why_not
from ckpt_tui.stream.messages import Descend, DrillRow, DrillState, Place, Quit, Release
from tests.agreement.made_up import agreement_of, tiny
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ended, Ranks
from tests.support.waiting import wait_until
from tests.worker.child import Watcher, watching, worker_argv

SHARD = "model-00002-of-00002.safetensors"
#: More tensors than a report lists of one file, and the bytes of each.
TENSORS, EACH = 70, 16 * 16 * 4
FILE = Place(file=SHARD)


def tensor(number: int, at: int = 0) -> Place:
    return Place(file=SHARD, kind=SegmentKind.TENSOR, name=f"model.layers.2.mlp.{number}.weight", at=at)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three copies of which each differs from the others in every tensor of the second shard."""
    made = []
    for place in range(3):
        folder = write_checkpoint(tmp_path_factory.mktemp("hold") / "model", tensors=TENSORS)
        for number in range(TENSORS if place else 0):
            for byte in range(place):
                flip_bit(folder / SHARD, payload_offset(folder / SHARD) + number * EACH + 4 * byte, bit=place)
        made.append(folder)
    return made


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    with Ranks(3) as three:
        yield three


def screen(ranks: Ranks, folder: Path, rank: int) -> list[str]:
    """The words that start the worker of a screen, as one rank."""
    place = ("--master", f"127.0.0.1:{ranks.port}", "--world-size", str(ranks.world_size), "--rank", str(rank))
    return worker_argv("ranks", str(folder), "--no-cache", *place)


def asked(child: Watcher, place: Place) -> DrillRow:
    """The answer to one question."""
    child.source.send(Descend(place=place))
    state = child.until(lambda state: place in state.drills and state.drills[place].state is not DrillState.PENDING)
    return state.drills[place]


def held(ranks: Ranks, *names: int) -> None:
    """Wait until these ranks are held."""
    for name in names:
        wait_until(lambda name=name: "held ready to be asked" in ranks.said(name), 60)  # type: ignore[misc]


def test_any_segment_is_asked_of_ranks_of_three_groups_and_who_dies_meanwhile_is_said(
    ranks: Ranks, folders: list[Path]
) -> None:
    with watching(screen(ranks, folders[0], 0)) as child:
        for rank in (1, 2):
            ranks.start(rank, folders[rank], "--hold")
        state = child.until(lambda state: state.holding, 60)
        assert state.holding is not None
        assert state.holding.ready
        verdict = state.verdict
        everything = asked(child, FILE)
        assert len(everything.segments) == TENSORS
        assert everything.more == 0
        # The last one is in no report; its second element differs on one side alone.
        drill = asked(child, tensor(TENSORS - 1)).drill
        assert drill is not None
        assert {side.side: (side.bytes, side.elements) for side in drill.sides} == {"B": (1, 1), "C": (2, 2)}
        assert drill.read_again == {"A": True, "B": True, "C": True}
        drill = asked(child, tensor(TENSORS - 1, at=4)).drill
        assert drill is not None
        assert {side.side: side.first and side.first.element for side in drill.sides} == {"B": None, "C": 1}
        assert "is not among the files that differ" in asked(child, Place(file="elsewhere")).error

        ranks.signal(1, signal.SIGKILL)
        child.until(lambda state: state.ranks[1].status.phase is Phase.LOST)
        drill = asked(child, tensor(0)).drill
        assert drill is not None
        assert drill.errors == {"B": "none of its ranks is held ready"}
        assert [(side.side, side.bytes) for side in drill.sides] == [("C", 2)]
        assert state.verdict == verdict

        child.source.send(Release())
        state = child.until(lambda state: state.ended)
        assert (state.bye and state.bye.code, state.ended and state.ended.code) == (1, 1)
        assert any("rank 1 is not held any more" in line.text for line in state.logs.values())
        (last,) = ranks.end(2)
        assert (last.code, last.agreement["verdict"]) == (1, "differ")
        assert "the screen has let them go" in last.err


def test_the_screen_of_any_rank_may_ask_and_its_end_lets_the_others_go(ranks: Ranks, folders: list[Path]) -> None:
    with watching(screen(ranks, folders[1], 1)) as child:
        for rank in (0, 2):
            ranks.start(rank, folders[rank], "--hold")
        child.until(lambda state: state.holding, 60)
        assert asked(child, tensor(3)).drill is not None
        assert child.state.hello is not None
        child.source.send(Quit())
        state = child.until(lambda state: state.ended)
        assert state.ended is not None
        assert state.ended.code == 1
        assert [one.code for one in ranks.end(0, 2, seconds=30)] == [1, 1]


def test_a_screen_that_is_killed_holds_nobody(ranks: Ranks, folders: list[Path]) -> None:
    with watching(screen(ranks, folders[2], 2)) as child:
        for rank in (0, 1):
            ranks.start(rank, folders[rank], "--hold")
        held(ranks, 0, 1)
        state = child.until(lambda state: state.holding, 60)
        assert state.hello is not None
        os.kill(state.hello.pid, signal.SIGKILL)
        ended = ranks.end(0, 1, seconds=30)
    assert [one.code for one in ended] == [1, 1]
    assert all("who asked is gone: rank 2" in one.err for one in ended)


def test_each_of_them_may_leave_and_nobody_waits_for_a_store_that_is_gone(ranks: Ranks, folders: list[Path]) -> None:
    for rank in range(3):
        ranks.start(rank, folders[rank], "--hold=5m")
    held(ranks, 0, 1, 2)
    # The result is there before anybody is held.
    printed: list[Ended] = []
    ranks.signal(2, signal.SIGTERM)
    printed += ranks.end(2, seconds=30)
    wait_until(lambda: "rank 2 is not held any more" in ranks.said(0))
    assert ranks.process(0).poll() is None
    ranks.signal(0, signal.SIGKILL)
    printed += ranks.end(1, seconds=30)
    assert [one.code for one in printed] == [1, 1]
    assert printed[0].out == printed[1].out
    assert json.loads(printed[0].out)["verdict"] == "differ"
    assert "lost contact with the store" in printed[1].err


def test_ctrl_c_at_the_stores_host_lets_all_go(folders: list[Path]) -> None:
    with Ranks(2, ("--hold",)) as ranks:
        for rank in range(2):
            ranks.start(rank, folders[rank])
        held(ranks, 0, 1)
        ranks.signal(0, signal.SIGINT)
        ended = ranks.end(seconds=30)
    assert [one.code for one in ended] == [1, 1]
    assert "rank 0, which serves the store, leaves" in ended[1].err


def test_ranks_that_nobody_asks_are_let_go_in_the_end(folders: list[Path]) -> None:
    with Ranks(2, ("--hold", "0.3s")) as ranks:
        for rank in range(2):
            ranks.start(rank, folders[rank])
        ended = ranks.end()
    assert [one.code for one in ended] == [1, 1]
    assert all("nothing was asked for" in one.err for one in ended)


@pytest.mark.parametrize(
    ("hold", "differ", "holders", "agent", "why"),
    [
        (600.0, True, {0, 1}, False, ""),
        (600.0, True, {1, 2}, True, ""),
        (600.0, True, {1, 2}, False, "rank 0, which serves the store"),
        (600.0, False, {0, 1}, False, "no file differs"),
        (0.0, True, {0, 1}, False, "without --hold"),
    ],
)
def test_who_is_held_at_all(hold: float, differ: bool, holders: set[int], agent: bool, why: str) -> None:
    models = [tiny(), tiny(sidecars={"config.json": "other"}) if differ else tiny()]
    place = RankPlace(1, 2, Address("node-a", 1), agent_store=agent)
    told = why_not(agreement_of(models), RankSettings(scan=ScanSettings(), hold=hold), place, holders)
    assert why in told
    assert bool(told) == bool(why)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["--hold", "/models/x"], 600.0),
        (["/models/x", "--hold"], 600.0),
        (["--hold", "90s", "/models/x"], 90.0),
        (["/models/x", "--hold=2h"], 7200.0),
        (["/models/x"], None),
    ],
)
def test_hold_takes_a_time_or_none_and_never_the_path(words: list[str], seconds: float | None) -> None:
    context = command.make_context("ranks", list(words))
    assert (context.params["path"], context.params["hold"]) == ("/models/x", seconds)
