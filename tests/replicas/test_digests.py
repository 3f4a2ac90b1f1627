"""The digests of live tensors: against the page's vectors, and against the layout of checkpoint files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import xxhash

from ckpt_tui.digest.layout import LEAF, leaf_digest, segment_digest
from ckpt_tui.replicas import Named
from ckpt_tui.replicas.digests import part_digest
from ckpt_tui.replicas.hashing import leaves_of
from ckpt_tui.replicas.holding import hold
from ckpt_tui.replicas.kinds import Algorithm, Kind
from ckpt_tui.replicas.pieces import staged, taken
from ckpt_tui.replicas.tensors import describe

PAGE = Path(__file__).parents[2] / "docs" / "replicas.md"


def vectors() -> list[dict[str, Any]]:
    return json.loads(PAGE.read_text().partition("```json\n")[2].partition("```")[0])


def string(raw: bytes) -> bytes:
    return len(raw).to_bytes(8, "little") + raw


def integer(value: int) -> bytes:
    return value.to_bytes(8, "little")


def by_hand(vector: dict[str, Any]) -> str:
    """The root of a kind with one plain tensor, as the page says it in words."""
    hash_ = {"xxh3-128": xxhash.xxh3_128_digest, "sha256": lambda raw: hashlib.sha256(raw).digest()}[vector["digest"]]
    raw = bytes.fromhex(vector["bytes"])
    leaves = [hash_(raw[at : at + LEAF]) for at in range(0, len(raw), LEAF)]
    part = hash_(
        string(b"ckpt-tui/1/segment") + integer(len(raw)) + integer(len(leaves)) + b"".join(map(string, leaves))
    )
    form = string(vector["dtype"].encode()) + integer(len(vector["shape"])) + b"".join(map(integer, vector["shape"]))
    head = string(b"ckpt-tui/1/replica-entry") + string(b"tensor") + form
    entry = hash_(head + integer(0) + integer(1) + string(b"") + form + string(part))
    kind = string(b"ckpt-tui/1/replica-kind") + string(vector["kind"].encode()) + string(vector["digest"].encode())
    return hashlib.sha256(kind + integer(1) + string(vector["name"].encode()) + string(entry)).hexdigest()


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: f"{vector['name']}-{vector['digest']}")
def test_the_vectors_of_the_page_are_what_is_computed_here_and_by_hand(vector: dict[str, Any]) -> None:
    raw = torch.tensor(list(bytes.fromhex(vector["bytes"])), dtype=torch.uint8)
    tensor = raw.view(getattr(torch, vector["dtype"])).reshape(vector["shape"])
    kind = Kind(vector["kind"])
    root = hold([Named(vector["name"], tensor, kind)], Algorithm(vector["digest"])).roots[kind].hex()
    assert root == vector["root"] == by_hand(vector)


def test_a_plain_tensor_has_the_digest_of_its_segment_in_a_checkpoint_file() -> None:
    tensor = torch.arange(300_000, dtype=torch.float32)
    raw = taken(tensor, 0, tensor.nbytes)
    leaves = [leaf_digest(raw[at : at + LEAF]) for at in range(0, len(raw), LEAF)]
    (part,) = describe(tensor).parts
    (found,) = leaves_of([part], Algorithm.XXH3, 1).leaves
    assert found == leaves
    assert part_digest(Algorithm.XXH3, len(raw), leaves) == segment_digest(len(raw), leaves)


@pytest.mark.parametrize("threads", [1, 3])
def test_large_tensors_that_are_not_contiguous_are_hashed_as_their_contiguous_copies(threads: int) -> None:
    base = torch.arange(7 * 300 * 1001, dtype=torch.int32).reshape(7, 300, 1001)
    views = {"a": base.permute(2, 0, 1), "b": base[:, ::3, 5:], "c": base[:, :1].expand(7, 900, 1001)}
    for name, view in views.items():
        one = hold({name: view}, Algorithm.XXH3, threads=threads)
        assert one.roots == hold({name: view.contiguous()}, Algorithm.XXH3, threads=threads).roots
        assert one.hashed > LEAF


def test_tied_tensors_are_hashed_once() -> None:
    small, weight = torch.zeros(1000, 10), torch.zeros(1000, 1000)
    held = hold({"small": small, "again": small}, Algorithm.XXH3)
    assert (held.bytes, held.hashed) == (2 * small.nbytes, small.nbytes)
    held = hold({"embed": weight, "head": weight, "view": weight.view(1_000_000)}, Algorithm.XXH3)
    assert (held.bytes, held.hashed) == (3 * weight.nbytes, weight.nbytes)
    again = hold({"weight": weight, "transposed": weight.t(), "part": weight[:500]}, Algorithm.XXH3)
    assert again.hashed == again.bytes


def test_tensors_on_a_device_come_piece_by_piece_through_two_buffers() -> None:
    """The same way as from a GPU, with a CPU tensor for the device's."""
    tensors = [torch.arange(size, dtype=torch.int16) for size in (3, 5 << 20, 0, 7)] + [
        torch.arange(9.0).reshape(3, 3).t()
    ]
    seen: dict[int, bytes] = {}
    failed: list[int] = []
    for load in staged(enumerate(tensors), LEAF, lambda key, _: failed.append(key)):
        for slot in load:
            seen[slot.key] = seen.get(slot.key, b"") + bytes(slot.data)
    assert failed == []
    assert seen == {key: taken(one, 0, one.nbytes) for key, one in enumerate(tensors) if one.nbytes}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_tensors_on_a_gpu_have_the_digests_of_their_copies_in_memory_on_the_callers_stream() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        held = {f"t{place}": torch.arange(5 << 20, device="cuda").add_(place) for place in range(4)}
        held |= {
            "small": torch.ones(3, device="cuda"),
            "transposed": torch.arange(6.0, device="cuda").reshape(2, 3).t(),
        }
        held["conj"] = torch.complex(held["small"], held["small"]).conj()
        found = hold(held, Algorithm.XXH3).roots
    assert found == hold({name: one.cpu() for name, one in held.items()}, Algorithm.XXH3).roots
