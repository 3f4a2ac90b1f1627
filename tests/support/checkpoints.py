"""Small real checkpoints, as `safetensors` writes them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WIDTHS = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I64": 8}


def noise(seed: str, length: int) -> bytes:
    """Bytes that look like weights: the same for the same seed, and never a run of zeros."""
    return hashlib.shake_128(seed.encode()).digest(length)


def tensor(
    name: str, shape: tuple[int, ...] = (16, 16), dtype: str = "F32", seed: str = ""
) -> tuple[str, tuple[int, ...], bytes]:
    """One tensor: its dtype, shape and bytes, the same for the same name and seed."""
    return dtype, shape, noise(seed + name, math.prod(shape) * WIDTHS[dtype])


def safetensors_bytes(
    tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """A safetensors file with the tensors in the order given; `test_support` holds it against the library itself."""
    header: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + b"".join(data for _, _, data in tensors.values())


def write_checkpoint(
    folder: Path,
    shards: int = 2,
    tensors: int = 3,
    shape: tuple[int, ...] = (16, 16),
    *,
    seed: str = "",
    index: bool = True,
    names: Mapping[int, str] | None = None,
    prefix: str = "model.layers",
) -> Path:
    """A sharded checkpoint: `shards` files of `tensors` F32 tensors each, an index, a config and a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    weight_map = {}
    total = 0
    for number in range(1, shards + 1):
        file = (names or {}).get(number, f"model-{number:05}-of-{shards:05}.safetensors")
        content = {}
        for place in range(tensors):
            name = f"{prefix}.{number}.mlp.{place}.weight"
            content[name] = tensor(name, shape, seed=seed)
            weight_map[name] = file
            total += len(content[name][2])
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(safetensors_bytes(content, {"format": "pt"}))
    if index:
        body = {"metadata": {"total_size": total}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(body, indent=2) + "\n")
    (folder / "config.json").write_text(json.dumps({"model_type": "synth", "hidden_size": shape[-1]}) + "\n")
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE"}}) + "\n")
    return folder


def payload_offset(path: Path) -> int:
    """Where the first tensor's bytes begin."""
    with path.open("rb") as file:
        return 8 + int(struct.unpack("<Q", file.read(8))[0])


def flip_bit(path: Path, offset: int, bit: int = 0, *, keep_mtime: bool = False) -> None:
    """Flip one bit in place; with `keep_mtime` the old mtime is put back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))
    if keep_mtime:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
