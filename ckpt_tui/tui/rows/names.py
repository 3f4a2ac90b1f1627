"""A column of names drops what all of them share and keeps what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Less than this is not worth a pattern that must be put together again by the reader.
_WORTH = 6


class Fold(NamedTuple):
    """What a column of names shares: `model-` and `-of-00033.safetensors`."""

    prefix: str
    suffix: str

    @property
    def pattern(self) -> str:
        """How the head of the column says it: `model-*-of-00033.safetensors`."""
        return f"{self.prefix}*{self.suffix}" if self.prefix or self.suffix else ""

    def short(self, name: str) -> str:
        """What is left of a name; the whole of one that does not fit the pattern."""
        inner = len(name) - len(self.prefix) - len(self.suffix)
        if inner > 0 and name.startswith(self.prefix) and name.endswith(self.suffix):
            return name[len(self.prefix) : len(self.prefix) + inner]
        return name

    def contains(self, name: str, needle: str) -> bool:
        """Whether a name contains this, not just where all names do."""
        short = self.short(name)
        if len(short) < len(name):
            start, end = len(self.prefix), len(self.prefix) + len(short)
            name = name[max(start - len(needle) + 1, 0) : end + max(len(needle) - 1, 0)]
        return needle.casefold() in name.casefold()


def _in_word(char: str) -> bool:
    # A backslash begins an escape, which must not be torn apart.
    return char.isalnum() or char in "\\_"


def _common(names: Sequence[str]) -> str:
    """The characters with which all begin: so do the first and the last in their order."""
    low, high = min(names), max(names)
    return next((low[:place] for place, char in enumerate(low) if high[place : place + 1] != char), low)


def fold(names: Sequence[str]) -> Fold:
    """The prefix and suffix that all share, cut at the edges of words so that numbers stay whole."""
    if len(names) < 2:
        return Fold("", "")
    prefix = _common(names)
    while prefix and _in_word(prefix[-1]):
        prefix = prefix[:-1]
    rests = [name[len(prefix) :][::-1] for name in names]
    suffix = _common(rests)[::-1]
    while suffix and _in_word(suffix[0]):
        suffix = suffix[1:]
    if any(len(rest) <= len(suffix) for rest in rests) or len(prefix) + len(suffix) < _WORTH:
        return Fold("", "")
    return Fold(prefix, suffix)
