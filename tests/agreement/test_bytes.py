"""Two sides' bytes, held against an oracle that walks over them one by one."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckpt_tui.agreement.bytes import RUNS_LISTED, VALUES_LOOKED_AT, Comparison
from ckpt_tui.agreement.elements import packed, width
from ckpt_tui.facts.drill import GAP, SideDifference
from tests.support.checkpoints import noise

DTYPES = ["F32", "BF16", "F8_E4M3", "I64", "U8", "C64", "F4", "F6_E2M3", None]


def compared(
    one: bytes, other: bytes, dtype: str | None = None, shape: tuple[int, ...] = (), *, piece: int = 0, offset: int = 0
) -> SideDifference:
    comparison = Comparison("B", offset, dtype, shape)
    step = piece or max(len(one), 1)
    for at in range(0, len(one), step):
        comparison.add(at, one[at : at + step], other[at : at + step])
    return comparison.result()


@st.composite
def sides(draw: st.DrawFn) -> tuple[bytes, bytes, str | None, int]:
    """Two byte strings that differ in some places, a dtype that they may be read as, and a length of pieces."""
    dtype = draw(st.sampled_from(DTYPES))
    wide = width(dtype) or 1
    number = draw(st.integers(1, 60))
    one = bytearray(draw(st.binary(min_size=number * wide, max_size=number * wide)))
    one += bytes(draw(st.sampled_from([0, 0, 8 * GAP])))
    one += bytes(draw(st.integers(0, 16)) * wide)
    other = bytearray(one)
    for _ in range(draw(st.integers(0, 12))):
        place = draw(st.integers(0, len(one) - 1))
        length = draw(st.integers(1, 12))
        fill = draw(st.sampled_from([b"\0" * length, noise(str(place), length)]))
        other[place : place + length] = fill[: len(other[place : place + length])]
    return bytes(one), bytes(other), dtype, draw(st.integers(1, 40)) * wide


def elements(one: bytes, other: bytes, dtype: str | None) -> set[int]:
    """The numbers of those that differ."""
    bits = packed(dtype) or 8 * (width(dtype) or 1)
    mixed = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return {place // bits for place in range(mixed.bit_length()) if mixed >> place & 1}


@settings(max_examples=400, deadline=None)
@given(sides())
def test_counts_runs_and_the_first_difference_are_the_oracles(made: tuple[bytes, bytes, str | None, int]) -> None:
    one, other, dtype, piece = made
    found = compared(one, other, dtype, piece=piece, offset=1000)
    differing = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    wide = width(dtype)
    assert found.bytes == len(differing)
    assert found.bits == sum((one[place] ^ other[place]).bit_count() for place in differing)
    assert found.compared == len(one)
    assert found.elements == (None if wide is None else len(elements(one, other, dtype)))
    runs: list[list[int]] = []
    for place in differing:
        if runs and place - runs[-1][1] <= GAP:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    assert [(run.offset - 1000, run.length) for run in found.runs] == [(a, b - a + 1) for a, b in runs]
    assert sum(run.bytes for run in found.runs) == found.bytes
    for (start, end), run in zip(runs, found.runs, strict=True):
        for zeros, raw in ((run.zeros, other), (run.reference_zeros, one)):
            assert zeros is None or not any(raw[start : end + 1])
            # Pieces shorter than the gap may hide that a stretch is zeros; leaves are not.
            assert zeros is not None or any(raw[start : end + 1]) or piece < GAP
        if run.zeros is not None:
            begin, until = run.zeros[0] - 1000, run.zeros[1] - 1000
            assert begin <= start <= end < until
            assert not any(other[begin:until])
    assert (found.first is None) == (not differing)
    if found.first is not None:
        assert found.first.offset == 1000 + differing[0]
        assert found.first.element == min(elements(one, other, dtype))


def test_the_first_element_is_told_by_its_place_its_values_and_its_bits() -> None:
    one = bytearray(struct.pack("<12f", *range(12)))
    other = bytearray(one)
    other[4 * 7 + 3] ^= 0x80
    found = compared(bytes(one), bytes(other), "F32", (3, 4), offset=100)
    assert found.first is not None
    assert (found.first.index, found.first.element, found.first.offset) == ((1, 3), 7, 100 + 31)
    assert found.first.bits == found.bit_positions == (31,)
    assert (found.first.reference.value, found.first.other.value) == ("7", "-7")
    assert (found.first.reference.hex, found.first.other.hex) == ("40e00000", "c0e00000")
    assert found.first.reference.around == bytes(one[20:40]).hex()
    assert found.first.around_offset == 120


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
def test_values_are_counted_by_kind_and_their_distance_is_of_finite_pairs(dtype: str) -> None:
    codes = {"F64": "d", "F32": "f", "F16": "e"}

    def raw(values: list[float]) -> bytes:
        if dtype == "BF16":
            return b"".join(struct.pack("<f", value)[2:] for value in values)
        return struct.pack(f"<{len(values)}{codes[dtype]}", *values)

    one = raw([1.0, 2.0, math.nan, math.inf, 0.0, 3.0, 8.0])
    other = raw([1.0, 2.5, 2.0, 1.0, -0.0, math.nan, 9.5])
    values = compared(one, other, dtype, (7,)).values
    assert values is not None
    assert values.elements == 6
    assert (values.reference.nan, values.reference.inf, values.reference.zero) == (1, 1, 1)
    assert (values.other.nan, values.other.inf, values.other.zero) == (1, 0, 1)
    assert values.equal_values == 1
    assert values.max_abs == 1.5
    assert values.mean_abs == pytest.approx((0.5 + 1.5 + 0.0) / 3)


def test_other_payloads_of_nan_are_told_from_other_values() -> None:
    values = compared(bytes.fromhex("0000c07f"), bytes.fromhex("0100c07f"), "F32", (1,)).values
    assert values is not None
    assert (values.nan_payloads, values.equal_values, values.max_abs, values.mean_abs) == (1, 0, None, None)


def test_no_number_leaves_that_json_could_not_hold() -> None:
    one, other = struct.pack("<d", 1.7e308), struct.pack("<d", -1.7e308)
    values = compared(one, other, "F64", (1,)).values
    assert values is not None
    assert (values.max_abs, values.mean_abs) == (None, None)


@pytest.mark.parametrize(("dtype", "wide"), [("F32", 4), ("BF16", 2), ("F64", 8), ("C64", 4)])
def test_an_endianness_swap_is_seen_and_one_more_flip_hides_it(dtype: str, wide: int) -> None:
    one = noise("endian", 512)
    swapped = b"".join(one[at : at + wide][::-1] for at in range(0, len(one), wide))
    assert compared(one, swapped, dtype, (512 // wide,)).byte_swapped
    assert not compared(one, bytes([swapped[0] ^ 1]) + swapped[1:], dtype, (512 // wide,)).byte_swapped


def test_many_stretches_are_counted_and_the_last_one_is_always_there() -> None:
    one = bytes(200 * 2 * GAP)
    other = bytearray(one)
    for place in range(200):
        other[place * 2 * GAP] = 1
    found = compared(one, bytes(other))
    assert (len(found.runs), found.runs_left_out, found.bytes) == (RUNS_LISTED, 200 - RUNS_LISTED, 200)
    assert found.runs[-1].offset == 199 * 2 * GAP


def test_of_very_many_values_the_first_are_looked_at_and_that_is_said() -> None:
    number = VALUES_LOOKED_AT + 100
    found = compared(bytes(number), b"\x38" * number, "F8_E4M3", (number,))
    assert found.values is not None
    assert (found.elements, found.values.elements) == (number, VALUES_LOOKED_AT)
    assert found.values.mean_abs == found.values.max_abs == 1.0


def test_pieces_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        Comparison("B", 0, None, ()).add(0, b"a", b"ab")
