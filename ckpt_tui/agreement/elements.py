"""The dtypes of safetensors: how wide an element is, and what its bits are worth. Pure, and without numpy.

Bytes are little-endian, as the format wants them. A dtype that is not known here has elements of one byte without a
value of its own. Elements of less than a byte follow one another from the least significant bit on: so torch packs its
`float4_e2m1fn_x2`; of 6-bit elements the format says nothing, and the same is taken.
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from array import array
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Decoder = Callable[[bytes], Sequence[float]]

_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "C64": 8, "F64": 8, "I64": 8, "U64": 8,
}  # fmt: skip
#: Bits of an element that is less than a byte.
_PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
_INTEGERS = {"U8": "B", "I8": "b", "U16": "H", "I16": "h", "U32": "I", "I32": "i", "U64": "Q", "I64": "q"}


def width(dtype: str | None) -> int | None:
    """Bytes of one element, at least one: smaller ones are `unpacked`. None where the dtype is not known."""
    return 1 if dtype in _PACKED else _BYTES.get(dtype or "")


def packed(dtype: str | None) -> int | None:
    """Bits of one element where that is less than a byte; None for every other dtype."""
    return _PACKED.get(dtype or "")


def unpacked(raw: bytes, bits: int) -> bytes:
    """One byte an element, for elements of 4 or 6 bits; `raw` begins at an element, and what is left over is zeros."""
    group = math.lcm(bits, 8) // 8
    raw += bytes(-len(raw) % group)
    columns = [raw[place::group] for place in range(group)]
    elements = bytearray(len(raw) * 8 // bits)
    each = 8 * group // bits
    for place in range(each):
        elements[place::each] = _joined(columns, place * bits, bits)
    return bytes(elements)


def _joined(columns: Sequence[bytes], start: int, bits: int) -> bytes:
    """The elements that begin at bit `start` of each group, whose bytes are given as columns."""
    parts = []
    for place in range(start // 8, (start + bits - 1) // 8 + 1):
        shift = start - 8 * place
        moved = bytes((byte >> shift if shift > 0 else byte << -shift) & ((1 << bits) - 1) for byte in range(256))
        parts.append(columns[place].translate(moved))
    if len(parts) == 1:
        return parts[0]
    return reduce(operator.or_, (int.from_bytes(part, "little") for part in parts)).to_bytes(len(parts[0]), "little")


def floats(dtype: str | None) -> Decoder | None:
    """What decodes a run of elements with a point; None for every other dtype."""
    return _FLOATS.get(dtype or "")


def shown(dtype: str | None, raw: bytes) -> str:
    """One element's value as text; '' where the dtype says nothing of it."""
    decode = floats(dtype)
    if decode is not None:
        return _short(dtype, decode(raw)[0])
    if dtype in _INTEGERS:
        return str(struct.unpack(f"<{_INTEGERS[dtype]}", raw)[0])
    if dtype == "BOOL":
        return {0: "false", 1: "true"}.get(raw[0], f"{raw[0]} (neither false nor true)")
    if dtype == "C64":
        real, imaginary = struct.unpack("<2f", raw)
        return f"{_short('F32', real)} and {_short('F32', imaginary)}i"
    return ""


#: Digits that tell two values of a dtype apart, but not more.
_DIGITS = {"F64": 17, "F32": 9, "F16": 5, "BF16": 4}


def _short(dtype: str | None, value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return f"{value:.{_DIGITS.get(dtype or '', 4)}g}"


def _f32(raw: bytes) -> Sequence[float]:
    values = array("f")
    values.frombytes(raw)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _f64(raw: bytes) -> Sequence[float]:
    values = array("d")
    values.frombytes(raw)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _f16(raw: bytes) -> Sequence[float]:
    return struct.unpack(f"<{len(raw) // 2}e", raw)


def _bf16(raw: bytes) -> Sequence[float]:
    """A BF16 is the upper half of an F32."""
    wide = bytearray(len(raw) * 2)
    wide[2::4], wide[3::4] = raw[0::2], raw[1::2]
    return _f32(bytes(wide))


def _small(exponent_bits: int, mantissa_bits: int, bias: int, special: Callable[[int], float | None]) -> list[float]:
    """All values of a format of a byte or less; `special` names those that are no numbers."""
    values = []
    sign = 1 << (exponent_bits + mantissa_bits)
    for bits in range(2 * sign):
        named = special(bits)
        if named is None:
            mantissa = bits & ((1 << mantissa_bits) - 1)
            exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
            fraction = mantissa / (1 << mantissa_bits)
            # An exponent of zero is for the subnormals, which have no leading one.
            named = math.ldexp(fraction, 1 - bias) if exponent == 0 else math.ldexp(1 + fraction, exponent - bias)
            named = math.copysign(named, -1.0 if bits & sign else 1.0)
        values.append(named)
    return values


def _e4m3(bits: int) -> float | None:
    return math.nan if bits & 0x7F == 0x7F else None


def _e5m2(bits: int) -> float | None:
    if bits & 0x7C != 0x7C:
        return None
    return math.nan if bits & 3 else math.copysign(math.inf, -1.0 if bits & 0x80 else 1.0)


def _fnuz(bits: int) -> float | None:
    return math.nan if bits == 0x80 else None


def _finite(_bits: int) -> None:
    """Every pattern is a number."""


_TABLES = {
    "F4": _small(2, 1, 1, _finite),
    "F6_E2M3": _small(2, 3, 1, _finite),
    "F6_E3M2": _small(3, 2, 3, _finite),
    "F8_E4M3": _small(4, 3, 7, _e4m3),
    "F8_E5M2": _small(5, 2, 15, _e5m2),
    "F8_E4M3FNUZ": _small(4, 3, 8, _fnuz),
    "F8_E5M2FNUZ": _small(5, 2, 16, _fnuz),
    "F8_E8M0": [math.nan if bits == 0xFF else math.ldexp(1.0, bits - 127) for bits in range(256)],
}


def _table(dtype: str) -> Decoder:
    values = _TABLES[dtype]
    return lambda raw: [values[byte] for byte in raw]


_FLOATS: dict[str, Decoder] = {
    "F64": _f64,
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    **{dtype: _table(dtype) for dtype in _TABLES},
}
