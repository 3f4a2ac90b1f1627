"""`assert_rank_equal` over real Gloo ranks: what is equal, what differs, and what cannot be told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ckpt_tui.facts.agreement import Agreement, Verdict
from ckpt_tui.facts.outcome import RanksDiffer
from ckpt_tui.replicas import ControlLost, Kind, Named, assert_rank_equal
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
    assert text.startswith("a test: 10 of 12 tensors differ between ranks (tensors 10):\n")
    assert "B [1]  minority" in text
    assert text.count("layers.") == 8
    assert "and 2 more" in text
    assert len(agreement.differences[0].segments) == 10


def bits(pattern: int) -> torch.Tensor:
    """One float32 of these bits."""
    return torch.tensor([pattern], dtype=torch.int64).to(torch.int32).view(torch.float32)


def kinds(rank: int) -> dict[str, Any]:
    """One of every kind; what `unlike` changes on rank 1 is the same here."""
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    complex_ = torch.complex(base, base + 1)
    return {
        "0-dim": torch.tensor(3.0),
        "bfloat16": base.to(torch.bfloat16),
        "bool": base > 3,
        "channels": torch.arange(48.0).reshape(1, 3, 4, 4).to(memory_format=torch.channels_last),
        "complex32": complex_.to(torch.complex32),
        "complex128": complex_.to(torch.complex128),
        "conj": complex_.conj(),
        "empty": torch.empty(0, 3),
        "expanded": base[0].expand(5, 6),
        "float4": torch.arange(6, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "float8": base.to(torch.float8_e4m3fn),
        "int3": torch.arange(6, dtype=torch.uint8).view(torch.int3),
        "lazy": torch.nn.LazyLinear(3).weight,
        "lr": 0.1,
        "meta": torch.empty(3, device="meta"),
        "neg": complex_.conj().imag,
        "nested": torch.nested.nested_tensor([base[0], base[1][:3]]),
        "jagged": torch.nested.nested_tensor([base[0], base[1][:3]], layout=torch.jagged),
        "none": None,
        "parameter": torch.nn.Parameter(base),
        "quantized": torch.quantize_per_tensor(base, 0.5, 3, torch.qint8),
        "per channel": torch.quantize_per_channel(base, torch.ones(4), torch.zeros(4), 0, torch.quint8),
        "coo": base.to_sparse(),
        "csr": base.to_sparse_csr(),
        "bsc": base.to_sparse_bsc((2, 2)),
        "strided": torch.arange(100.0)[3:60:7],
        "transposed": base.t(),
        "uint16": base.to(torch.uint16),
    }


def unlike(rank: int) -> dict[str, Any]:
    """The least of a change in each on rank 1."""
    held = kinds(rank)
    if rank == 0:
        return held
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    more = base.clone()
    more[0, 2] = 7
    return held | {
        "0-dim": torch.tensor([3.0]),
        "bfloat16": more.to(torch.bfloat16),
        "bool": more > 2,
        "channels": held["channels"].flip(1),
        "complex32": held["complex32"].conj(),
        "complex128": held["complex128"].conj(),
        "conj": held["conj"].conj(),
        "empty": torch.empty(3, 0),
        "expanded": more[0].expand(5, 6),
        "float4": torch.arange(1, 7, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "float8": base.to(torch.float8_e5m2),
        "int3": torch.arange(1, 7, dtype=torch.uint8).view(torch.int3),
        "lazy": torch.empty(0),
        "lr": 0.2,
        "meta": torch.empty(3),
        "neg": held["neg"].neg(),
        "nested": torch.nested.nested_tensor([base[0], base[1][:2]]),
        "jagged": torch.nested.nested_tensor([base[0], base[1][:2]], layout=torch.jagged),
        "none": torch.zeros(1),
        "parameter": None,
        "quantized": torch.quantize_per_tensor(base * 2, 1.0, 3, torch.qint8),
        "per channel": torch.quantize_per_channel(base, torch.ones(4), torch.zeros(4), 0, torch.qint8),
        "coo": more.to_sparse(),
        "csr": more.to_sparse_csr(),
        "bsc": more.to_sparse_bsc((2, 2)),
        "strided": held["strided"] + 1,
        "transposed": more.t(),
        "uint16": base.to(torch.int16),
    }


def test_every_kind_of_tensor_can_be_compared_and_agrees_with_itself() -> None:
    """Case R10."""
    text, agreement = compare(kinds)
    assert text == ""
    assert "no data" in agreement.warnings[0]


def test_the_least_change_in_any_kind_is_a_difference_of_that_tensor() -> None:
    """Case R10, other tensors on one rank, meta among them."""
    _, agreement = compare(unlike)
    assert [segment.name for segment in agreement.differences[0].segments] == sorted(kinds(0))
    held = {segment.name: segment.held for segment in agreement.differences[0].segments}
    assert held["lr"] == {"A": "0.1", "B": "0.2"}
    assert held["meta"]["A"] == "meta float32 [3]"
    assert held["parameter"]["B"] == "none"
    assert held["uint16"]["A"].startswith("uint16 [4, 6]")
    assert agreement.errors == ()


def equal_pairs(rank: int) -> dict[str, Any]:
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    other = rank == 1
    picture = torch.arange(48.0).reshape(1, 3, 4, 4)
    return {
        "nan": bits(0x7FC00001),
        "transposed": base.t() if other else base.t().contiguous(),
        "format": picture.to(memory_format=torch.channels_last) if other else picture,
        "grad": base.clone().requires_grad_(other),
        "class": torch.nn.Parameter(base) if other else base,
        "conj": torch.complex(base, -base).conj() if other else torch.complex(base, base),
    }


def other_pairs(rank: int) -> dict[str, Any]:
    other = rank == 1
    return {
        "nan": bits(0x7FC00001 if other else 0x7FC00000),
        "zero": torch.full((16,), 0.0).copysign(torch.tensor([-1.0] + [1.0] * 15)) if other else torch.zeros(16),
        "dtype": torch.zeros(4, dtype=torch.bfloat16 if other else torch.float16),
        "shape": torch.zeros(3, 2) if other else torch.zeros(2, 3),
    }


def test_equal_bits_are_equal_whatever_the_strides_class_or_gradient() -> None:
    """Case R09, the equal pairs."""
    assert compare(equal_pairs)[0] == ""


def test_other_bits_dtypes_and_shapes_differ_and_it_is_said_how() -> None:
    """Case R09, the pairs that differ."""
    text, agreement = compare(other_pairs, drill_bytes=1 << 20)
    assert [segment.name for segment in agreement.differences[0].segments] == ["dtype", "nan", "shape", "zero"]
    assert "A  float16 [4]" in text
    assert "B  bfloat16 [4]" in text
    assert "both NaN, with other bits, in 1" in text
    assert "differs: 1 of 16 elements, 1 byte, 1 bit" in text
    assert "equal all the same in 1 (0.0 and -0.0)" in text
    assert "A  float32 [2, 3]" in text


def unreadable(rank: int) -> dict[str, Any]:
    held: dict[str, Any] = {"fine": torch.zeros(3), "odd": torch.zeros(3)}
    if rank == 1:
        held["odd"] = object()
    return held


def unreadable_and_different(rank: int) -> dict[str, Any]:
    return unreadable(rank) | {"fine": torch.full((3,), float(rank))}


def freed(rank: int) -> dict[str, Any]:
    tensor = torch.zeros(100)
    tensor.untyped_storage().resize_(0)
    return {"freed": tensor}


def test_what_one_rank_cannot_read_is_undecided_for_that_tensor_alone_on_all_ranks() -> None:
    text, agreement = compare(unreadable, 4)
    assert agreement.verdict is Verdict.UNDECIDED
    assert "undecided on rank 1: tensors odd: a value of type object" in text
    text, agreement = compare(unreadable_and_different, 2)
    assert agreement.verdict is Verdict.DIFFER
    assert "tensors  fine" in text
    assert "tensors odd: a value of type object" in text


def test_memory_that_was_freed_is_undecided_and_never_read() -> None:
    text, _ = compare(freed)
    assert "its storage holds 0 of 400 bytes" in text


def twice(rank: int) -> list[tuple[str, Any]]:
    return [("a", 1), ("a", 2)] if rank == 1 else [("a", 1)]


def raising(rank: int) -> Any:
    yield "a", 1
    if rank == 0:
        raise RuntimeError("no more")


@pytest.mark.parametrize(("make", "said"), [(twice, "tensors a: is named twice"), (raising, "no more")])
def test_a_rank_that_fails_by_itself_is_heard_by_all(make: Make, said: str) -> None:
    text, agreement = compare(make)
    assert agreement.verdict is Verdict.UNDECIDED
    assert said in text


HOSTILE = "\x1b[31m\u202e[/red]<b>\n"


def hostile(rank: int) -> dict[str, Any]:
    return {HOSTILE: rank, "x" * (1 << 20): rank, "\ud800": torch.zeros(2)}


def test_hostile_and_very_long_names_are_told_escaped_and_cut() -> None:
    text, agreement = compare(hostile)
    assert "\x1b" not in text
    assert len(text) < 2000
    assert "\\x1b[31m\\u202e[/red]<b>\\n" in text
    assert len(agreement.differences[0].segments) == 2


def by_rank(rank: int) -> dict[str, Any]:
    """Two replicas of two shards each; timers and random states are each rank's own."""
    return {"shard": torch.full((4,), float(rank % 2)), "rng_state": rank, "timer": 0.5 * rank}


