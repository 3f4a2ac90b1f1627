"""Faults put into a real small checkpoint: each changes one copy as its cause would."""

from __future__ import annotations

import json
import math
import shutil
import struct
from typing import TYPE_CHECKING

from .checkpoints import WIDTHS, noise, safetensors_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = 4096
SHARDS = tuple(f"model-{number:05}-of-00003.safetensors" for number in (1, 2, 3))
S1, S2, S3 = SHARDS
#: Of each shard: a matrix of 256 KiB, a small norm, a matrix in BF16 and one of bytes.
LAYER = (
    ("mlp.weight", "F32", (256, 256)),
    ("norm.weight", "F32", (256,)),
    ("attn.weight", "BF16", (128, 256)),
    ("attn2.weight", "BF16", (128, 256)),
    ("scale", "U8", (64, 64)),
)
Tensors = dict[str, tuple[str, tuple[int, ...], bytes]]


def values(seed: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    """Bytes that look like weights: small numbers, none of them zero."""
    length = math.prod(shape)
    raw = noise(seed, length * 2)
    if dtype == "U8":
        return bytes(byte | 1 for byte in raw[:length])
    numbers = [(1 + place) / 3e6 - 0.0109 for place in struct.unpack(f"<{length}H", raw)]
    packed = struct.pack(f"<{length}f", *numbers)
    if dtype == "F32":
        return packed
    halves = bytearray(length * 2)
    halves[0::2], halves[1::2] = packed[2::4], packed[3::4]
    return bytes(halves)


def shard_tensors(number: int, seed: str = "") -> Tensors:
    """The tensors of one shard."""
    return {
        f"layers.{number}.{name}": (dtype, shape, values(f"{seed}{number}{name}", dtype, shape))
        for name, dtype, shape in LAYER
    }


def write_model(folder: Path, seed: str = "") -> Path:
    """A model of three shards, its index, config and tokenizer."""
    folder.mkdir(parents=True)
    for number, name in enumerate(SHARDS, 1):
        write_shard(folder, name, shard_tensors(number, seed))
    write_index(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "synth"}) + "\n")
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0"}) + "\n")
    return folder


def write_shard(folder: Path, name: str, tensors: Tensors) -> None:
    (folder / name).write_bytes(safetensors_bytes(tensors, {"format": "pt"}))


def write_index(folder: Path) -> None:
    """An index over whatever shards there are."""
    weight_map, total = {}, 0
    for path in sorted(folder.glob("*.safetensors")):
        for name, (_, length) in places(path).items():
            weight_map[name] = path.name
            total += length
    body = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(body) + "\n")


