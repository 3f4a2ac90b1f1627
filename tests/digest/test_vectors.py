"""Layout 1 as docs/digests.md promises it: its vectors hold for the code, and for a second implementation in here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckpt_tui.checkpoint.header import parse_header
from ckpt_tui.checkpoint.model import Header
from ckpt_tui.digest import layout
from ckpt_tui.digest.cut import cut
from ckpt_tui.facts.files import Segmentation
from ckpt_tui.present.safe import escape
from tests.digest.plain import domain, integer, listed, plain_file, plain_rows, plain_segment, sha256, string, xxh3

DOC = Path(__file__).parents[2] / "docs" / "digests.md"
VECTORS: list[dict[str, Any]] = json.loads(DOC.read_text("utf-8").partition("```json")[2].partition("```")[0])
IDS = [f"{number}-{vector['kind']}" for number, vector in enumerate(VECTORS)]


def given_bytes(vector: dict[str, Any]) -> bytes:
    if "repeat" in vector:
        return bytes.fromhex(vector["repeat"]) * vector["times"]
    return bytes.fromhex(vector["bytes"])


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
                + listed([integer(dimension) for dimension in tensor["shape"]])
                + string(bytes.fromhex(tensor["digest"]))
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
    segments = [layout.segment_of(raw[span.offset : span.offset + span.length]) for span in made.spans]
    return layout.file_digest(made.spans, b"".join(segments))


def members(rows: list[dict[str, Any]], digest: str = "digest") -> list[layout.Member]:
    return [layout.Member(bytes.fromhex(row["name"]), row["size"], bytes.fromhex(row[digest])) for row in rows]


def coded(vector: dict[str, Any]) -> bytes | None:  # noqa: PLR0911 - one for each kind
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
            tensors = vector["tensors"]
            return layout.logical_content(
                layout.TensorFacts(
                    [escape(tensor["name"]) for tensor in tensors],
                    [tensor["dtype"] for tensor in tensors],
                    [tuple(tensor["shape"]) for tensor in tensors],
                    b"".join(bytes.fromhex(tensor["digest"]) for tensor in tensors),
                )
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
