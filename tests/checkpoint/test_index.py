"""Weight maps: read strictly, never guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.checkpoint.index import BadIndex, WeightMap, parse_index, resolve

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(NAMES, NAMES, min_size=1), st.booleans(), st.sampled_from([None, 2]))
def test_what_json_writes_is_read_as_it_is(shards: dict[str, str], ascii_only: bool, indent: int | None) -> None:
    body = {"metadata": {"total_size": 7, "weight_map": "a name"}, "weight_map": shards}
    found = parse_index(json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode())
    assert found == WeightMap(shards, 7)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "line 1, column 1"),
        (b'{"weight_map":\n  {"a": "b",}}', "line 2"),
        (b'{"weight_map":\n  {"a": "b",\n   "c": 2}}', "the shard of c is no string (line 3, column 4)"),
        (b'{"weight_map": {}}', "empty"),
        (b'{"metadata": {}}', "none"),
        (b'{"weight_map": {"a": "b"}, "weight_map": {"a": "c"}}', "two"),
        (b'{"weight_map": ["a"]}', "no object (line 1, column 2)"),
        (b"[]", "an index is an object"),
        (b'{"weight_map": {"a": "\xff"}}', "invalid UTF-8 in line 1"),
        (b"[" * 100_000, "nested too deep"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(raw: bytes, words: str) -> None:
    with pytest.raises(BadIndex) as raised:
        parse_index(raw)
    assert words in str(raised.value)


def test_a_tensor_mapped_to_two_shards_is_kept_as_such() -> None:
    found = parse_index(b'{"weight_map": {"a": "x", "a": "y", "b": "x", "b": "x"}}')
    assert found.shards == {"a": "x", "b": "x"}
    assert [(one.tensor, one.first, one.second) for one in found.twice] == [("a", "x", "y")]


def test_a_byte_order_mark_is_read_over_and_remembered() -> None:
    assert parse_index(b'\xef\xbb\xbf{"weight_map": {"a": "b"}}').bom


@pytest.mark.parametrize(
    ("value", "path"),
    [("a.safetensors", "unet/a.safetensors"), ("./b//a", "unet/b/a"), ("back\\slash", "unet/back\\slash")],
)
def test_values_become_paths_below_the_index(value: str, path: str) -> None:
    assert resolve(WeightMap({"t": value}), "unet").shards == {"t": path}


@pytest.mark.parametrize(("value", "shown"), [("/etc/x", "/etc/x"), ("../x", "unet/../x"), ("a/../b", "unet/a/../b")])
def test_values_that_lead_out_are_refused_by_name(value: str, shown: str) -> None:
    found = resolve(WeightMap({"t": value, "u": "good"}), "unet")
    assert list(found.refused) == [shown]
    assert found.shards == {"u": "unet/good"}


@pytest.mark.parametrize("value", ["", ".", "a/", "nul\0", "half\ud800"])
def test_values_that_can_name_no_file_make_the_index_unusable(value: str) -> None:
    with pytest.raises(BadIndex):
        resolve(WeightMap({"t": value}), "")
