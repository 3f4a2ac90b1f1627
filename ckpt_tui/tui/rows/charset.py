"""What lines, bars and marks are drawn with: box glyphs, or plain ASCII for terminals without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .spans import Line, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...present.glyphs import Mark


@dataclass(frozen=True, slots=True)
class Charset:
    """One way of drawing. `bar` is (done, head, rest); `blocks` are (cached, read, to go); `sparks` rise."""

    ascii_only: bool
    bar: tuple[str, str, str]
    blocks: tuple[str, str, str]
    sparks: str
    rule: str
    rule_active: str
    ellipsis: str
    dot: str
    dash: str
    right: str
    down: str
    cross: str
    check: str

    def mark(self, mark: Mark) -> str:
        """A mark's character."""
        return mark.char(ascii_only=self.ascii_only)

    def name(self, text: str) -> str:
        """A name that this charset can show in full."""
        return text.encode("ascii", "backslashreplace").decode() if self.ascii_only else text

    def progress(self, part: float, whole: float, size: int, tone: str = "active") -> Line:
        """A thin bar of `size` cells; the rest is told by its glyph too, not by colour alone."""
        done, head, rest = self.bar
        share = min(max(part / whole, 0.0), 1.0) if whole > 0 else 1.0
        halves = int(share * size * 2)
        full = "".join((done * (halves // 2), head * (halves % 2)))
        return line((full, tone), (rest * (size - len(full)), "faint"))

    def spark(self, values: Sequence[float], size: int) -> str:
        """The last `size` values as little columns, the newest at the right; an empty place where there is none."""
        recent = list(values)[-size:]
        top = max(recent, default=0.0)
        last = len(self.sparks) - 1
        drawn = "".join(self.sparks[round(value / top * last)] if top > 0 else self.sparks[0] for value in recent)
        return drawn.rjust(size)


UNICODE = Charset(
    ascii_only=False, bar=("━", "╸", "─"), blocks=("▄", "▄", "▄"), sparks="▁▂▃▄▅▆▇█", rule="─", rule_active="━",
    ellipsis="…", dot="·", dash="–", right="▸", down="▾", cross="✗", check="✓",
)  # fmt: skip
ASCII = Charset(
    ascii_only=True, bar=("=", ">", "-"), blocks=("#", "=", "."), sparks="_.:-=+*#", rule="-", rule_active="=",
    ellipsis="..", dot=".", dash="-", right=">", down="v", cross="x", check="v",
)  # fmt: skip
#: Without colours the portions of a bar are told apart by their shades.
SHADED = replace(UNICODE, blocks=("█", "▓", "░"))


def charset(*, ascii_only: bool, plain: bool = False) -> Charset:
    """The charset of a terminal; `plain` has no colours."""
    return ASCII if ascii_only else SHADED if plain else UNICODE
