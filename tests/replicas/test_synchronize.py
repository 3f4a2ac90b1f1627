"""Replicas that begin alike and step alike, on real Gloo ranks; a refusal is one on all, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ckpt_tui.replicas.control import ControlLost
from ckpt_tui.replicas.schema import StepRefused
from ckpt_tui.replicas.synchronize import broadcast_trainable_parameters, synchronize_gradients
from tests.support.replicas import Died, Raised, Rank, on_ranks

SIZES = pytest.mark.parametrize("size", [2, 4, 8])
#: A tensor to a bucket, a few, all.
BUCKETS = (1, 64, 32 << 20)
NARROW = (torch.float16, torch.bfloat16, torch.float8_e4m3fn)


def bits(tensor: torch.Tensor) -> bytes:
    """A tensor's bits, in logical order."""
    return bytes(tensor.detach().resolve_conj().contiguous().flatten().view(torch.uint8).tolist())


def parameter(values: torch.Tensor, *, trainable: bool = True) -> torch.nn.Parameter:
    return torch.nn.Parameter(values, requires_grad=trainable)


def of_every_kind(seed: int) -> dict[str, torch.nn.Parameter]:
    """Parameters of many dtypes and layouts; frozen ones of integers."""
    random = torch.Generator().manual_seed(seed)
    floats = torch.randn(40, generator=random)
    odd = torch.tensor([float("nan"), -0.0, float("inf"), 1e-40]) if seed == 0 else torch.zeros(4)
    return {
        "float32": parameter(floats[:12].reshape(3, 4).clone()),
        "float64": parameter(floats[:5].double()),
        **{str(dtype): parameter(floats[:7].to(dtype)) for dtype in NARROW},
        "complex64": parameter(torch.complex(floats[:6], floats[6:12])),
        "complex128": parameter(torch.complex(floats[:6], floats[6:12]).to(torch.complex128)),
        "transposed": parameter(floats[:12].reshape(3, 4).clone().T),
        "strided": parameter(floats.clone()[::3]),
        "channels last": parameter(floats[:36].reshape(1, 4, 3, 3).clone(memory_format=torch.channels_last)),
        "odd": parameter(odd),
        "scalar": parameter(floats[0].clone()),
        "empty": parameter(torch.empty(0, 3)),
        "int32": parameter(torch.full((3,), seed, dtype=torch.int32), trainable=False),
        "int16": parameter(torch.full((3,), seed, dtype=torch.int16), trainable=False),
        "frozen": parameter(torch.full((3,), float(seed)), trainable=False),
    }


def broadcast_all_kinds(rank: Rank) -> list[dict[str, bytes]]:
    answers = []
    for bucket_bytes in BUCKETS:
        held = of_every_kind(rank.rank)
        broadcast_trainable_parameters(held.items(), control_group=rank.group, bucket_bytes=bucket_bytes)
        answers.append({name: bits(tensor) for name, tensor in held.items()})
    return answers


@SIZES
def test_every_rank_gets_rank_0s_bits_of_trainable_parameters_and_keeps_its_frozen_ones(
    size: int,
) -> None:
    first = {name: bits(tensor) for name, tensor in of_every_kind(0).items()}
    for rank, answers in enumerate(on_ranks(size, broadcast_all_kinds)):
        own = {name: bits(tensor) for name, tensor in of_every_kind(rank).items()}
        frozen = {"int32", "int16", "frozen"}
        assert answers == [{name: own[name] if name in frozen else first[name] for name in own}] * len(BUCKETS)


def sum_all_kinds(rank: Rank) -> list[dict[str, bytes | None]]:
    return [sum_by(rank, bucket_bytes) for bucket_bytes in BUCKETS]


