"""A sharded checkpoint that looks like a small decoder: BF16 tensors under the usual names, an index, a config."""

from __future__ import annotations

import json
import random
from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHARDS = 4
MIB = 1 << 20


class Shape(NamedTuple):
    """The sizes of the made-up model."""

    hidden: int
    inner: int
    vocabulary: int
    layers: int

    @classmethod
    def for_bytes(cls, size: int) -> Shape:
        """A model of about `size` bytes: at least one layer a shard."""
        hidden = 1024 if size >= 256 * MIB else 256
        inner, vocabulary = hidden * 11 // 4, hidden * 8
        layer = 2 * (4 * hidden * hidden + 3 * hidden * inner + 2 * hidden)
        per_shard = max(1, round((size - 2 * vocabulary * hidden) / layer / SHARDS))
        return cls(hidden, inner, vocabulary, per_shard * SHARDS)


def tensors(shape: Shape) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    """Every tensor in order: its shard (from 1), its name, its shape."""
    hidden, inner = shape.hidden, shape.inner
    yield 1, "model.embed_tokens.weight", (shape.vocabulary, hidden)
    for layer in range(shape.layers):
        shard = 1 + layer * SHARDS // shape.layers
        prefix = f"model.layers.{layer}."
        for part in "qkvo":
            yield shard, f"{prefix}self_attn.{part}_proj.weight", (hidden, hidden)
        yield shard, f"{prefix}mlp.gate_proj.weight", (inner, hidden)
        yield shard, f"{prefix}mlp.up_proj.weight", (inner, hidden)
        yield shard, f"{prefix}mlp.down_proj.weight", (hidden, inner)
        yield shard, f"{prefix}input_layernorm.weight", (hidden,)
        yield shard, f"{prefix}post_attention_layernorm.weight", (hidden,)


def shard_name(number: int) -> str:
    """The file name of a shard, numbered from 1."""
    return f"model-{number:05}-of-{SHARDS:05}.safetensors"


def write(folder: Path, size: int, *, seed: int = 7) -> None:
    """Write the checkpoint of about `size` bytes into `folder`. Deterministic for a seed."""
    shape = Shape.for_bytes(size)
    rng = random.Random(seed)  # noqa: S311  (made-up weights, no secret)
    pool = _weights(rng, max(shape.hidden * shape.inner, shape.vocabulary * shape.hidden))
    weight_map: dict[str, str] = {}
    total = 0
    by_shard: dict[int, list[tuple[str, tuple[int, ...], memoryview]]] = {}
    for shard, name, dims in tensors(shape):
        length = 2 * dims[0] * (dims[1] if len(dims) > 1 else 1)
        start = 2 * rng.randrange(len(pool) // 4)
        data = memoryview(pool)[start : start + length]
        by_shard.setdefault(shard, []).append((name, dims, data))
        weight_map[name] = shard_name(shard)
        total += length
    for shard, content in by_shard.items():
        _write_shard(folder / shard_name(shard), content)
    _write_json(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": weight_map},
    )
    _write_json(
        folder / "config.json",
        {
            "architectures": ["DemoForCausalLM"],
            "model_type": "demo",
            "hidden_size": shape.hidden,
            "intermediate_size": shape.inner,
            "num_hidden_layers": shape.layers,
            "vocab_size": shape.vocabulary,
            "torch_dtype": "bfloat16",
        },
    )
    _write_json(
        folder / "tokenizer.json", {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
    )


def _write_shard(path: Path, content: list[tuple[str, tuple[int, ...], memoryview]]) -> None:
    """Write BF16 tensors as safetensors: a length prefix, a JSON header padded to 8 bytes, the data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, dims, data in content:
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": (end, end + len(data))}
        end += len(data)
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        for _, _, data in content:
            file.write(data)


def _weights(rng: random.Random, largest: int) -> bytes:
    """BF16 bytes, about normally distributed like weights, twice as many as the largest tensor needs."""
    floats = array("f", (rng.gauss(0.0, 0.02) for _ in range(1 << 17))).tobytes()
    block = bytearray(len(floats) // 2)
    block[0::2], block[1::2] = floats[2::4], floats[3::4]  # the upper half of a little-endian F32 is its BF16
    return bytes(block) * (4 * largest // len(block) + 2)


def _write_json(path: Path, body: object) -> None:
    path.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