def test_ranks_are_compared_inside_their_sets_and_what_is_left_out_is_counted() -> None:
    """Case R12 c and d."""
    options = {"local": ("rng_state*", "timer"), "sets": [[0, 2], [1, 3]]}
    text, agreement = compare(by_rank, 4, **options)
    assert text == ""
    assert [group.ranks for group in agreement.groups] == [(0, 2), (1, 3)]
    assert [one.name for one in agreement.not_compared] == ["rng_state", "timer"]
    _, agreement = compare(by_rank, 4, sets=[[0, 2], [1, 3]])
    assert [one.file for one in agreement.differences] == ["tensors of ranks [0,2]", "tensors of ranks [1,3]"]
    assert {one.name for one in agreement.differences[0].segments} == {"rng_state", "timer"}


def missing(rank: int) -> dict[str, Any]:
    return {"a": torch.zeros(2)} | ({"b": torch.zeros(2)} if rank else {})


def test_names_that_are_missing_on_a_rank_are_differences() -> None:
    text, agreement = compare(missing)
    assert agreement.differences[0].kind == "missing"
    assert "A  not there" in text


def dying(rank: Rank) -> str:
    if rank.rank == 1:
        rank.die()
    assert_rank_equal({"a": 1}, group=rank.group, phase="a test")
    return ""


