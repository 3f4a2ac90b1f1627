"""Which tensors share a bucket, and what comes back out of one."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.replicas.buckets import Slot, flattened, plan
from ckpt_tui.replicas.schema import overlaps

CPU, META = torch.device("cpu"), torch.device("meta")
DTYPES = st.sampled_from([torch.float32, torch.bfloat16, torch.float64])


@given(st.lists(st.tuples(st.sampled_from([CPU, META]), DTYPES, st.integers(0, 40))), st.integers(1, 200))
def test_every_tensor_with_elements_is_in_one_bucket_of_its_device_and_dtype_in_order(
    given_: list[tuple[torch.device, torch.dtype, int]], bucket_bytes: int
) -> None:
    slots = [Slot(place, *rest) for place, rest in enumerate(given_)]
    buckets = plan(slots, bucket_bytes)
    assert sorted(slot.place for bucket in buckets for slot in bucket) == [s.place for s in slots if s.elements]
    for bucket in buckets:
        assert len({(slot.device, slot.dtype) for slot in bucket}) == 1
        assert [slot.place for slot in bucket] == sorted(slot.place for slot in bucket)
        assert len(bucket) == 1 or sum(slot.elements * slot.dtype.itemsize for slot in bucket) <= bucket_bytes


def test_tensors_that_fit_share_a_bucket() -> None:
    slots = [Slot(place, CPU, torch.float32, 4) for place in range(6)]
    assert [[slot.place for slot in bucket] for bucket in plan(slots, 32)] == [[0, 1], [2, 3], [4, 5]]
    assert len(plan(slots, 1 << 20)) == 1


def test_what_is_done_to_a_bucket_is_done_to_its_tensors_wherever_their_elements_lie() -> None:
    base = torch.arange(24, dtype=torch.float32)
    tensors = [base[:6].view(2, 3).T, base[8:20:2], base[23]]
    with flattened(tensors, torch.float32) as flat:
        assert flat.tolist() == [0, 3, 1, 4, 2, 5, 8, 10, 12, 14, 16, 18, 23]
        flat.add_(100)
    assert base.tolist() == [n + 100 if n in {*range(6), 8, 10, 12, 14, 16, 18, 23} else n for n in range(24)]


def test_a_contiguous_tensor_alone_is_its_own_bucket() -> None:
    tensor = torch.ones(3, 4)
    with flattened([tensor], torch.float32) as flat:
        assert flat.data_ptr() == tensor.data_ptr()


def test_a_lazy_conjugate_gets_its_values_back() -> None:
    base = torch.tensor([1 + 2j, 3 - 4j])
    with flattened([base.conj()], torch.complex64) as flat:
        assert flat.tolist() == [1 - 2j, 3 + 4j]
    assert base.tolist() == [1 + 2j, 3 - 4j]


def test_overlap_is_told_by_strides() -> None:
    base = torch.zeros(4, 6, 8)
    for plain in (base, base.permute(2, 0, 1), base[::2, 1:, ::3], base[:, :1], torch.zeros(()), torch.zeros(0, 3)):
        assert not overlaps(tuple(plain.shape), plain.stride())
    for shared in (torch.zeros(1).expand(5), torch.zeros(9).unfold(0, 3, 1), base[:, :1].expand(4, 6, 8)):
        assert overlaps(tuple(shared.shape), shared.stride())
