"""Our header parser against `safetensors` itself, over headers that are right, nearly right and hostile."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from ckpt_tui.checkpoint.geometry import DTYPE_BITS, fit
from ckpt_tui.checkpoint.header import HeaderError, Parsed, header_length, parse_header
from ckpt_tui.facts.files import State
from ckpt_tui.present.safe import escape
from tests.support.checkpoints import WIDTHS, safetensors_bytes, tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The ways in which we are stricter than the reference, on purpose, by the words that say so.
STRICTER = ("tensor name appears twice", "is no object", "nested deeper")
#: The one way in which we are more lenient.
LENIENT = "unknown dtype"


def file_of(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + payload


def ours(blob: bytes) -> tuple[State, Parsed | None, str]:
    """The state of a file with these bytes, its parsed header and the words for what is wrong."""
    try:
        length = header_length(blob[:8], len(blob))
        parsed = parse_header(blob[: 8 + length])
    except HeaderError as error:
        return State.BAD_HEADER, None, str(error)
    if parsed.header is None:
        return State.BAD_LAYOUT, parsed, " / ".join(problem.message for problem in parsed.problems)
    state, words = fit(parsed.header, len(blob))
    return state, parsed, words or ""


def theirs(blob: bytes) -> list[tuple[str, dict[str, Any]]] | None:
    try:
        return deserialize(blob)
    except SafetensorError:
        return None


def compare(blob: bytes) -> None:
    """What the reference rejects is never good here; what it accepts is good, or refused for a named reason."""
    state, parsed, words = ours(blob)
    reference = theirs(blob)
    if reference is None:
        lenient = parsed is not None and any(LENIENT in warning.message for warning in parsed.warnings)
        assert state is not State.GOOD or lenient, "the reference rejects what we call good"
    elif state is not State.GOOD:
        assert any(reason in words for reason in STRICTER), words
    else:
        assert parsed is not None
        assert parsed.header is not None
        tensors = {entry.name: entry for entry in parsed.header.tensors}
        assert len(tensors) == len(reference)
        for name, content in reference:
            entry = tensors[escape(name)]
            assert entry.shape == tuple(content["shape"])
            assert blob[entry.offset : entry.offset + entry.length] == bytes(content["data"])


names = st.text(max_size=12) | st.sampled_from(
    ["w", "dtype", "shape", "data_offsets", "__metadata__", 'q"uote', "b\\s"]
)
small = st.integers(0, 4)
odd_numbers = st.sampled_from([-1, -0.0, 0.5, 1e400, 2**63, 2**64, 2**64 - 1, 10**30, True, None, "1"])
dtypes = st.sampled_from([*DTYPE_BITS, "f32", "F3_E1M1", ""])


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[tuple[str, Any]], int]:
    """Entries that follow one another as they should, as pairs so that names may repeat; and the payload's length."""
    pairs: list[tuple[str, Any]] = []
    position = 0
    for name in draw(st.lists(names, max_size=4)):
        dtype, shape = draw(dtypes), draw(st.lists(small, max_size=3))
        bits = DTYPE_BITS.get(dtype, 8)
        for dim in shape:
            bits *= dim
        length = -(-bits // 8)
        pairs.append((name, {"dtype": dtype, "shape": shape, "data_offsets": [position, position + length]}))
        position += length
    return pairs, position


def write(pairs: Sequence[tuple[str, Any]], *, ascii_only: bool) -> bytes:
    """JSON of pairs in their order, repeated keys included."""

    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    body = ", ".join(f"{dump(key)}: {dump(value)}" for key, value in pairs)
    return f"{{{body}}}".encode("utf-8", "surrogatepass")


@given(layouts(), st.booleans(), st.integers(-2, 2))
def test_headers_as_writers_make_them(made: tuple[list[tuple[str, Any]], int], ascii_only: bool, extra: int) -> None:
    pairs, length = made
    compare(file_of(write(pairs, ascii_only=ascii_only), bytes(max(length + extra, 0))))


@given(layouts(), st.data())
def test_headers_with_one_value_replaced(made: tuple[list[tuple[str, Any]], int], data: st.DataObject) -> None:
    pairs, length = made
    if pairs:
        _, entry = data.draw(st.sampled_from(pairs))
        field = data.draw(st.sampled_from([*entry, "extra"]))
        junk = odd_numbers | dtypes | st.lists(odd_numbers | small, max_size=3) | st.dictionaries(names, small)
        if data.draw(st.booleans()) and isinstance(entry.get(field), list) and entry[field]:
            entry[field][data.draw(st.integers(0, len(entry[field]) - 1))] = data.draw(odd_numbers | small)
        else:
            entry[field] = data.draw(junk)
    compare(file_of(write(pairs, ascii_only=True), bytes(length)))


@given(layouts(), st.binary(max_size=3), st.data())
@settings(max_examples=300)
def test_headers_with_some_bytes_replaced(
    made: tuple[list[tuple[str, Any]], int], patch: bytes, data: st.DataObject
) -> None:
    pairs, length = made
    header = bytearray(write(pairs, ascii_only=False))
    place = data.draw(st.integers(0, len(header)))
    header[place : place + data.draw(st.integers(0, 3))] = patch
    compare(file_of(bytes(header), bytes(length)))


@given(st.binary(max_size=64))
@example(b"")
@example(struct.pack("<Q", 2**63) + b"{}")
@example(struct.pack("<Q", 2) + b"{}" + b"\0")
def test_any_bytes_at_all(blob: bytes) -> None:
    compare(blob)


@given(st.dictionaries(names.filter(lambda name: name != "__metadata__"), st.sampled_from(list(WIDTHS)), max_size=5))
def test_what_a_plain_writer_makes_is_good(wanted: dict[str, str]) -> None:
    blob = safetensors_bytes({name: tensor(name, (3, 2), dtype) for name, dtype in wanted.items()}, {"format": "pt"})
    state, parsed, _ = ours(blob)
    assert state is State.GOOD
    assert parsed is not None
    assert parsed.header is not None
    assert parsed.header.metadata == {"format": "pt"}
    assert parsed.header.needed == len(blob)
    compare(blob)


ENTRY = b'{"dtype":"F32","shape":[4],"data_offsets":[0,16]}'


@pytest.mark.parametrize(
    ("header", "payload", "state", "words"),
    [
        (b'{"w":' + ENTRY + b',"w":' + ENTRY + b"}", 16, State.BAD_LAYOUT, "tensor name appears twice: w"),
        (b'{"w":' + ENTRY + b',"\\u0077":' + ENTRY + b"}", 16, State.BAD_LAYOUT, "tensor name appears twice: w"),
        (b'{"w":' + ENTRY[:-1] + b',"dtype":"I32"}}', 16, State.BAD_LAYOUT, "w has two dtype"),
        (b'{"w":' + ENTRY[:-1] + b',"x":' + b"[" * 90_000 + b"]" * 90_000 + b"}}", 16, State.BAD_HEADER, "nested"),
        (b'{"w":' + ENTRY[:-1] + b',"x":' + b"[" * 70 + b"]" * 70 + b"}}", 16, State.BAD_HEADER, "nested deeper"),
        (b'{"w":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}', 0, State.BAD_LAYOUT, "whole numbers"),
        (b'{"\\ud800":' + ENTRY + b"}", 16, State.BAD_HEADER, "half a surrogate pair"),
        (b'{"__metadata__":{"a":1}}', 0, State.BAD_HEADER, "__metadata__"),
        (b'{"w":NaN}', 0, State.BAD_HEADER, "NaN"),
        (b"[]", 0, State.BAD_HEADER, "no JSON object"),
        (b'{"w":' + ENTRY + b"}", 15, State.TRUNCATED, "1 byte short"),
        (b'{"w":' + ENTRY + b"}", 17, State.OVERLONG, "1 byte after the last tensor"),
        (b'{"w":{"dtype":"F32","shape":[1' + b"0" * 5000 + b'],"data_offsets":[0,16]}}', 16, State.BAD_HEADER, "range"),
        (b'{"w":{"dtype":"F32","shape":[1' + b"0" * 30 + b'],"data_offsets":[0,16]}}', 16, State.BAD_LAYOUT, "shape"),
        (b'{"w":' + ENTRY[:-1] + b',"x":1' + b"0" * 5000 + b"}}", 16, State.BAD_HEADER, "out of range"),
        (b'{"w":' + ENTRY[:-1] + b',"note":"kept"}}', 16, State.GOOD, ""),
        (b'  {"w":' + ENTRY + b"}\n ", 16, State.GOOD, ""),
        (b"{}", 0, State.GOOD, ""),
    ],
)
def test_odd_headers_end_in_the_state_that_names_them(header: bytes, payload: int, state: State, words: str) -> None:
    found, _, said = ours(file_of(header, bytes(payload)))
    assert found is state
    assert words in said


def test_a_shape_of_a_million_huge_dimensions_is_refused_at_once() -> None:
    shape = ",".join(["18446744073709551615"] * 200_000)
    header = f'{{"w":{{"dtype":"F32","shape":[{shape}],"data_offsets":[0,4]}}}}'
    state, _, words = ours(file_of(header.encode(), bytes(4)))
    assert state is State.BAD_LAYOUT
    assert "larger than 64 bits" in words
    assert len(words) < 1000