def sum_by(rank: Rank, bucket_bytes: int) -> dict[str, bytes | None]:
    """Gradients of small whole numbers, which every dtype sums exactly; some on a few ranks, one on none."""
    held = of_every_kind(0)
    for tensor in held.values():
        if tensor.requires_grad:
            tensor.grad = torch.full_like(tensor, rank.rank + 1)
    held["float64"].grad = None
    if rank.rank:
        held["scalar"].grad = held["empty"].grad = None
    if rank.rank != 1:
        held["transposed"].grad = held["complex64"].grad = None
    before = {name: tensor.grad for name, tensor in held.items()}
    synchronize_gradients(held.items(), control_group=rank.group, bucket_bytes=bucket_bytes)
    for name, tensor in held.items():
        assert before[name] is None or tensor.grad is before[name], "a gradient's tensor is kept"
        assert tensor.grad is None or tensor.grad.shape == tensor.shape
    return {name: None if tensor.grad is None else bits(tensor.grad) for name, tensor in held.items()}


@SIZES
def test_gradients_are_summed_unused_here_is_zero_and_unused_everywhere_stays_none(
    size: int,
) -> None:
    total = size * (size + 1) // 2
    sums = dict.fromkeys(of_every_kind(0), total) | {"scalar": 1, "transposed": 2, "complex64": 2}
    expected = {
        name: bits(torch.full_like(tensor, sums[name])) if tensor.requires_grad and name != "float64" else None
        for name, tensor in of_every_kind(0).items()
    }
    assert on_ranks(size, sum_all_kinds) == [[expected] * len(BUCKETS)] * size


def sum_narrow(rank: Rank) -> list[float]:
    """Sums whose parts vanish where each addition is rounded: 256 + 1 is 256 in bfloat16."""
    tensor = parameter(torch.zeros(1, dtype=torch.bfloat16))
    tensor.grad = torch.tensor([256.0 if rank.rank == 0 else 1.0], dtype=torch.bfloat16)
    large = parameter(torch.zeros(1, dtype=torch.float16))
    large.grad = torch.tensor([[60000.0, 60000.0, -60000.0, -60000.0][rank.rank]], dtype=torch.float16)
    synchronize_gradients([tensor, large], control_group=rank.group)
    assert tensor.grad is not None
    assert large.grad is not None
    return [float(tensor.grad), float(large.grad)]


def test_narrow_gradients_are_summed_in_float32_and_rounded_once() -> None:
    assert on_ranks(4, sum_narrow) == [[260.0, 0.0]] * 4


def sum_wider(rank: Rank) -> list[float]:
    tensor = parameter(torch.zeros(2, dtype=torch.bfloat16))
    tensor.grad_dtype = torch.float32  # type: ignore[attr-defined] # a gradient may be wider than its parameter
    if rank.rank:
        tensor.grad = torch.tensor([256.0, 1.0])
    synchronize_gradients([tensor], control_group=rank.group)
    assert tensor.grad is not None
    assert tensor.grad.dtype is torch.float32
    return tensor.grad.tolist()


@pytest.mark.skipif(not hasattr(torch.Tensor, "grad_dtype"), reason="this torch has no grad_dtype")
def test_gradients_of_another_dtype_than_their_parameter_are_summed_in_theirs() -> None:
    assert on_ranks(2, sum_wider) == [[256.0, 1.0]] * 2


def sum_tied(rank: Rank) -> tuple[float, float]:
    shared, lazy = parameter(torch.zeros(1)), parameter(torch.zeros(1, dtype=torch.complex64))
    shared.grad = torch.ones(1)
    lazy.grad = torch.tensor([1 + 1j]).conj()
    parameters = [("input.weight", shared), ("lazy", lazy), ("output.weight", shared)]
    synchronize_gradients(parameters, control_group=rank.group)
    assert lazy.grad is not None
    return float(shared.grad), lazy.grad.imag.item()


def test_a_tied_parameter_is_summed_once_and_a_lazy_conjugate_as_what_it_stands_for() -> None:
    assert on_ranks(2, sum_tied) == [(2.0, -2.0)] * 2


def no_parameters(rank: Rank) -> None:
    synchronize_gradients([], control_group=rank.group)
    broadcast_trainable_parameters([], control_group=rank.group)


def test_no_parameters_are_all_alike() -> None:
    assert on_ranks(2, no_parameters) == [None, None]


