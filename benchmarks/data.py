"""The files that everybody hashes: safetensors of random bytes, in the page cache."""

from __future__ import annotations

import json
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
SHARDS = 8


def write_model(folder: Path, size: int, tensor: int) -> Path:
    """About `size` bytes in eight shards, in U8 tensors of `tensor` bytes each. One block of noise, over and over."""
    folder.mkdir(parents=True)
    noise = os.urandom(max(tensor, 4 * MIB))
    count = max(1, size // SHARDS // tensor)
    for shard in range(1, SHARDS + 1):
        header = {
            f"layers.{shard}.{place}.weight": {
                "dtype": "U8",
                "shape": [tensor],
                "data_offsets": [place * tensor, (place + 1) * tensor],
            }
            for place in range(count)
        }
        raw = json.dumps(header).encode()
        with (folder / f"model-{shard:05}-of-{SHARDS:05}.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(raw)) + raw)
            whole, rest = divmod(count * tensor, len(noise))
            for _ in range(whole):
                file.write(noise)
            file.write(noise[:rest])
    for path in folder.iterdir():
        with path.open("rb", buffering=0) as file:
            os.fsync(file.fileno())
            while file.read(MIB):
                pass
    return folder


def write_small_model(folder: Path, shards: int) -> Path:
    """A sharded checkpoint of tiny shards with 300 tensors each, an index and a config: what a warm start looks at."""
    folder.mkdir(parents=True)
    weight_map = {}
    for shard in range(1, shards + 1):
        name = f"model-{shard:05}-of-{shards:05}.safetensors"
        header = {}
        for place in range(300):
            tensor = f"model.layers.{shard}.mlp.experts.{place}.down_proj.weight"
            header[tensor] = {"dtype": "BF16", "shape": [4, 4], "data_offsets": [place * 32, (place + 1) * 32]}
            weight_map[tensor] = name
        raw = json.dumps(header).encode()
        (folder / name).write_bytes(struct.pack("<Q", len(raw)) + raw + os.urandom(300 * 32))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (folder / "config.json").write_text("{}\n")
    return folder
