"""A training loop under check: what drifts is named by kind, phase and step, on every rank."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from ckpt_tui.facts.agreement import Agreement, Verdict
from ckpt_tui.facts.outcome import RanksDiffer
from ckpt_tui.replicas import Kind, ReplicaCheck, replica_state, where_they_differ
from ckpt_tui.replicas.loop import Statistics
from tests.support.replicas import Rank, on_ranks


def trained(rank: Rank, fault: str) -> tuple[Agreement, str]:
    """Three steps of a small model on other data for each rank, and what a check then says."""
    torch.manual_seed(0)
    norm = [] if fault.startswith("plain") else [torch.nn.BatchNorm1d(4)]
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), *norm)
    ddp = DistributedDataParallel(model, broadcast_buffers=fault != "no broadcast")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    torch.manual_seed(rank.rank)
    for _ in range(3):
        (ddp.module if fault == "module" else ddp)(torch.randn(8, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    if rank.rank == 1 and fault == "plain, older optimizer":
        for state in optimizer.state.values():
            state["step"] -= 1
    if rank.rank == 1 and fault == "plain, other lr":
        optimizer.param_groups[0]["lr"] = 0.2
    check = ReplicaCheck(lambda: replica_state(model, optimizer=optimizer, scheduler=scheduler), group=rank.group)
    try:
        return check.check("before saving", step=3), ""
    except RanksDiffer as differ:
        return differ.agreement, str(differ)


@pytest.mark.parametrize(
    ("fault", "verdict", "kinds"),
    [
        ("module", Verdict.DIFFER, ["parameters", "buffers", "optimizer"]),
        ("no broadcast", Verdict.AGREE, ["buffers"]),
        ("default", Verdict.AGREE, ["buffers"]),
        ("plain", Verdict.AGREE, []),
        ("plain, older optimizer", Verdict.DIFFER, ["optimizer"]),
        ("plain, other lr", Verdict.DIFFER, ["optimizer"]),
    ],
)
def test_drift_is_told_by_kind(fault: str, verdict: Verdict, kinds: list[str]) -> None:
    """Case R08 a to f."""
    (agreement, text), (_, other) = on_ranks(2, trained, fault)
    assert text == other
    assert (agreement.verdict, [one.file for one in agreement.differences]) == (verdict, kinds)
    assert (agreement.phase, agreement.step) == ("before saving", 3)
    if fault == "module":
        assert text.startswith("before saving, step 3: ")
        assert "  parameters  0.weight\n" in text
    if kinds == ["buffers"]:
        assert {one.name for one in agreement.differences[0].segments} == {"1.running_mean", "1.running_var"}
        assert "normal between steps for BatchNorm" in agreement.differences[0].cause.facts[0]
        assert agreement.weights_equal is True
    if fault == "plain, other lr":
        assert "optimizer  group 0.lr\n      A  0.1\n      B  0.2" in text


def flipped(rank: Rank) -> Any:
    tensor = torch.arange(600_000, dtype=torch.float32).reshape(600, 1000).t()
    if rank.rank == 2:
        tensor[700, 500] += 1
    return where_they_differ("weight", tensor, group=rank.group), where_they_differ("same", 1, group=rank.group)


def test_where_a_tensor_differs_is_told_by_index_values_and_bits() -> None:
    answers = on_ranks(4, flipped)
    assert len({str(segment) for segment, _ in answers}) == 1
    segment, none = answers[0]
    assert none is None
    (side,) = segment.drill.sides
    assert (segment.drill.reference, side.side, side.elements, side.first.index) == ("A", "B", 1, (700, 500))
    assert (side.first.reference.value, side.first.other.value) == ("500700", "500701")
    assert segment.drill.read_again == {"A": True, "B": True}


def looped(rank: Rank) -> tuple[Statistics, list[int]]:
    tensor = torch.zeros(100)
    check = ReplicaCheck(lambda: {"tensor": tensor}, group=rank.group, every=3)
    entered = []
    for step in range(8):
        if step == 5:
            tensor[0] = rank.rank
        try:
            with check.phase("optimizer step", step=step):
                entered.append(step)
        except RanksDiffer:
            break
    return check.statistics, entered


def test_a_phase_is_entered_only_where_all_ranks_hold_the_same_and_its_cost_is_counted() -> None:
    for told, entered in on_ranks(2, looped):
        assert entered == [0, 1, 2, 3, 4, 5]
        assert (told.checks, told.skipped, told.bytes) == (3, 4, 1200)
        assert told.seconds > 0
        assert told.last is not None
        assert (told.last.verdict, told.last.step) == (Verdict.DIFFER, 6)


def stateless(rank: Rank) -> str:
    def state() -> dict[str, Any]:
        if rank.rank == 1:
            raise OSError("no state here")
        return {}

    try:
        ReplicaCheck(state, group=rank.group).check("a phase")
    except RanksDiffer as differ:
        return str(differ)
    return ""


def test_a_state_that_cannot_be_made_on_one_rank_is_heard_by_all() -> None:
    first, second = on_ranks(2, stateless)
    assert first == second
    assert "undecided on rank 1" in first


def test_optimizer_and_scheduler_state_has_names_of_its_parameters_and_groups() -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    named = {(one.kind, one.name): one.value for one in replica_state(model, optimizer=optimizer, gradients=True)}
    assert named[Kind.OPTIMIZER, "group 0.lr"] == 0.1
    assert named[Kind.OPTIMIZER, "group 0.params"] == ["weight", "bias"]
    assert named[Kind.OPTIMIZER, "weight.momentum_buffer"].shape == (2, 2)
    assert named[Kind.GRADIENTS, "bias"].shape == (2,)