def refuse(rank: Rank, makers: list[Callable[[int], list[Any]]]) -> list[tuple[str, str, list[bytes]]]:
    """Both calls with parameters that differ between ranks: what they raised, and what the tensors hold afterwards.

    One session for all: a refusal leaves the group as it was.
    """
    return [refused(rank, make(rank.rank)) for make in makers]


def refused(rank: Rank, given: list[Any]) -> tuple[str, str, list[bytes]]:
    texts = []
    for call in (broadcast_trainable_parameters, synchronize_gradients):
        with pytest.raises(StepRefused) as caught:
            call(given, control_group=rank.group)
        texts.append(str(caught.value))
    tensors = [entry[1] if isinstance(entry, tuple) else entry for entry in given]
    return texts[0], texts[1], [bits(t) for t in tensors if type(t) is torch.nn.Parameter and readable(t)]


def readable(tensor: torch.Tensor) -> bool:
    return not tensor.is_meta and tensor.untyped_storage().nbytes() > 0


def zeros(*shape: int, **more: Any) -> torch.nn.Parameter:
    return parameter(torch.zeros(*shape, **more))


def fewer(rank: int) -> list[Any]:
    return [("a", zeros(2)), ("b", zeros(2))][: 1 + (rank != 1)]


def renamed(rank: int) -> list[Any]:
    return [("a", zeros(2)), ("b" if rank else "\x1b[31mb", zeros(2))]


def reshaped(rank: int) -> list[Any]:
    return [zeros(2, 3), zeros(3, 2) if rank == 1 else zeros(2, 3)]


def retyped(rank: int) -> list[Any]:
    return [zeros(4, dtype=torch.float32 if rank else torch.float64)]


def reordered(rank: int) -> list[Any]:
    given = [("a", zeros(2)), ("b", zeros(2))]
    return given[::-1] if rank == 1 else given


def frozen_on_one(rank: int) -> list[Any]:
    return [("a", parameter(torch.zeros(2), trainable=rank != 1))]


def expanded_on_one(rank: int) -> list[Any]:
    return [("a", parameter(torch.zeros(1).expand(4)) if rank == 1 else zeros(4))]


def meta_on_one(rank: int) -> list[Any]:
    return [("a", zeros(4, device="meta") if rank == 1 else zeros(4))]


def sparse_on_one(rank: int) -> list[Any]:
    return [("a", torch.zeros(4).to_sparse() if rank == 1 else zeros(4))]


def lazy_on_one(rank: int) -> list[Any]:
    return [("a", torch.nn.UninitializedParameter() if rank == 1 else zeros(4))]


def freed_on_one(rank: int) -> list[Any]:
    given = zeros(4)
    if rank == 1:
        given.untyped_storage().resize_(0)
    return [("a", given)]


def a_class_of_its_own_on_one(rank: int) -> list[Any]:
    return [("a", Wrapper(torch.zeros(4)) if rank == 1 else zeros(4))]


class Wrapper(torch.Tensor):
    """A tensor that keeps its elements elsewhere, as a DTensor does."""

    def __new__(cls, held: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, held.shape)  # type: ignore[attr-defined]

    @classmethod
    def __torch_dispatch__(cls, *_: Any) -> Any:
        raise AssertionError("nobody computes with it")


def no_tensor_on_one(rank: int) -> list[Any]:
    return [("a", "weight" if rank == 1 else zeros(4))]


def very_many_differ(rank: int) -> list[Any]:
    return [zeros(2 + (rank == 1 and place >= 10)) for place in range(5000)]


