"""Judging grows with what there is to say, and never with its square. Work is counted in lines run, not in seconds."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from benchmarks.agreement import Changes, Outcome, a_few, everywhere, session
from ckpt_tui import agreement as room
from ckpt_tui.facts.agreement import Standing

#: Twice as much to judge may cost at most so much more; its square would be four times.
AT_MOST = 2.6


def lines(ranks: int, files: int, tensors: int, changes: Changes) -> int:
    """How many lines of agreement/ run, passes of comprehensions among them."""
    count = 0
    inside = str(room.__file__).removesuffix("__init__.py")

    def line(_frame: FrameType, event: str, _what: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, _event: str, _what: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(inside) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        session(ranks, files, tensors, changes)
    finally:
        sys.settrace(before)
    assert count > 100
    return count


def test_twice_the_ranks_are_twice_the_work() -> None:
    size, twice = (300, 10, 100), (600, 10, 100)
    assert lines(*twice, {}) < AT_MOST * lines(*size, {})
    assert lines(*twice, a_few(*twice)) < AT_MOST * lines(*size, a_few(*size))


def test_twice_as_many_differing_ranks_are_twice_the_work() -> None:
    def odd(ranks: int) -> Changes:
        return {rank: frozenset({(0, rank)}) for rank in range(1, ranks, 2)}

    assert lines(400, 2, 1000, odd(400)) < AT_MOST * lines(200, 2, 1000, odd(200))


def test_twice_as_many_differing_files_are_twice_the_work() -> None:
    size, twice = (4, 30, 600), (4, 60, 1200)
    assert lines(*twice, everywhere(*twice)) < AT_MOST * lines(*size, everywhere(*size))


def test_a_thousand_ranks_are_told_apart_to_the_tensor() -> None:
    size = 1000, 20, 400
    outcome: Outcome = session(*size, a_few(*size))
    groups = {group.ranks: group.standing for group in outcome.agreement.groups if len(group.ranks) < 10}
    assert groups == {(1, 500): Standing.MINORITY, (999,): Standing.MINORITY}
    assert [one.file for one in outcome.agreement.differences] == [
        "model-00001.safetensors",
        "model-00011.safetensors",
        "model-00020.safetensors",
    ]