def late(rank: Rank) -> str:
    if rank.rank == 0:
        return ""
    assert_rank_equal({"a": 1}, group=rank.group, phase="a test")
    return ""


@pytest.mark.parametrize("work", [dying, late])
def test_a_rank_that_dies_or_never_comes_ends_the_others_with_a_clear_error(work: Callable[[Rank], str]) -> None:
    answers = [one for one in on_ranks(2, work, timeout=6) if one != "" and not isinstance(one, Died)]
    assert [one.kind for one in answers] == [ControlLost]
    assert "compare a test: a rank is gone or did not come in time" in answers[0].text


def apart(rank: int) -> list[Named]:
    return [
        Named("w", torch.zeros(2), Kind.PARAMETERS),
        Named("bn.running_mean", torch.full((2,), float(rank)), Kind.BUFFERS),
    ]


def reported(rank: Rank, folder: str) -> list[str]:
    """A report of kinds apart, then of a difference."""
    found = []
    agreement = assert_rank_equal(
        apart(rank.rank), group=rank.group, phase="p", step=3, apart=["buffers"], report=f"{folder}/apart.json"
    )
    found.append(agreement.verdict.value)
    try:
        assert_rank_equal(apart(rank.rank), group=rank.group, phase="p", step=4, report=f"{folder}/all.json")
    except RanksDiffer as differ:
        found += [differ.agreement.differences[0].file, *getattr(differ, "__notes__", [])]
    return found


def test_buffers_apart_are_told_and_decide_nothing_and_the_report_can_be_opened(tmp_path: Path) -> None:
    first, second = on_ranks(2, reported, str(tmp_path))
    assert first == ["agree", "buffers", f"the report is in {tmp_path}/all.json"]
    assert second == ["agree", "buffers"]
    for name, said in (("apart", "AGREE"), ("all", "DIFFER")):
        for format_ in ("human", "markdown", "html"):
            command = [sys.executable, "-m", "ckpt_tui", "report", str(tmp_path / f"{name}.json"), "--format", format_]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
            assert said in done.stdout
            assert "bn.running_mean" in done.stdout
            assert "SyncBatchNorm" in done.stdout
            assert "weight file" not in done.stdout


def distributed(rank: Rank) -> tuple[str, str]:
    """A replicated and a sharded DTensor, each compared over all ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (rank.size,))
    texts = []
    for placement in (Replicate(), Shard(0)):
        tensor = distribute_tensor(torch.ones(4, 4), mesh, [placement])
        try:
            assert_rank_equal({"t": tensor}, group=rank.group, phase="a test")
            texts.append("")
        except RanksDiffer as differ:
            texts.append(str(differ))
    return texts[0], texts[1]


def test_dtensors_are_equal_where_replicated_and_shards_of_other_places_are_not() -> None:
    (replicated, sharded), other = on_ranks(2, distributed)
    assert (replicated, sharded) == other
    assert replicated == ""
    assert "S(0) at (0)" in sharded
    assert "S(0) at (1)" in sharded
