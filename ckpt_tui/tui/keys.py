"""The keys: one list of bindings, from which the help and the palette are made, and what the footer says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from textual.binding import Binding

if TYPE_CHECKING:
    from collections.abc import Iterator

ViewName = Literal["files", "ranks", "mismatch", "cache", "report", "log"]
#: (number at which it leaves, key, word) of a footer's entry.
Hint = tuple[int, str, str]


class Tab(NamedTuple):
    """A view's place among the tabs."""

    key: str
    view: ViewName
    word: str


TABS = (
    Tab("1", "files", "Files"),
    Tab("2", "ranks", "Ranks"),
    Tab("3", "mismatch", "Mismatch"),
    Tab("4", "cache", "Cache"),
    Tab("5", "report", "Report"),
    Tab("6", "log", "Log"),
)

KEYS = (
    *(Binding(tab.key, f"view('{tab.view}')", f"{tab.word} view") for tab in TABS),
    Binding("left_square_bracket", "rank(-1)", "previous rank"),
    Binding("right_square_bracket", "rank(1)", "next rank"),
    Binding("n", "difference(1)", "next difference"),
    Binding("N", "difference(-1)", "previous difference"),
    Binding("slash", "filter", "filter by name"),
    Binding("s", "sort", "sort: another order"),
    Binding("space", "fold", "fold, unfold"),
    Binding("y", "copy", "copy: a digest, a command, the report"),
    Binding("e", "export", "export the report to a file"),
    Binding("f", "format", "report: another format"),
    Binding("x", "redact", "report: hosts and paths, or none"),
    Binding("p", "pause", "pause reading, go on"),
    Binding("R", "again", "read everything again; asks"),
    Binding("t", "light", "light or dark"),
    Binding("question_mark", "help", "this help"),
    Binding("ctrl+p", "command_palette", "commands"),
    Binding("ctrl+z", "suspend_process", "to the shell; fg comes back"),
    Binding("escape", "out", "back, out; clears a filter first"),
    Binding("q", "ask", "quit"),
    # Also from a field or a box, where they would mean something else.
    Binding("ctrl+c,ctrl+q", "leave", "quit, from anywhere", priority=True),
)
#: What most views' footer says, of the keys that do something.
HINTS: tuple[Hint, ...] = (
    (1, "?", "help"), (4, "/", "filter"), (5, "s", "sort"), (7, "[ ]", "rank"), (8, "p", "pause"), (6, "y", "copy"),
    (9, "e", "export"), (3, "^p", "commands"), (0, "q", "quit"),
)  # fmt: skip

_WORDS = {"left_square_bracket": "[", "right_square_bracket": "]", "slash": "/", "question_mark": "?"}
#: What the palette has no use for: itself.
_NOT_LISTED = {"command_palette"}


def shown(keys: str) -> str:
    """Keys as people write them: `q  ^c`."""
    return "  ".join(_WORDS.get(key, key.replace("ctrl+", "^")) for key in keys.split(","))


def commands() -> Iterator[tuple[str, str, str]]:
    """Every action by its name, the key that does it, and the action: the palette's entries."""
    for binding in KEYS:
        if binding.action not in _NOT_LISTED:
            yield binding.description[:1].upper() + binding.description[1:], f"key {shown(binding.key)}", binding.action
