"""`assert_rank_equal` over real Gloo ranks: what is equal, what differs, and what cannot be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from ckpt_tui.facts.agreement import Agreement, Verdict
from ckpt_tui.facts.outcome import RanksDiffer
from ckpt_tui.replicas import assert_rank_equal
from tests.support.replicas import Died, Raised, Rank, on_ranks

Make = Callable[[int], Any]


def outcome(rank: Rank, make: Make, options: dict[str, Any]) -> tuple[str, Agreement]:
    """The raised text, or "", and the agreement."""
    try:
        return "", assert_rank_equal(make(rank.rank), group=rank.group, phase="a test", **options)
    except RanksDiffer as differ:
        return str(differ), differ.agreement


def compare(make: Make, size: int = 2, **options: Any) -> tuple[str, Agreement]:
    """What all ranks came to; that it is the same is asserted here."""
    answers = on_ranks(size, outcome, make, options)
    assert not any(isinstance(answer, Raised | Died) for answer in answers), answers
    assert {text for text, _ in answers} == {answers[0][0]}
    if answers[0][0]:
        assert all(agreement == answers[0][1] for _, agreement in answers)
    text, agreement = answers[0]
    return text, agreement


def model(rank: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {f"layers.{place}.weight": torch.randn(32, 32, generator=generator) for place in range(12)}


def drifted(rank: int) -> dict[str, torch.Tensor]:
    tensors = model(rank)
    if rank == 1:
        for place in range(10):
            tensors[f"layers.{place}.weight"][0, 0] += 1
    return tensors


@pytest.mark.parametrize("size", [2, 4, 8])
def test_ranks_that_hold_the_same_agree_and_send_less_than_a_kilobyte(size: int) -> None:
    text, agreement = compare(model, size)
    assert text == ""
    assert agreement.verdict is Verdict.AGREE
    assert agreement.weights_equal is True
    assert [group.ranks for group in agreement.groups] == [tuple(range(size))]
    assert all(report.bytes_sent <= 64 for report in agreement.ranks)


@pytest.mark.parametrize("size", [4, 8])
def test_one_that_drifted_is_named_with_the_first_eight_tensors_on_every_rank(size: int) -> None:
    text, agreement = compare(drifted, size)
    assert agreement.verdict is Verdict.DIFFER
    assert text.startswith("a test: 10 of 12 tensors differ between ranks (10 tensors):\n")
    assert "B [1]  minority" in text
    assert text.count("layers.") == 8
    assert "and 2 more" in text
    assert len(agreement.differences[0].segments) == 10
