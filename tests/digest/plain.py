"""A second implementation of layout 1, from docs/digests.md alone and as plainly as can be."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import xxhash


def integer(value: int) -> bytes:
    return struct.pack("<Q", value)


def string(raw: bytes) -> bytes:
    return integer(len(raw)) + raw


def listed(items: list[bytes]) -> bytes:
    return integer(len(items)) + b"".join(items)


def domain(kind: str) -> bytes:
    return string(b"ckpt-tui/1/" + kind.encode())


def xxh3(raw: bytes) -> bytes:
    return xxhash.xxh3_128(raw, seed=0).digest()


def sha256(raw: bytes) -> bytes:
    return hashlib.sha256(raw).digest()


def plain_segment(raw: bytes) -> bytes:
    leaves = [xxh3(raw[at : at + 1048576]) for at in range(0, len(raw), 1048576)]
    return xxh3(domain("segment") + integer(len(raw)) + listed([string(leaf) for leaf in leaves]))


def plain_file(raw: bytes, how: str) -> bytes:
    pieces: list[tuple[int, int, bytes, bytes]] = []
    if how == "safetensors":
        start = 8 + int.from_bytes(raw[:8], "little")
        pieces.append((0, start, b"", b"header"))
        for name, entry in json.loads(raw[8:start]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                pieces.append((start + begin, end - begin, name.encode(), b"tensor"))
    else:
        pieces += [(at, len(raw[at : at + 16777216]), b"", b"extent") for at in range(0, len(raw), 16777216)]
    return xxh3(
        domain("file")
        + listed(
            [
                string(kind) + string(name) + integer(offset) + integer(length)
                + string(plain_segment(raw[offset : offset + length]))
                for offset, length, name, kind in sorted(pieces)
            ]
        )
    )  # fmt: skip


def plain_rows(rows: list[dict[str, Any]], digest: str) -> bytes:
    items = sorted((bytes.fromhex(row["name"]), row["size"], bytes.fromhex(row[digest])) for row in rows)
    return listed([string(name) + integer(size) + string(value) for name, size, value in items])
