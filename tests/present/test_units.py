"""Numbers for people."""

from __future__ import annotations

import pytest

from ckpt_tui.facts import ranksets
from ckpt_tui.present import units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.04, "0.0 s"), (9.96, "10.0 s"), (33, "33 s"), (59.6, "1 m 00 s"), (109, "1 m 49 s"),
     (7500, "2 h 05 m"), (273_600, "3 d 4 h")],
)  # fmt: skip
def test_durations_take_their_two_largest_units(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "now"), (1, "1 s"), (74, "1 m"), (3600, "1 h"), (3 * 86400 + 5, "3 d")]
)
def test_ages_take_one_unit(seconds: float, text: str) -> None:
    assert units.age(seconds) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"), [(0, 10, "0 %"), (9_999, 10_000, "99 %"), (10, 10, "100 %"), (0, 0, "100 %")]
)
def test_a_share_says_100_only_when_all_is_done(part: int, whole: int, text: str) -> None:
    assert units.percent(part, whole) == text


def test_sizes_in_a_column_share_one_unit() -> None:
    unit = units.size_unit(5 * units.GIB)
    assert [units.in_unit(size, unit) for size in (5 * units.GIB, 100 * units.MIB)] == ["5.0", "0.1"]
    assert units.size(204_441_681_920) == "190.4 GiB"
    assert units.size(0) == "0 B"


@pytest.mark.parametrize(
    ("ranks", "text"), [([], "[]"), ([5], "[5]"), ([0, 1, 2, 3, 5], "[0-3,5]"), ([4, 3, 3], "[3,4]"), ([7, 1], "[1,7]")]
)
def test_rank_sets_fold(ranks: list[int], text: str) -> None:
    assert ranksets.fold(ranks) == text
