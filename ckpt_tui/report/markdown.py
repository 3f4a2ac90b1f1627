"""A document as Markdown for an issue tracker. Pure.

Nothing that a name holds is read as markup, mention, link or reference: what is not plainly words and numbers goes
into a code span, in which none of them mean anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .document import Block, Code, Heading, Listing, Paragraph, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .document import Document, Inline, Line, Part, Room

#: Issue trackers refuse a little more than this.
LIMIT = 60_000
#: A word of these characters alone means nothing to any Markdown; the rest is set as code.
_PLAIN = re.compile(r"[\w,;:.()/%+='’–…≠-]+")
_NAMELIKE = re.compile(r"[^\W\d]\w*[./]\w|_|://|www\.|:[a-z][\w+-]*:|\w{20,}|^GH-\d|^[0-9a-f]{7,}$", re.IGNORECASE)
#: Words, and indices and sets of ranks, which are no links as long as no target follows.
_WORDS = re.compile(r"(\[[\d, -]+\](?![(\[:]))|[^ ]+")
_BACKTICKS = re.compile(r"`+")
#: What at the beginning of a line would be a list, a heading or a rule.
_OPENING = re.compile(r"([-+=>#*]|\d+[.)])(?=\s|$|-|=)")


def render(make: Callable[[Room], Document], rooms: tuple[Room, ...]) -> str:
    """The Markdown of the roomiest document that fits the limit; of the smallest, as much as fits."""
    return fitting(make, rooms)[1]


def fitting(make: Callable[[Room], Document], rooms: tuple[Room, ...]) -> tuple[Document, str]:
    """The roomiest document that fits the limit, and its Markdown; of the smallest, as much as fits."""
    for room in rooms:
        document = make(room)
        text = "\n\n".join(_parts(document)) + "\n"
        if len(text) < LIMIT:
            return document, text
    return document, _cut(text)


def _cut(text: str) -> str:
    """The first blocks of a text that is too long, and how much was cut."""
    blocks = text.split("\n\n")
    size, kept = 0, 0
    for kept, block in enumerate(blocks):  # noqa: B007
        size += len(block) + 2
        if size > LIMIT - 200:
            break
    more = len(blocks) - kept
    said = f"{more:,} more parts of this report were cut: it is whole as JSON or HTML."
    return "\n\n".join([*blocks[:kept], said]) + "\n"


def _parts(document: Document) -> Iterator[str]:
    yield f"## {_text(document.word)}"
    yield f"**{_text(document.sentence)}**" if document.sentence else ""
    for part in document.parts:
        text = _part(part)
        if text:
            yield text


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        return f"{'#' * (part.level + 1)} {_line(part.line)}"
    if isinstance(part, Paragraph):
        return _opening(_line(part.line))
    if isinstance(part, Table):
        return "\n".join(_table(part))
    if isinstance(part, Listing):
        items = [f"- {_opening(_line(item))}" for item in part.items]
        return "\n".join([*items, *([f"- {part.left_out}"] if part.left_out else [])])
    if isinstance(part, Block):
        return _block(part)
    return ""  # a matrix is for formats that can draw


def _table(table: Table) -> Iterator[str]:
    yield _row(tuple((title,) for title in table.head))
    yield "|" + "|".join("---:" if side == ">" else "---" for side in table.align) + "|"
    for row in table.rows:
        yield _row(row)
    if table.left_out:
        yield _row(((table.left_out,), *(() for _ in table.head[1:])))


def _row(cells: tuple[Line, ...]) -> str:
    # A bar ends a cell even inside code, unless a backslash says otherwise.
    return "| " + " | ".join(_line(cell).replace("|", "\\|") for cell in cells) + " |"


def _block(block: Block) -> str:
    """Fenced by more backticks than it holds in a row."""
    fence = "`" * max(3, *(len(run) + 1 for run in _BACKTICKS.findall(block.text)), 3)
    return f"{fence}{block.language}\n{block.text}\n{fence}"


def _line(line: Line) -> str:
    return "".join(map(_inline, line))


def _inline(inline: Inline) -> str:
    return _code(inline.text) if isinstance(inline, Code) else _text(inline)


def _text(text: str) -> str:
    """Words as they are, and all that could be markup or a reference as code."""
    return _WORDS.sub(lambda match: match[0] if match[1] else _word(match[0]), text)


def _word(word: str) -> str:
    tail = re.search(r"[,;:.)]*$", word)
    end = tail[0] if tail else ""
    core = word[: len(word) - len(end)]
    head = "(" if core.startswith("(") else ""
    core = core.removeprefix("(")
    if not core or (_PLAIN.fullmatch(core) and not _NAMELIKE.search(core)):
        return word
    return f"{head}{_code(core)}{end}"


def _code(text: str) -> str:
    """A code span, fenced by more backticks than the text holds in a row."""
    if not text:
        return ""
    fence = "`" * max((len(run) + 1 for run in _BACKTICKS.findall(text)), default=1)
    edge = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{edge}{text}{edge}{fence}"


def _opening(text: str) -> str:
    """A line whose first characters are no list, heading or rule."""
    found = _OPENING.match(text)
    if found is None:
        return text
    mark = found[1]
    return f"\\{text}" if not mark[0].isdigit() else f"{mark[:-1]}\\{text[len(mark) - 1 :]}"
