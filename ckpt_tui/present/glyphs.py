"""One glyph, one word and one plain-ASCII form for everything that has a state."""

from __future__ import annotations

from typing import NamedTuple

from ..facts.files import State
from ..facts.status import Cell, Phase


class Mark(NamedTuple):
    """How a state is shown: a glyph of width one, its ASCII form, a word, and a tone (`present` knows no colours)."""

    glyph: str
    ascii: str
    word: str
    tone: str  # "bad", "warn", "good", "active", "dim", "plain"

    def char(self, *, ascii_only: bool) -> str:
        """The glyph, or its ASCII form."""
        return self.ascii if ascii_only else self.glyph


CELLS = {
    Cell.WAITING: Mark("·", ".", "waiting", "plain"),
    Cell.READING: Mark("▸", ">", "reading", "active"),
    Cell.CACHED: Mark("=", "=", "cached", "dim"),
    Cell.READ: Mark("✓", "v", "read", "dim"),
    Cell.SHARED: Mark("⇄", "s", "read by another process", "dim"),
    Cell.BAD: Mark("✗", "x", "bad", "bad"),
    Cell.UNREADABLE: Mark("?", "?", "unreadable", "warn"),
}

PHASES = {
    Phase.STARTING: Mark("·", ".", "starting", "plain"),
    Phase.MEETING: Mark("·", ".", "meeting", "plain"),
    Phase.IDENTITY: Mark("▸", ">", "identity", "active"),
    Phase.CONTENT: Mark("▸", ">", "content", "active"),
    Phase.COMPARING: Mark("▸", ">", "comparing", "active"),
    Phase.DONE: Mark("✓", "v", "done", "good"),
    Phase.FAILED: Mark("?", "?", "failed", "warn"),
    Phase.LOST: Mark("?", "?", "lost", "warn"),
    Phase.ABSENT: Mark("?", "?", "absent", "warn"),
}

#: Whether a file keeps the hashes that are on record of it; None where none was checked.
RECORDED = {
    True: Mark("✓", "v", "kept", "dim"),
    False: Mark("✗", "x", "broken", "bad"),
    None: Mark("–", "-", "none", "dim"),
}


def state_mark(state: State) -> Mark:
    """The mark of a file's state."""
    if state is State.GOOD:
        return Mark("✓", "v", "good", "dim")
    if state in {State.UNREADABLE, State.CHANGED}:
        return Mark("?", "?", state.value, "warn")
    if state is State.SUSPECT:
        return Mark("!", "!", state.value, "warn")
    if state in {State.EXTRA, State.IGNORED}:
        return Mark("–", "-", state.value, "dim")
    return Mark("✗", "x", state.value, "bad")
