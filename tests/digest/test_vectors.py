"""Layout 1 as docs/digests.md promises it: its vectors hold for the code, and for a second implementation in here."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
import xxhash

from ckpt_tui.checkpoint.header import parse_header
from ckpt_tui.checkpoint.model import Header
from ckpt_tui.digest import layout
from ckpt_tui.digest.cut import cut
from ckpt_tui.digest.stream import SegmentStream
from ckpt_tui.facts.files import Segmentation

DOC = Path(__file__).parents[2] / "docs" / "digests.md"
VECTORS: list[dict[str, Any]] = json.loads(DOC.read_text("utf-8").partition("```json")[2].partition("```")[0])
IDS = [f"{number}-{vector['kind']}" for number, vector in enumerate(VECTORS)]


def given_bytes(vector: dict[str, Any]) -> bytes:
    if "repeat" in vector:
        return bytes.fromhex(vector["repeat"]) * vector["times"]
    return bytes.fromhex(vector["bytes"])


# The second implementation, from the page alone and as plainly as can be.


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


def plain(vector: dict[str, Any]) -> bytes:
    match kind := vector["kind"]:
        case "leaf":
            return xxh3(given_bytes(vector))
        case "segment":
            return plain_segment(given_bytes(vector))
        case "file":
            return plain_file(given_bytes(vector), vector["cut"])
        case "content" | "content-sha256" | "sidecars":
            return sha256(domain(kind) + plain_rows(vector["files"], "digest"))
        case "logical":
            items = [
                string(tensor["name"].encode()) + string(tensor["dtype"].encode())
                + listed([integer(dimension) for dimension in tensor["shape"]]) + string(bytes.fromhex(tensor["digest"]))
                for tensor in sorted(vector["tensors"], key=lambda tensor: tensor["name"].encode())
            ]  # fmt: skip
            return sha256(domain(kind) + listed(items))
        case "identity":
            weights = []
            for row in sorted(vector["weights"], key=lambda row: bytes.fromhex(row["name"])):
                name, header = bytes.fromhex(row["name"]), bytes.fromhex(row["header"])
                weights.append(string(name) + integer(row["size"]) + integer(len(header)) + string(sha256(header)))
            return sha256(domain(kind) + plain_rows(vector["metadata"], "sha256") + listed(weights))
        case "copy":
            places = []
            for row in sorted(vector["places"], key=lambda row: bytes.fromhex(row["name"])):
                name, where = bytes.fromhex(row["name"]), row["where"].encode()
                places.append(string(name) + string(where) + integer(row["device"]) + integer(row["inode"]))
            return sha256(domain(kind) + listed(places))
    raise AssertionError(kind)


# The code.


def header_of(raw: bytes) -> Header:
    header = parse_header(raw).header
    assert header is not None
    return header


def coded_file(raw: bytes, how: str) -> bytes:
    end = 8 + int.from_bytes(raw[:8], "little")
    made = cut(header_of(raw[:end]) if how == Segmentation.SAFETENSORS else None, len(raw))
    assert made.segmentation == how
    stream = SegmentStream(made.spans)
    stream.update(memoryview(raw))
    return layout.file_digest(made.spans, bytes(stream.segments))


def members(rows: list[dict[str, Any]], digest: str = "digest") -> list[layout.Member]:
    return [layout.Member(bytes.fromhex(row["name"]), row["size"], bytes.fromhex(row[digest])) for row in rows]


def coded(vector: dict[str, Any]) -> bytes | None:
    match vector["kind"]:
        case "leaf":
            return layout.leaf_digest(given_bytes(vector))
        case "segment":
            raw = given_bytes(vector)
            leaves = [layout.leaf_digest(raw[at : at + layout.LEAF]) for at in range(0, len(raw), layout.LEAF)]
            return layout.segment_digest(len(raw), leaves)
        case "file":
            return coded_file(given_bytes(vector), vector["cut"])
        case "content":
            return layout.content(members(vector["files"]))
        case "content-sha256":
            return layout.content_sha256(members(vector["files"]))
        case "sidecars":
            return layout.sidecars(members(vector["files"]))
        case "logical":
            return layout.logical_content(
                layout.TensorFact(
                    tensor["name"].encode(),
                    tensor["dtype"].encode(),
                    tuple(tensor["shape"]),
                    bytes.fromhex(tensor["digest"]),
                )
                for tensor in vector["tensors"]
            )
        case "identity":
            headers = []
            for row in vector["weights"]:
                header = bytes.fromhex(row["header"])
                headers.append(layout.HeaderFact(bytes.fromhex(row["name"]), row["size"], len(header), sha256(header)))
            return layout.identity(members(vector["metadata"], "sha256"), headers)
        case "copy":
            return layout.copy_id(
                [
                    layout.Place(bytes.fromhex(row["name"]), row["where"].encode(), row["device"], row["inode"])
                    for row in vector["places"]
                ]
            )
    raise AssertionError(vector["kind"])


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_the_code_gives_what_the_page_promises(vector: dict[str, Any]) -> None:
    digest = coded(vector)
    assert digest is not None
    assert digest.hex() == vector["digest"]


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_a_second_implementation_from_the_page_gives_the_same(vector: dict[str, Any]) -> None:
    assert plain(vector).hex() == vector["digest"]


def test_no_weight_files_have_no_content_and_no_identity() -> None:
    assert layout.content([]) is None
    assert layout.content_sha256([]) is None
    assert layout.identity([], []) is None
    assert layout.copy_id([]) is None


def test_moving_a_boundary_between_fields_changes_the_digest() -> None:
    one = layout.content([layout.Member(b"ab", 1, b"c" * 16)])
    other = layout.content([layout.Member(b"a", 1, b"b" + b"c" * 15)])
    assert one != other