REFUSALS = [
    (fewer, "1 parameter on rank 1; parameter 1 is b float32 [2] on ranks [0,2,3], not there on rank 1"),
    (renamed, r"parameter 1 is \x1b[31mb float32 [2] on rank 0, b float32 [2] on ranks [1-3]"),
    (reshaped, "parameter 1 is float32 [2, 3] on ranks [0,2,3], float32 [3, 2] on rank 1"),
    (retyped, "parameter 0 is float64 [4] on rank 0, float32 [4] on ranks [1-3]"),
    (reordered, "the same parameters in another order; parameter 0 is a float32 [2] on ranks [0,2,3], b float32"),
    (frozen_on_one, "parameter 0 is a float32 [2] on ranks [0,2,3], a float32 [2], frozen on rank 1"),
    (expanded_on_one, "a is expanded: several of its elements are one in memory on rank 1"),
    (meta_on_one, "a is on the meta device: it has no values on rank 1"),
    (sparse_on_one, "a is no plain tensor, but sparse, nested or quantized on rank 1"),
    (lazy_on_one, "a is not initialized on rank 1"),
    (freed_on_one, "a has no memory of its own now: it was freed, as those of sharded modules are on rank 1"),
    (a_class_of_its_own_on_one, "a is no plain tensor but a Wrapper: a shard, for one, is no replica on rank 1"),
    (no_tensor_on_one, "parameter 0 is no tensor but a str on rank 1"),
    (very_many_differ, "parameter 12 is float32 [2] on ranks [0,2,3], float32 [3] on rank 1; and 4,987 more differ"),
]


@pytest.fixture(scope="module")
def refusals() -> list[Any]:
    """By rank, what each case came to."""
    return on_ranks(4, refuse, [make for make, _ in REFUSALS])


@pytest.mark.parametrize("case", range(len(REFUSALS)), ids=[make.__name__ for make, _ in REFUSALS])
def test_ranks_with_other_parameters_are_refused_on_all_with_what_differs(refusals: list[Any], case: int) -> None:
    answers = [of_rank[case] for of_rank in refusals]
    assert len({answer[:2] for answer in answers}) == 1
    for place, text in enumerate(answers[0][:2]):
        start = ("the broadcast of parameters", "the sum of gradients")[place]
        assert text.startswith(f"{start} is refused, and nothing was changed: ")
        assert REFUSALS[case][1] in text
    for *_, held in answers:
        assert not any(map(any, held))


@pytest.mark.parametrize("size", [2, 8])
def test_a_refusal_reaches_every_rank_of_few_and_of_many(size: int) -> None:
    assert len({answer[0][:2] for answer in on_ranks(size, refuse, [reshaped])}) == 1


def with_other_buckets(rank: Rank, sizes: list[Any]) -> None:
    broadcast_trainable_parameters([zeros(4)], control_group=rank.group, bucket_bytes=sizes[rank.rank])


def test_buckets_of_another_size_are_refused_on_all() -> None:
    for raised in on_ranks(2, with_other_buckets, [8, 16]):
        assert raised.kind is StepRefused
        assert raised.text.endswith("bucket_bytes=8 on rank 0, bucket_bytes=16 on rank 1")
    for raised in on_ranks(2, with_other_buckets, [8, 0]):
        assert raised.text.endswith("bucket_bytes has to be a positive number of bytes on rank 1")


def with_a_broken_iterator(rank: Rank) -> None:
    def parameters() -> Any:
        yield zeros(4)
        if rank.rank == 1:
            raise KeyError("layers.3")

    synchronize_gradients(parameters(), control_group=rank.group)


def test_parameters_that_cannot_be_listed_on_one_rank_are_refused_on_all() -> None:
    for raised in on_ranks(2, with_a_broken_iterator):
        assert raised.text == "the sum of gradients is refused, and nothing was changed: 'layers.3' on rank 1"


def with_odd_gradient(rank: Rank, odd: str) -> tuple[str, list[Any]]:
    plain, other = zeros(3, 2), zeros(3, 2)
    plain.grad = torch.ones(3, 2)
    other.grad = torch.ones(3, 2)
    if rank.rank == 1:
        index = torch.tensor([[1]])
        other.grad = {
            "sparse": lambda: torch.sparse_coo_tensor(index, torch.ones(1, 2), (3, 2)),
            "expanded": lambda: torch.ones(1).expand(3, 2),
        }[odd]()
    with pytest.raises(StepRefused) as caught:
        synchronize_gradients({"first": plain, "second": other}.items(), control_group=rank.group)
    return str(caught.value), [plain.grad.tolist(), other.grad.to_dense().tolist()]


