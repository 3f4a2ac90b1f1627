"""The files that everybody hashes: safetensors of random bytes."""

from __future__ import annotations

import json
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MIB = 1 << 20


def files(folder: Path) -> list[Path]:
    """The weight files of a checkpoint."""
    return sorted(folder.glob("*.safetensors"))


def bytes_of(folder: Path) -> int:
    """Bytes of the weight files."""
    return sum(path.stat().st_size for path in files(folder))


def write_model(folder: Path, shards: int, tensors: int, length: int) -> Path:
    """A checkpoint of U8 tensors of one length, `tensors` of them in each shard. One block of noise, over and over."""
    folder.mkdir(parents=True)
    noise = os.urandom(4 * MIB)
    for shard in range(1, shards + 1):
        lengths = [length] * tensors
        with (folder / f"model-{shard:05}-of-{shards:05}.safetensors").open("wb") as file:
            file.write(_header(f"model.layers.{shard}", "U8", [[length] for length in lengths], lengths))
            whole, rest = divmod(sum(lengths), len(noise))
            for _ in range(whole):
                file.write(noise)
            file.write(noise[:rest])
            file.flush()
            os.fsync(file.fileno())
    return folder


def write_small_model(folder: Path, shards: int, tensors: int) -> Path:
    """A sharded checkpoint of tiny tensors, an index and a config: what a warm start looks at."""
    folder.mkdir(parents=True)
    weight_map: dict[str, str] = {}
    for shard in range(1, shards + 1):
        name, prefix = f"model-{shard:05}-of-{shards:05}.safetensors", f"model.layers.{shard}.mlp.experts"
        header = _header(prefix, "BF16", [[4, 4]] * tensors, [32] * tensors)
        (folder / name).write_bytes(header + os.urandom(32 * tensors))
        weight_map |= {_name(prefix, place): name for place in range(tensors)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (folder / "config.json").write_text("{}\n")
    return folder


def drop(folder: Path) -> None:
    """Take the files out of the page cache."""
    for path in files(folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _name(prefix: str, place: int) -> str:
    return f"{prefix}.{place}.down_proj.weight"


def _header(prefix: str, dtype: str, shapes: Sequence[list[int]], lengths: Sequence[int]) -> bytes:
    table, end = {}, 0
    for place, (shape, length) in enumerate(zip(shapes, lengths, strict=True)):
        table[_name(prefix, place)] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + length]}
        end += length
    raw = json.dumps(table).encode()
    return struct.pack("<Q", len(raw)) + raw
