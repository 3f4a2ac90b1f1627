"""What bits are worth, held against torch, which has every dtype of the format but the smallest."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.agreement.elements import floats, packed, shown, unpacked, width
from ckpt_tui.checkpoint.geometry import DTYPE_BITS
from tests.support.checkpoints import noise

TORCH = {
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F8_E8M0": torch.float8_e8m0fnu,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


def same(one: float, other: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other and math.copysign(1, one) == math.copysign(1, other)


@pytest.mark.parametrize("dtype", sorted(TORCH))
def test_floats_are_what_torch_makes_of_the_same_bits(dtype: str) -> None:
    wide = width(dtype)
    assert wide is not None
    if wide < 3:
        raw = b"".join(bits.to_bytes(wide, "little") for bits in range(1 << (8 * wide)))
    else:
        raw = noise(dtype, 8 * 4096) + struct.pack("<4d", 0.0, -0.0, math.inf, math.nan)
    expected = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(TORCH[dtype]).to(torch.float64).tolist()
    decode = floats(dtype)
    assert decode is not None
    found = decode(raw)
    assert len(found) == len(expected)
    assert all(map(same, found, expected))


#: Every value of the small formats, as the OCP Microscaling specification lists them (its tables 2, 3 and 5).
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M3 = (
    [place / 8 for place in range(16)] + [2 + place / 4 for place in range(8)] + [4 + place / 2 for place in range(8)]
)
E3M2 = [mantissa / 16 for mantissa in range(4)] + [
    2.0 ** (exponent - 3) * (1 + mantissa / 4) for exponent in range(1, 8) for mantissa in range(4)
]


@pytest.mark.parametrize(("dtype", "values"), [("F4", E2M1), ("F6_E2M3", E2M3), ("F6_E3M2", E3M2)])
def test_formats_of_less_than_a_byte_have_the_values_of_their_specification(dtype: str, values: list[float]) -> None:
    decode = floats(dtype)
    assert decode is not None
    found = decode(bytes(range(2 * len(values))))
    assert all(map(same, found, [*values, *(-value for value in values)]))


@given(st.sampled_from([4, 6]), st.binary(max_size=40))
def test_small_elements_lie_one_behind_the_other_from_the_least_bit_on(bits: int, raw: bytes) -> None:
    number = int.from_bytes(raw, "little")
    found = unpacked(raw, bits)
    assert len(found) * bits >= len(raw) * 8
    assert list(found) == [number >> (place * bits) & ((1 << bits) - 1) for place in range(len(found))]


def test_every_dtype_of_the_format_is_known_and_no_other() -> None:
    assert {dtype: packed(dtype) or 8 * (width(dtype) or 0) for dtype in DTYPE_BITS} == DTYPE_BITS
    assert width("Q4_K") is None
    assert width(None) is None


@pytest.mark.parametrize(
    ("dtype", "raw", "text"),
    [
        ("BF16", b"\x4a\x3c", "0.01233"),
        ("F32", struct.pack("<f", -0.0), "-0"),
        ("F32", struct.pack("<f", 1 / 3), "0.333333343"),
        ("F64", struct.pack("<d", math.nan), "nan"),
        ("F16", struct.pack("<e", math.inf), "inf"),
        ("I64", struct.pack("<q", -5), "-5"),
        ("U8", b"\xff", "255"),
        ("BOOL", b"\x01", "true"),
        ("BOOL", b"\x07", "7 (neither false nor true)"),
        ("C64", struct.pack("<2f", 1.5, -2.0), "1.5 and -2i"),
        ("F4", b"\x0b", "-1.5"),
        (None, b"\x12", ""),
    ],
)
def test_one_value_reads_as_people_write_it(dtype: str | None, raw: bytes, text: str) -> None:
    assert shown(dtype, raw) == text


def test_two_neighbouring_values_never_read_alike() -> None:
    for dtype in ("BF16", "F16"):
        texts = [shown(dtype, bits.to_bytes(2, "little")) for bits in range(1 << 16)]
        numbers = [text for text in texts if text != "nan"]
        assert len(set(numbers)) == len(numbers), dtype