@pytest.mark.parametrize(
    ("odd", "said"), [("sparse", "is sparse (make the embedding with sparse=False)"), ("expanded", "is expanded")]
)
def test_a_gradient_that_cannot_be_summed_on_one_rank_is_refused_on_all_and_none_is_summed(odd: str, said: str) -> None:
    answers = on_ranks(4, with_odd_gradient, odd)
    text = f"the sum of gradients is refused, and nothing was changed: the gradient of second {said} on rank 1"
    ones = [[1.0, 1.0]] * 3
    assert [answer for rank, answer in enumerate(answers) if rank != 1] == [(text, [ones, ones])] * 3
    assert answers[1][0] == text
    assert answers[1][1][0] == ones


def broadcast_late(rank: Rank, late: int) -> list[bytes]:
    """Several buckets, and one rank that begins when all others wait for it."""
    held = [parameter(torch.full((64,), float(rank.rank))) for _ in range(6)]
    if rank.rank == late:
        rank.wait_for(*(f"{other} begins" for other in range(rank.size) if other != late))
    else:
        rank.tell(f"{rank.rank} begins")
    broadcast_trainable_parameters(held, control_group=rank.group, bucket_bytes=256)
    for tensor in held:
        tensor.grad = torch.ones(64)
    synchronize_gradients(held, control_group=rank.group, bucket_bytes=256)
    return [bits(tensor) + bits(tensor.grad) for tensor in held]


@pytest.mark.parametrize(("size", "late"), [(2, 0), (4, 3), (8, 5)])
def test_a_late_rank_changes_nothing(size: int, late: int) -> None:
    answers = on_ranks(size, broadcast_late, late)
    assert answers == [[bits(torch.zeros(64)) + bits(torch.full((64,), float(size)))] * 6] * size


def no_collective_before_all_have_come(rank: Rank) -> list[str]:
    """Rank 1 comes to the second bucket only when rank 0 has been seen to wait for it there, outside the collective."""
    import torch.distributed as dist

    from ckpt_tui.replicas.control import Control

    entered: list[str] = []
    plain, rendezvous = dist.broadcast, Control.barrier

    def broadcast(wire: Any, **more: Any) -> Any:
        entered.append("broadcast")
        return plain(wire, **more)

    def barrier(control: Control, *, what: str) -> None:
        if "bucket 2" in what:
            if rank.rank == 0:
                rank.tell("rank 0 waits")
            else:
                rank.wait_for("rank 0 waits")
        rendezvous(control, what=what)
        entered.append("all are here")

    dist.broadcast = broadcast
    Control.barrier = barrier  # type: ignore[method-assign]
    broadcast_trainable_parameters([zeros(8), zeros(8), zeros(8)], control_group=rank.group, bucket_bytes=32)
    return entered


def test_there_is_a_rendezvous_before_each_collective() -> None:
    assert on_ranks(2, no_collective_before_all_have_come) == [["all are here", "broadcast"] * 3] * 2


def die_between_buckets(rank: Rank) -> None:
    from ckpt_tui.replicas.control import Control

    rendezvous = Control.barrier

    def barrier(control: Control, *, what: str) -> None:
        if rank.rank == 1 and "bucket 2" in what:
            rank.die()
        rendezvous(control, what=what)

    Control.barrier = barrier  # type: ignore[method-assign]
    held = [zeros(8) for _ in range(3)]
    for tensor in held:
        tensor.grad = torch.ones(8)
    synchronize_gradients(held, control_group=rank.group, bucket_bytes=32)


@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_killed_between_buckets_is_an_error_that_names_the_bucket(size: int) -> None:
    answers = on_ranks(size, die_between_buckets, timeout=3)
    assert answers.pop(1) == Died(-9)
    for raised in answers:
        assert isinstance(raised, Raised)
        assert raised.kind is ControlLost
        assert "the sum of gradients, bucket 2 of 3" in raised.text


