"""Numbers for people: one unit a column, fixed widths, ages instead of clock times."""

from __future__ import annotations

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_UNITS = (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))


def size_unit(largest: int) -> tuple[str, int]:
    """The unit that a column takes whose largest value is this: its name, and its bytes."""
    return next(((name, unit) for name, unit in _UNITS if largest >= unit), ("B", 1))


def in_unit(size: float, unit: tuple[str, int]) -> str:
    """A size in a column's unit, without the unit: `5.1`; whole numbers for bytes."""
    return f"{size:,.0f}" if unit[1] == 1 else f"{size / unit[1]:,.1f}"


def size(value: float) -> str:
    """A size on its own: `190.4 GiB`, `12,345 B`."""
    unit = size_unit(int(abs(value)))
    return f"{in_unit(value, unit)} {unit[0]}"


Unit = tuple[str, int]


def rate_unit(peak: float) -> Unit:
    """The unit that a column of rates takes whose highest value was this."""
    return ("GiB", GIB) if peak >= 0.1 * GIB else ("MiB", MIB)


def rate_in(value: float, unit: Unit) -> str:
    """A rate in its column's unit, without the unit."""
    return f"{value / unit[1]:.2f}" if unit[1] == GIB else f"{value / unit[1]:.1f}"


def rate(value: float) -> str:
    """Bytes a second: `0.66 GiB/s`, `84.0 MiB/s`."""
    unit = rate_unit(value)
    return f"{rate_in(value, unit)} {unit[0]}/s"


def duration(seconds: float) -> str:
    """A time span in its two largest units: `0.4 s`, `33 s`, `1 m 49 s`, `2 h 05 m`, `3 d 4 h`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} m {total % 60:02} s"
    if total < 86400:
        return f"{total // 3600} h {total % 3600 // 60:02} m"
    return f"{total // 86400} d {total % 86400 // 3600} h"


def stopwatch(seconds: float) -> str:
    """A place in a time span, to the second: `0:42`, `1:05:00`."""
    total = int(max(seconds, 0.0))
    hours = f"{total // 3600}:" if total >= 3600 else ""
    return f"{hours}{total % 3600 // 60:0{2 if hours else 1}}:{total % 60:02}"


_AGES = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def age(seconds: float) -> str:
    """How long ago: `now`, `33 s`, `12 m`, `5 h`, `3 d`."""
    if seconds < 1:
        return "now"
    unit, length = next(one for one in _AGES if seconds >= one[1])
    return f"{int(seconds // length)} {unit}"


def age_shown(seconds: float) -> int:
    """The seconds that `age` tells of: ages that read the same have the same."""
    length = next((length for _, length in _AGES if seconds >= length), None)
    return 0 if length is None else int(seconds // length) * length


def percent(part: float, whole: float) -> str:
    """A share, never rounded up to 100 % before all is done: `62 %`."""
    if whole <= 0:
        return "100 %"
    return f"{100 if part >= whole else min(int(100 * part / whole), 99)} %"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 shard`, `1,200 shards`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
