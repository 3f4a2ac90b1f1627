"""Asked below a comparison: all differing segments of a file, and the bytes of any of them from any place on."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckpt_tui.copies import Comparison
from ckpt_tui.digest import scan
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.drill import LEAF
from ckpt_tui.facts.files import SegmentKind
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.report.json import encode
from ckpt_tui.stream.messages import DrillRow, DrillState, Place
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint

SHARD = "model-00002-of-00002.safetensors"


def compared(*targets: Path, **options: object) -> Comparison:
    chosen = ScanSettings(use_cache=False, **options)  # type: ignore[arg-type]
    comparison = Comparison([str(one) for one in targets], chosen, SystemClock(), drill_bytes=LEAF)
    comparison.run()
    return comparison


def tensor(number: int, at: int = 0) -> Place:
    return Place(file=SHARD, kind=SegmentKind.TENSOR, name=f"model.layers.2.mlp.{number}.weight", at=at)


def copy_with(folder: Path, flips: Sequence[int], **shape: object) -> Path:
    """A copy whose second shard has these bytes of its payload changed."""
    shard = write_checkpoint(folder, **shape) / SHARD  # type: ignore[arg-type]
    for offset in flips:
        flip_bit(shard, payload_offset(shard) + offset)
    return folder


def test_all_segments_of_a_file_are_told_however_many_a_report_lists(tmp_path: Path) -> None:
    each = 16 * 16 * 4
    folders = [
        copy_with(tmp_path / "a", [], tensors=90),
        copy_with(tmp_path / "b", range(0, 90 * each, each), tensors=90),
    ]
    comparison = compared(*folders)
    row = comparison.answer(Place(file=SHARD))
    assert row.state is DrillState.DONE
    assert [one.name for one in row.segments] == [f"model.layers.2.mlp.{number}.weight" for number in range(90)]
    assert row.more == 0
    # The last one is in no report, and is told all the same.
    drill = comparison.answer(tensor(89)).drill
    assert drill is not None
    assert [(side.side, side.bytes, side.bits) for side in drill.sides] == [("B", 1, 1)]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tensor of four leaves and a bit, to be changed."""
    return write_checkpoint(tmp_path_factory.mktemp("large") / "a", tensors=1, shape=(1 << 20 | 3, 1))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=st.lists(st.integers(0, 4 * ((1 << 20) + 3) - 1), min_size=1, max_size=6, unique=True),
    ats=st.lists(st.integers(0, 4 * ((1 << 20) + 3) - 1), min_size=1, max_size=4),
)
def test_the_first_difference_is_the_first_from_the_place_on(
    large: Path, tmp_path: Path, places: list[int], ats: list[int]
) -> None:
    other = copy_with(tmp_path / "b", places, tensors=1, shape=(1 << 20 | 3, 1))
    comparison = compared(large, other, sha256=False)
    differing = sorted({place // 4 for place in places})
    for at in [*ats, *places]:
        row = comparison.answer(tensor(0, at))
        assert row.drill is not None
        (side,) = row.drill.sides
        expected = next((element for element in differing if element >= at // 4), None)
        assert (side.first.element if side.first else None) == expected
        assert side.elements == sum(element >= at // 4 for element in differing)
        assert side.not_read == 0
        assert row.drill.leaves_differing == len({4 * element // LEAF for element in differing})


def test_three_groups_are_told_one_by_one(tmp_path: Path) -> None:
    flips: list[list[int]] = [[], [0], [8, 12]]
    comparison = compared(*(copy_with(tmp_path / str(place), one) for place, one in enumerate(flips)))
    drill = comparison.answer(tensor(0)).drill
    assert drill is not None
    assert {side.side: side.bytes for side in drill.sides} == {"B": 1, "C": 2}
    assert drill.read_again == {"A": True, "B": True, "C": True}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (Place(file="no-such-file"), "is not among the files that differ"),
        (Place(file="model-00001-of-00002.safetensors"), "is not among the files that differ"),
        (tensor(1), "does not differ"),
        (tensor(99), "has no such segment"),
        (tensor(0, at=1 << 40), "and none at"),
    ],
)
def test_what_is_not_there_to_be_asked_is_said(tmp_path: Path, place: Place, why: str) -> None:
    comparison = compared(copy_with(tmp_path / "a", []), copy_with(tmp_path / "b", [0]))
    row = comparison.answer(place)
    assert (row.state, why in row.error) == (DrillState.FAILED, True), row.error


def test_where_only_headers_were_compared_no_byte_is_told(tmp_path: Path) -> None:
    folders = [write_checkpoint(tmp_path / "a"), write_checkpoint(tmp_path / "b", shape=(16, 32))]
    comparison = compared(*folders, identity_only=True)
    assert "only headers were compared" in comparison.answer(tensor(0)).error


def saved(folder: Path, target: Path) -> Path:
    target.write_bytes(encode(scan(folder, ScanSettings(use_cache=False, segments=True))))
    return target


def test_beside_a_saved_scan_its_like_that_lies_here_gives_the_bytes(tmp_path: Path) -> None:
    folder, other = copy_with(tmp_path / "a", []), copy_with(tmp_path / "b", [5])
    comparison = compared(saved(folder, tmp_path / "a.json"), folder, other)
    drill = comparison.answer(tensor(0)).drill
    assert drill is not None
    assert [(side.side, side.bytes) for side in drill.sides] == [("B", 1)]
    alone = compared(saved(folder, tmp_path / "a.json"), other).answer(tensor(0)).drill
    assert alone is not None
    assert alone.errors == {"A": "its bytes are not at hand"}


def test_a_saved_scan_that_changes_while_it_is_compared_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = copy_with(tmp_path / "a", []), copy_with(tmp_path / "b", [5])
    file = saved(folder, tmp_path / "a.json")
    comparison = Comparison([str(file), str(other)], ScanSettings(use_cache=False), SystemClock(), drill_bytes=0)
    saved(other, file)
    with pytest.raises(Exception, match="has changed while it was compared"):
        comparison.run()


def test_the_second_look_tells_how_far_it_is(tmp_path: Path) -> None:
    comparison = compared(copy_with(tmp_path / "a", []), copy_with(tmp_path / "b", [0]))
    looking = comparison.looking
    assert looking.started is not None
    assert looking.bytes_done == looking.bytes_total == 2 * 16 * 16 * 4


def test_an_answer_is_a_row_that_travels(tmp_path: Path) -> None:
    row = compared(copy_with(tmp_path / "a", []), copy_with(tmp_path / "b", [0])).answer(tensor(0))
    assert msgspec.json.decode(msgspec.json.encode(row), type=DrillRow) == row


def test_of_many_saved_scans_only_few_lie_in_memory_at_a_time(tmp_path: Path) -> None:
    folder, other = (write_checkpoint(tmp_path / seed, tensors=1000, shape=(2, 2), seed=seed) for seed in "ab")
    files = [saved(folder, tmp_path / "0.json"), saved(other, tmp_path / "1.json")]
    files += [tmp_path / f"{place}.json" for place in range(2, 12)]
    for file in files[2:]:
        file.write_bytes(files[0].read_bytes())

    def peak(targets: list[Path]) -> int:
        tracemalloc.start()
        try:
            assert compared(*targets)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(files) < 1.5 * peak(files[:2])