def without_memory(rank: Rank, call: Callable[..., None]) -> list[float]:
    """Rank 1 lacks the memory for the second bucket; what then lies in the three tensors, or in their gradients."""
    from ckpt_tui.replicas import synchronize

    packed, made = synchronize.flattened, iter(range(3))

    @contextmanager
    def flattened(*given: Any) -> Iterator[torch.Tensor]:
        if next(made) and rank.rank == 1:
            raise torch.OutOfMemoryError("out of memory:\n tried to allocate 20 MiB")
        with packed(*given) as flat:
            yield flat

    synchronize.flattened = flattened
    held = [parameter(torch.full((8,), float(rank.rank))) for _ in range(3)]
    for tensor in held:
        tensor.grad = torch.ones(8)
    with pytest.raises(ControlLost, match=r"bucket 2 of 3: rank 1: out of memory:\\n tried to allocate 20 MiB$"):
        call(held, control_group=rank.group, bucket_bytes=32)
    return [float(one[0]) for tensor in held for one in (tensor, tensor.grad)]


@pytest.mark.parametrize(
    ("call", "held"),
    [
        (broadcast_trainable_parameters, [[0, 1] * 3, [0, 1, 1, 1, 1, 1]]),
        (synchronize_gradients, [[0, 2, 0, 1, 0, 1], [1, 2, 1, 1, 1, 1]]),
    ],
)
def test_a_rank_that_lacks_memory_for_a_bucket_is_named_by_all_and_nobody_enters(
    call: Callable[..., None], held: list[list[float]]
) -> None:
    assert on_ranks(2, without_memory, call) == held


def at_other_calls(rank: Rank) -> None:
    call = broadcast_trainable_parameters if rank.rank else synchronize_gradients
    call([zeros(4)], control_group=rank.group)


def test_ranks_at_different_calls_are_told_apart() -> None:
    for raised in on_ranks(2, at_other_calls):
        assert raised.kind is ControlLost
        assert "rank 0: the sum of gradients" in raised.text
        assert "rank 1: the broadcast of parameters" in raised.text


def on_two_devices(rank: Rank) -> tuple[list[float], list[float]]:
    device = torch.device("cuda", rank.rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    held = [parameter(torch.full((100,), float(rank.rank), device=where)) for where in (device, "cpu", device)]
    broadcast_trainable_parameters(held, control_group=rank.group, bucket_bytes=400)
    values = [float(tensor.sum()) for tensor in held]
    for tensor in held[:2]:
        tensor.grad = torch.full_like(tensor, rank.rank + 1.0)
    synchronize_gradients(held, control_group=rank.group, bucket_bytes=400)
    assert held[2].grad is None
    return values, [float(tensor.grad.sum()) for tensor in held[:2]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_parameters_and_gradients_on_a_gpu_travel_too() -> None:
    assert on_ranks(2, on_two_devices) == [([0.0] * 3, [300.0] * 2)] * 2


def test_gpu_tensors_travel_by_nccl_only_where_the_default_group_has_it_and_the_same_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch.distributed as dist

    from ckpt_tui.replicas.synchronize import carrier

    ranks, backends = [0, 1], "cpu:gloo,cuda:nccl"
    monkeypatch.setattr(dist, "group", SimpleNamespace(WORLD="the default group"))
    monkeypatch.setattr(dist, "get_process_group_ranks", lambda _: ranks)
    monkeypatch.setattr(dist, "get_backend_config", lambda _: backends)
    control: Any = SimpleNamespace(group="the control group", ranks=(1, 0))
    gpu, cpu = torch.device("cuda", 0), torch.device("cpu")
    assert carrier(control, gpu) == "the default group"
    assert carrier(control, cpu) == "the control group"
    ranks = [0, 1, 2]
    assert carrier(control, gpu) == "the control group"
    ranks, backends = [0, 1], "cpu:gloo"
    assert carrier(control, gpu) == "the control group"
