"""What one rank was called with, when nothing can be done with it: all ranks hear of it at once, and from whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from ckpt_tui.facts.agreement import Agreement, Verdict
from ckpt_tui.facts.outcome import RanksDiffer
from ckpt_tui.replicas import ControlLost, Kind, Named, ReplicaCheck, assert_rank_equal, replica_state
from ckpt_tui.replicas.asked import asked_for
from ckpt_tui.replicas.control import Control
from ckpt_tui.replicas.exchange import Exchange
from ckpt_tui.replicas.holding import hold
from tests.support.replicas import Raised, Rank, on_ranks

HELD = {"a": torch.zeros(3), "b": 1}

#: What is wrong on one rank, and what all ranks are to say of it.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"digest": "md5"}, "digest is one of xxh3-128, sha256, not 'md5'"),
    (
        {"apart": ["buffer"]},
        "apart is one of tensors, parameters, buffers, gradients, optimizer, scheduler, not 'buffer'",
    ),
    ({"apart": "buffers"}, "apart is a list of kinds, and 'buffers' is one text"),
    ({"local": "rng_state*"}, "local is a list of patterns, and 'rng_state*' is one text"),
    ({"local": [3]}, "local: a pattern is text, not 3"),
    ({"sets": [[0], [1]]}, "each of the control group's ranks [0-2] has to be in exactly one set"),
    ({"sets": 3}, "TypeError"),
    ({"report": "drift.txt"}, "drift.txt: a report's name ends in one of .json"),
    ({"drill_bytes": -1}, "drill_bytes is a whole number of bytes, 0 or more, not -1"),
    ({"named_tensors": torch.nn.Linear(2, 2)}, "pairs of name and value are compared, not Linear"),
    ({"named_tensors": [torch.zeros(3)]}, "pairs of name and value are compared, and here is one Tensor"),
    (
        {"named_tensors": [Named("a", 1, "weights")]},  # type: ignore[arg-type]
        "a: a kind is one of tensors, parameters, buffers, gradients, optimizer, scheduler, not 'weights'",
    ),
]


def called(rank: Rank, wrong: list[dict[str, Any]], bad: list[int]) -> list[tuple[str, Agreement, str]]:
    """What each call comes to where the ranks in `bad` are called wrongly: text, agreement and cause."""
    found = []
    for options in wrong:
        given = {"named_tensors": HELD, "group": rank.group, "phase": "a test", "step": torch.tensor(3)}
        try:
            assert_rank_equal(**given | (options if rank.rank in bad else {}))
        except RanksDiffer as differ:
            found.append((str(differ), differ.agreement, type(differ.__cause__).__name__))
    return found


def test_a_rank_that_is_called_wrongly_is_heard_and_named_by_all_at_once() -> None:
    wrong = [options for options, _ in WRONG]
    answers = on_ranks(3, called, wrong, [1])  # ControlLost where one was waited for until the group's timeout
    for place, (options, said) in enumerate(WRONG):
        of_each = [answer[place] for answer in answers]
        text, agreement, _ = of_each[0]
        assert said in text, options
        assert [(error.rank, error.message) for error in agreement.errors] == [(1, agreement.errors[0].message)]
        assert text.count("undecided on rank") == 1  # nobody else is blamed
        assert agreement.verdict is Verdict.UNDECIDED
        assert all((text, agreement) == (one, other) for one, other, _ in of_each)
        assert [cause != "NoneType" for _, _, cause in of_each] == [False, True, False]


def test_what_is_wrong_on_all_ranks_is_said_of_all() -> None:
    for [(text, agreement, _)] in on_ranks(2, called, [WRONG[0][0]], [0, 1]):
        assert [error.rank for error in agreement.errors] == [0, 1]
        assert text.count(WRONG[0][1]) == 2


def elsewhere(rank: Rank) -> None:
    assert_rank_equal(HELD, group=rank.group, phase="a test", step=3 if rank.rank else "three")  # type: ignore[arg-type]


def test_a_step_that_is_no_number_is_another_step() -> None:
    for answer in on_ranks(2, elsewhere):
        assert isinstance(answer, Raised)
        assert answer.kind is ControlLost
        assert "rank 0: compare a test, step 'three'; rank 1: compare a test, step 3" in answer.text


def one_text(rank: Rank) -> str:
    """A pattern that is not in a list, of which each character would be one: all would be left out by its `*`."""
    check = ReplicaCheck(lambda: HELD, group=rank.group, local="rng_state*" if rank.rank == 0 else ["rng_state*"])
    try:
        check.check("a test")
    except RanksDiffer as differ:
        return str(differ)
    return ""


def no_module(rank: Rank) -> str:
    model: Any = torch.nn.Linear(2, 2) if rank.rank else "a path"
    check = ReplicaCheck(lambda: replica_state(model), group=rank.group)
    try:
        check.check("a test")
    except RanksDiffer as differ:
        return str(differ)
    return ""


def freed_meanwhile(rank: Rank) -> str:
    """A tensor is read and hashed, and is gone when its rank is asked for its table."""
    tensor = torch.full((4,), float(rank.rank))
    control = Control(rank.group)
    asked = asked_for(control.ranks, phase="a test")
    exchange = Exchange(control, asked, hold({"a": tensor}, asked.algorithm))
    if rank.rank == 0:
        tensor.untyped_storage().resize_(0)
    return exchange.compare().summary


@pytest.mark.parametrize(
    ("work", "said"),
    [(no_module, "named_parameters"), (freed_meanwhile, "its storage holds 0"), (one_text, "is one text")],
)
def test_what_goes_wrong_while_a_rank_looks_or_tells_is_its_answer(work: Callable[[Rank], str], said: str) -> None:
    one, other = on_ranks(2, work)
    assert one == other
    assert said in one
    assert "rank 0" in one


def nothing(rank: Rank, make: Callable[[int], Any], options: dict[str, Any]) -> tuple[str, Agreement]:
    try:
        return "", assert_rank_equal(make(rank.rank), group=rank.group, phase="a test", **options)
    except RanksDiffer as differ:
        return str(differ), differ.agreement


def used_up(_: int) -> Any:
    """An iterator that somebody has been through already."""
    tensors = iter(HELD.items())
    list(tensors)
    return tensors


def one_used_up(rank: int) -> Any:
    return used_up(rank) if rank == 1 else HELD


def odd_ones_used_up(rank: int) -> Any:
    return used_up(rank) if rank % 2 else HELD


def all_held(_: int) -> Any:
    return HELD


def all_apart(rank: int) -> Any:
    return [Named("mean", rank, Kind.BUFFERS)]


@pytest.mark.parametrize(
    ("make", "options", "ranks", "said"),
    [
        (used_up, {}, [0, 1], "nothing was compared: no name was given, or patterns left all of them out"),
        (
            all_held,
            {"local": ["*"]},
            [0, 1],
            "nothing was compared: no name was given, or patterns left all of them out",
        ),
        (all_apart, {"apart": ["buffers"]}, [0, 1], "nothing was compared but buffers, which decide nothing"),
    ],
)
def test_nothing_to_compare_is_no_agreement(
    make: Callable[[int], Any], options: dict[str, Any], ranks: list[int], said: str
) -> None:
    for text, agreement in on_ranks(2, nothing, make, options):
        assert agreement.verdict is Verdict.UNDECIDED
        assert agreement.weights_equal is None
        assert agreement.groups == ()
        assert [(error.rank, error.message) for error in agreement.errors] == [(rank, said) for rank in ranks]
        assert said in text


def test_a_rank_that_was_given_nothing_differs_from_those_that_were() -> None:
    for text, agreement in on_ranks(2, nothing, one_used_up, {}):
        assert agreement.verdict is Verdict.DIFFER
        assert agreement.differences[0].kind == "missing"
        assert "B  not there" in text


def test_a_set_that_was_given_nothing_is_undecided_and_the_other_sets_are_not() -> None:
    for _, agreement in on_ranks(4, nothing, odd_ones_used_up, {"sets": [[0, 2], [1, 3]]}):
        assert agreement.verdict is Verdict.UNDECIDED
        assert [error.rank for error in agreement.errors] == [1, 3]
        assert [group.ranks for group in agreement.groups] == [(0, 2)]
