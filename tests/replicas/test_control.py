"""The exchange among ranks: what arrives, what it costs, and what is said when a rank is gone, late or elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.replicas import Died, Raised, Rank, on_ranks


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Any]:
    """torch.distributed with this process as its only rank."""
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield dist
    dist.destroy_process_group()


def gather_twice(rank: Rank, lengths: list[int]) -> tuple[list[bytes], list[bytes], int]:
    from ckpt_tui.replicas.control import Control

    control = Control(rank.group)
    short = control.gather(b"%d" % rank.rank, what="short")
    sent = control.sent
    return short, control.gather(bytes([rank.rank]) * lengths[rank.rank], what="long"), sent


@pytest.mark.parametrize("size", [2, 4, 8])
def test_every_rank_gets_the_bytes_of_all_in_the_order_of_the_group(size: int) -> None:
    lengths = [0, 100_000, 64, 65, 1, 0, 3_000_000, 7][:size]
    for short, long, sent in on_ranks(size, gather_twice, lengths):
        assert short == [b"%d" % rank for rank in range(size)]
        assert long == [bytes([rank]) * length for rank, length in enumerate(lengths)]
        assert sent <= 128 * (size - 1)


def gather_in_part(rank: Rank) -> Any:
    import torch.distributed as dist

    from ckpt_tui.replicas.control import Control

    group = dist.new_group([3, 1], backend="gloo")
    try:
        control = Control(group)
    except ValueError as error:
        return str(error)
    return control.rank, control.size, control.ranks, control.gather(b"%d" % rank.rank, what="part")


def test_a_group_of_some_ranks_knows_their_global_numbers_and_refuses_who_is_no_member() -> None:
    zero, one, two, three = on_ranks(4, gather_in_part)
    assert zero == two == "this process is no member of the control group"
    assert one == (0, 2, (1, 3), [b"1", b"3"])
    assert three == (1, 2, (1, 3), [b"1", b"3"])


def test_no_group_or_another_thing_is_refused_with_the_way_to_make_one(alone: Any) -> None:
    from ckpt_tui.replicas.control import Control

    for wrong in (None, "gloo"):
        with pytest.raises(ValueError, match=r"new_group\(backend=\"gloo\"\)"):
            Control(wrong)  # type: ignore[arg-type]


def test_a_group_of_another_backend_is_refused(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ckpt_tui.replicas.control import Control

    monkeypatch.setattr(alone, "get_backend", lambda _: "nccl")  # none can be made without a GPU
    with pytest.raises(ValueError, match="backend is nccl, and Gloo is needed"):
        Control(alone.group.WORLD)


def test_a_group_that_was_destroyed_is_refused(alone: Any) -> None:
    from ckpt_tui.replicas.control import Control

    group = alone.new_group(backend="gloo")
    alone.destroy_process_group(group)
    with pytest.raises(ValueError, match="group"):
        Control(group)


def test_a_rank_alone_gathers_its_own(alone: Any) -> None:
    from ckpt_tui.replicas.control import Control

    control = Control(alone.group.WORLD)
    assert control.gather(b"x" * 1000, what="alone") == [b"x" * 1000]
    assert control.sent == 0


def gather_apart(rank: Rank) -> None:
    from ckpt_tui.replicas.control import Control

    Control(rank.group).gather(b"", what="the gradients\n of step 8" if rank.rank == 1 else "the gradients of step 7")


def test_ranks_at_different_steps_are_told_apart_on_all() -> None:
    for raised in on_ranks(4, gather_apart):
        assert raised.text == (
            "the ranks are not at the same step: ranks [0,2,3]: the gradients of step 7; "
            "rank 1: the gradients\\n of step 8"
        )


def gather_too_much(rank: Rank) -> None:
    from ckpt_tui.replicas import control

    control.MAX_BYTES = 1000
    control.Control(rank.group).gather(b"x" * (1001 if rank.rank else 1000), what="the schema")


def test_a_payload_beyond_the_limit_is_refused_on_all_ranks() -> None:
    for raised in on_ranks(2, gather_too_much):
        assert raised.text == "while exchanging the schema: more than 1,000 bytes from rank 1"


def gather_or_die(rank: Rank) -> None:
    from ckpt_tui.replicas.control import Control

    control = Control(rank.group)
    control.barrier(what="the start")
    if rank.rank == 1:
        rank.die()
    control.gather(b"", what="phase 'optimizer'")


@pytest.mark.parametrize("size", [2, 4])
def test_a_killed_rank_is_an_error_that_says_what_was_exchanged(size: int) -> None:
    answers = on_ranks(size, gather_or_die, timeout=3)  # who is no neighbour of a dead rank waits for its word so long
    assert answers.pop(1) == Died(-9)
    for raised in answers:
        assert raised.kind.__name__ == "ControlLost"
        assert raised.text.startswith("while exchanging phase 'optimizer': a rank is gone or did not come in time: ")


def gather_or_stay_away(rank: Rank) -> None:
    from ckpt_tui.replicas.control import Control

    control = Control(rank.group)
    if rank.rank == 1:
        rank.wait_for("given up")
        return
    try:
        control.gather(b"", what="step 3")
    finally:
        rank.tell("given up")


def test_a_rank_that_never_comes_is_given_up_after_the_groups_timeout() -> None:
    first, _ = on_ranks(2, gather_or_stay_away, timeout=1)
    assert isinstance(first, Raised)
    assert "step 3" in first.text
    assert "Timed out" in first.text


def gather_late(rank: Rank) -> list[bytes]:
    from ckpt_tui.replicas.control import Control

    control = Control(rank.group)
    if rank.rank == 1:
        rank.wait_for("others wait")
    else:
        rank.tell("others wait")
    return control.gather(bytes([rank.rank]) * 500, what="late")


def test_a_late_rank_is_waited_for() -> None:
    assert on_ranks(2, gather_late) == [[b"\0" * 500, b"\1" * 500]] * 2


def test_the_error_travels_between_processes() -> None:
    from ckpt_tui.replicas.control import ControlLost

    error = pickle.loads(pickle.dumps(ControlLost("lost")))
    assert isinstance(error, RuntimeError)
    assert str(error) == "lost"
