"""The short way for small plain tensors gives the digests of the long way, and leaves it whatever is more than that."""

from __future__ import annotations

import pytest
import torch

from ckpt_tui.replicas import holding
from ckpt_tui.replicas.kinds import Algorithm, Named
from ckpt_tui.replicas.quick import Quick

PLAIN = torch.arange(12, dtype=torch.float32).reshape(3, 4)
COMPLEX = torch.randn(4, dtype=torch.complex64)
SHORT = {
    "plain": PLAIN,
    "parameter": torch.nn.Parameter(PLAIN),
    "a row": PLAIN[1],
    "scalar": torch.tensor(3.0),
    "bool": torch.tensor([True, False]),
    **{
        str(dtype): PLAIN.to(dtype)
        for dtype in (torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8)
    },
    "one leaf": torch.zeros(1 << 18),
}


def cut(size: int) -> torch.Tensor:
    """A tensor of 160 bytes whose memory has been cut to `size`."""
    tensor = torch.zeros(40)
    tensor.untyped_storage().resize_(size)
    return tensor


LONG = {
    "transposed": PLAIN.T,
    "expanded": PLAIN[:1].expand(3, 4),
    "two leaves": torch.zeros((1 << 18) + 1),
    "empty": torch.zeros(0),
    "complex": COMPLEX,
    "conjugate": COMPLEX.conj(),
    "negative": COMPLEX.conj().imag,
    "sparse": PLAIN.to_sparse(),
    "compressed": PLAIN.to_sparse_csr(),
    "nested": torch.nested.nested_tensor([PLAIN, PLAIN[:2]]),
    "meta": PLAIN.to("meta"),
    "freed": cut(0),
    "cut": cut(8),
    "None": None,
    "a number": 3,
}


@pytest.mark.parametrize("algorithm", Algorithm)
def test_digests_of_small_plain_tensors_are_those_of_the_long_way(algorithm: Algorithm) -> None:
    quick = list(Quick(algorithm).digests(SHORT.values()))
    long = holding._AtLength([Named(*pair) for pair in SHORT.items()], algorithm, 1)
    assert dict(zip(SHORT, quick, strict=True)) == {held.named.name: held.digest for held in long.held}


@pytest.mark.parametrize("name", LONG)
def test_what_is_more_than_its_bytes_in_one_place_goes_the_long_way(name: str) -> None:
    assert list(Quick(Algorithm.XXH3).digests([LONG[name]])) == [None]


def test_inside_a_function_transform_nothing_is_read() -> None:
    seen: list[bytes | None] = []

    def look(row: torch.Tensor) -> torch.Tensor:
        seen.extend(Quick(Algorithm.XXH3).digests([row]))
        return row * 1

    torch.func.vmap(look)(PLAIN)
    assert seen == [None]


def test_tied_tensors_are_hashed_once_and_counted_twice() -> None:
    quick = Quick(Algorithm.XXH3)
    first, second, other = quick.digests([PLAIN, torch.nn.Parameter(PLAIN), PLAIN.clone()])
    assert first == second == other
    assert (quick.bytes, quick.hashed) == (3 * 48, 2 * 48)


def test_the_same_memory_seen_as_another_dtype_is_another_tensor() -> None:
    first, second = Quick(Algorithm.XXH3).digests([PLAIN, PLAIN.view(torch.int32)])
    assert first != second