def places(path: Path) -> dict[str, tuple[int, int]]:
    """Where each tensor lies in its file, and how long it is."""
    raw = path.read_bytes()
    start = 8 + int(struct.unpack_from("<Q", raw)[0])
    header = json.loads(raw[8:start])
    return {
        name: (start + entry["data_offsets"][0], entry["data_offsets"][1] - entry["data_offsets"][0])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def put(path: Path, offset: int, data: bytes) -> None:
    """Overwrite bytes in place."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def rewrite(path: Path, change: Callable[[Tensors], None]) -> None:
    """Write a shard anew with other tensors."""
    raw = path.read_bytes()
    start = 8 + int(struct.unpack_from("<Q", raw)[0])
    header = json.loads(raw[8:start])
    tensors: Tensors = {
        name: (entry["dtype"], tuple(entry["shape"]), raw[start + at : start + end])
        for name, entry in header.items()
        if name != "__metadata__"
        for at, end in [entry["data_offsets"]]
    }
    change(tensors)
    write_shard(path.parent, path.name, tensors)


def xor(path: Path, offset: int, mask: bytes) -> None:
    """Flip the bits of a mask."""
    with path.open("rb") as file:
        file.seek(offset)
        held = file.read(len(mask))
    put(path, offset, bytes(a ^ b for a, b in zip(held, mask, strict=True)))


def page(path: Path, number: int = 0) -> int:
    """The first byte of a page in the middle of the file's first tensor."""
    start = min(offset for offset, _ in places(path).values())
    return -(-start // PAGE) * PAGE + (8 + number) * PAGE


# The faults. Each takes the folder of the bad copy, and `good` the other one.


def flip_a_bit(bad: Path, good: Path) -> None:
    xor(bad / S2, places(bad / S2)["layers.2.attn.weight"][0] + 2 * 345 + 1, b"\x80")


def flip_a_byte(bad: Path, good: Path) -> None:
    xor(bad / S2, places(bad / S2)["layers.2.attn.weight"][0] + 700, b"\xff")


def stick_a_bit(bad: Path, good: Path) -> None:
    start, _ = places(bad / S2)["layers.2.mlp.weight"]
    for number in range(40):
        xor(bad / S2, start + 4 * 500 * number, b"\x08")


def zero_a_page(bad: Path, good: Path) -> None:
    put(bad / S2, page(bad / S2), bytes(PAGE))


def zero_some_bytes(bad: Path, good: Path) -> None:
    put(bad / S2, page(bad / S2) + 101, bytes(1000))


def punch_a_hole(bad: Path, good: Path) -> None:
    """As a file system leaves it: blocks that are not there. It crosses the border of two tensors."""
    path = bad / S2
    raw = path.read_bytes()
    border = places(path)["layers.2.attn.weight"][0]
    start = border // PAGE * PAGE - 2 * PAGE
    path.unlink()
    with path.open("wb") as file:
        file.write(raw[:start])
        file.seek(start + 4 * PAGE)
        file.write(raw[start + 4 * PAGE :])


def zero_the_tail(bad: Path, good: Path) -> None:
    size = (bad / S2).stat().st_size
    at = size - 9 * PAGE
    put(bad / S2, at, bytes(size - at))


def foreign_block(bad: Path, good: Path) -> None:
    other = (good / S3).read_bytes()
    at = page(good / S3, 3)
    put(bad / S2, page(bad / S2), other[at : at + PAGE])


def foreign_bytes(bad: Path, good: Path) -> None:
    put(bad / S2, page(bad / S2) + 77, noise("foreign", 3000))


def cut_the_tail(bad: Path, good: Path) -> None:
    raw = (bad / S2).read_bytes()
    (bad / S2).write_bytes(raw[:-12345])


def append_bytes(bad: Path, good: Path) -> None:
    with (bad / S2).open("ab") as file:
        file.write(noise("more", 100))


def leave_a_pointer(bad: Path, good: Path) -> None:
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize {(bad / S2).stat().st_size}\n"
    (bad / S2).write_text(text)


def leave_a_page_of_html(bad: Path, good: Path) -> None:
    (bad / S2).write_text("<!doctype html><title>Sign in</title>\n")


def swap_shards(bad: Path, good: Path) -> None:
    shutil.copy(good / S1, bad / S2)
    shutil.copy(good / S2, bad / S1)


def copy_another_shard(bad: Path, good: Path) -> None:
    shutil.copy(good / S1, bad / S2)


def swap_tensors(bad: Path, good: Path) -> None:
    def change(tensors: Tensors) -> None:
        one, other = "layers.2.attn.weight", "layers.2.attn2.weight"
        tensors[one], tensors[other] = tensors[other], tensors[one]
        # The order of the file stays: only the bytes are exchanged.
        for name in list(tensors):
            tensors[name] = tensors.pop(name)

    rewrite(bad / S2, change)


def write_another_seed(bad: Path, good: Path) -> None:
    for number, name in enumerate(SHARDS, 1):
        write_shard(bad, name, shard_tensors(number, "other seed"))


def quantize(bad: Path, good: Path) -> None:
    """The same names with a byte an element."""
    for number, name in enumerate(SHARDS, 1):
        tensors = shard_tensors(number)
        small = {key: ("U8", shape, noise(f"q{key}", math.prod(shape))) for key, (_, shape, _) in tensors.items()}
        write_shard(bad, name, small)
    write_index(bad)


def pad_the_header(bad: Path, good: Path) -> None:
    raw = (bad / S2).read_bytes()
    start = 8 + int(struct.unpack_from("<Q", raw)[0])
    header = raw[8:start] + b" " * 64
    (bad / S2).write_bytes(struct.pack("<Q", len(header)) + header + raw[start:])


def shard_otherwise(bad: Path, good: Path) -> None:
    tensors = {name: tensor for number in (1, 2, 3) for name, tensor in shard_tensors(number).items()}
    for name in SHARDS:
        (bad / name).unlink()
    names = list(tensors)
    for place in range(2):
        part = {name: tensors[name] for name in names[place::2]}
        write_shard(bad, f"model-{place + 1:05}-of-00002.safetensors", part)
    write_index(bad)


def tune_a_layer(bad: Path, good: Path) -> None:
    def change(tensors: Tensors) -> None:
        for name, (dtype, shape, _) in list(tensors.items()):
            tensors[name] = (dtype, shape, values(f"tuned {name}", dtype, shape))

    rewrite(bad / S2, change)


def nudge_a_tensor(bad: Path, good: Path) -> None:
    """A step of training: every third value moves by its last bits."""
    path = bad / S2
    start, length = places(path)["layers.2.mlp.weight"]
    raw = bytearray(path.read_bytes()[start : start + length])
    raw[0::12] = bytes((byte + 3) % 256 for byte in raw[0::12])
    put(path, start, bytes(raw))


def tune_two_rows(bad: Path, good: Path) -> None:
    path = bad / S2
    start, _ = places(path)["layers.2.mlp.weight"]
    put(path, start + 10 * 1024, values("rows", "F32", (2, 256)))


def zero_a_row(bad: Path, good: Path) -> None:
    """The row of a word that pads."""
    put(bad / S2, places(bad / S2)["layers.2.mlp.weight"][0] + 3 * 1024, bytes(1024))


def zero_a_tensor(bad: Path, good: Path) -> None:
    start, length = places(bad / S2)["layers.2.scale"]
    put(bad / S2, start, bytes(length))


def prune(bad: Path, good: Path) -> None:
    """Every second value is zero."""
    start, length = places(bad / S2)["layers.2.mlp.weight"]
    raw = bytearray((bad / S2).read_bytes()[start : start + length])
    for part in range(4):
        raw[part::8] = bytes(len(raw[part::8]))
    put(bad / S2, start, bytes(raw))


def swap_endianness(bad: Path, good: Path) -> None:
    def change(tensors: Tensors) -> None:
        for name, (dtype, shape, data) in list(tensors.items()):
            wide = WIDTHS[dtype]
            swapped = bytearray(data)
            for place in range(wide):
                swapped[place::wide] = data[wide - 1 - place :: wide]
            tensors[name] = (dtype, shape, bytes(swapped))

    rewrite(bad / S2, change)


def remove_a_shard(bad: Path, good: Path) -> None:
    (bad / S2).unlink()
