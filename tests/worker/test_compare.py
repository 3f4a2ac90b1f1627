"""The worker of a comparison: copies as ranks, their progress, the agreement, and answers read from the folders."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ckpt_tui.facts.agreement import Agreement, Between
from ckpt_tui.facts.drill import DRILL_BYTES
from ckpt_tui.facts.files import SegmentKind
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.facts.status import Phase
from ckpt_tui.stream.messages import Descend, DrillState, Mode, Place, Quit, Release, Watch
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.worker.child import watching, worker_argv

SHARD = "model-00002-of-00002.safetensors"


def compare_argv(*targets: Path) -> list[str]:
    settings = msgspec.json.encode(ScanSettings(use_cache=False)).decode()
    return worker_argv("compare", f"--settings={settings}", f"--drill-bytes={DRILL_BYTES}", "--", *map(str, targets))


def copies(folder: Path) -> list[Path]:
    """Three copies, the last of which differs in every tensor of its second shard, of more than a report lists."""
    made = [write_checkpoint(folder / name, tensors=70) for name in "abc"]
    for number in range(70):
        flip_bit(made[2] / SHARD, payload_offset(made[2] / SHARD) + number * 1024 + 5)
    return made


def test_copies_are_rows_and_are_asked_below_their_verdict_until_the_screen_leaves(tmp_path: Path) -> None:
    place = Place(file=SHARD, kind=SegmentKind.TENSOR, name="model.layers.2.mlp.69.weight")
    with watching(compare_argv(*copies(tmp_path))) as child:
        state = child.until(lambda state: state.holding)
        assert state.hello is not None
        assert state.hello.mode is Mode.COMPARE
        assert isinstance(state.result, Agreement)
        assert state.result.between is Between.COPIES
        assert [row.status.path for _, row in sorted(state.ranks.items())] == [str(tmp_path / name) for name in "abc"]
        assert {row.status.phase for row in state.ranks.values()} == {Phase.DONE}
        assert (list(state.files), state.survey and state.survey.world_size) == ([0], 3)
        child.source.send(Watch(rank=2))
        state = child.until(lambda state: list(state.files) == [2] and len(state.files[2]) == 5)
        assert state.survey is not None
        assert state.survey.checkpoint.path == str(tmp_path / "c")
        child.source.send(Descend(place=Place(file=SHARD)))
        child.source.send(Descend(place=place))
        child.source.send(Descend(place=Place(file="elsewhere")))
        answered = {DrillState.DONE, DrillState.FAILED}
        state = child.until(lambda state: sum(row.state in answered for row in state.drills.values()) == 3)
        assert len(state.drills[Place(file=SHARD)].segments) == 70
        drill = state.drills[place].drill
        assert drill is not None
        assert [(side.side, side.bytes, side.first and side.first.index) for side in drill.sides] == [("B", 1, (0, 1))]
        assert "is not among the files that differ" in state.drills[Place(file="elsewhere")].error
        child.source.send(Quit())
        state = child.until(lambda state: state.ended)
    assert state.ended is not None
    assert state.ended.code == 1


def test_a_release_ends_the_worker_with_the_code_of_its_verdict(tmp_path: Path) -> None:
    with watching(compare_argv(*copies(tmp_path)[1:])) as child:
        child.until(lambda state: state.holding)
        child.source.send(Release())
        state = child.until(lambda state: state.ended)
    assert state.holding is not None
    assert (state.holding.ready, state.holding.reason) == (False, "nobody asks any more")
    assert state.ended is not None
    assert state.ended.code == 1


def test_equal_copies_hold_nobody_and_one_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "a")
    with watching(compare_argv(folder, folder)) as child:
        state = child.until(lambda state: state.verdict and state.verdict.code is not None and state.holding)
        assert state.verdict is not None
        assert state.verdict.code == 0
        assert state.holding is not None
        assert (state.holding.ready, "no file differs" in state.holding.reason) == (False, True)
    with watching(compare_argv(folder, tmp_path / "nowhere")) as child:
        state = child.until(lambda state: state.ended)
        assert state.bye is not None
        assert (state.bye.code, "nowhere" in state.bye.reason) == (2, True)
