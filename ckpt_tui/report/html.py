"""A document as one HTML file: no script, nothing from elsewhere, readable in light and dark and on paper. Pure.

Every text passes through `html.escape`, and the page forbids itself to load or run anything.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .document import Block, Code, Heading, Listing, Matrix, Paragraph, Table
from .html_style import STYLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .document import Cell, Document, Inline, Line, Part

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
#: Sizes of the matrix, in pixels.
_CELL, _GAP, _HEAD = 20, 3, 22
#: A character of a label, about.
_CHARACTER = 7.3
_LABEL = 34
#: Names up to so many characters are not broken over lines.
_WHOLE = 64


def render(document: Document) -> str:
    """The page."""
    title = escape(f"{document.word}: {document.sentence}"[:200])
    body = "\n".join(_body(document))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _body(document: Document) -> Iterator[str]:
    yield (
        f'<header class="{escape(document.tone)}"><span class="word">{escape(document.word)}</span>'
        f"<h1>{escape(document.sentence)}</h1></header>"
    )
    open_card = False
    for part in document.parts:
        if isinstance(part, Heading) and part.level > 2:
            yield ("</section>" * open_card) + '<section class="card">'
            open_card = True
        elif isinstance(part, Heading) and open_card:
            yield "</section>"
            open_card = False
        yield _part(part)
    if open_card:
        yield "</section>"


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        return f"<h{part.level}>{_line(part.line)}</h{part.level}>"
    if isinstance(part, Paragraph):
        return f'<p class="{escape(part.tone)}">{_line(part.line)}</p>'
    if isinstance(part, Table):
        return "\n".join(_table(part))
    if isinstance(part, Listing):
        items = "".join(f"<li>{_line(item)}</li>" for item in part.items)
        more = f'<li class="more">{escape(part.left_out)}</li>' if part.left_out else ""
        return f"<ul>{items}{more}</ul>"
    if isinstance(part, Block):
        return f'<pre class="{escape(part.language)}"><code>{escape(part.text)}</code></pre>'
    return "\n".join(_matrix(part))


def _line(line: Line) -> str:
    return "".join(map(_inline, line))


def _inline(inline: Inline) -> str:
    if not isinstance(inline, Code):
        return escape(inline)
    # A name that fits a column stays in one piece.
    whole = ' class="whole"' if len(inline.text) <= _WHOLE else ""
    return f"<code{whole}>{escape(inline.text)}</code>"


def _table(table: Table) -> Iterator[str]:
    headed = any(table.head)
    yield f'<div class="scroll"><table class="{"rows" if headed else "facts"}">'
    sides = ["r" if side == ">" else "l" for side in table.align]
    if headed:
        cells = "".join(f'<th class="{side}">{escape(text)}</th>' for side, text in zip(sides, table.head, strict=True))
        yield f"<thead><tr>{cells}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        tags = ["td" if headed or place else "th" for place in range(len(row))]
        cells = "".join(
            f'<{tag} class="{side}">{_line(cell)}</{tag}>' for tag, side, cell in zip(tags, sides, row, strict=True)
        )
        yield f"<tr>{cells}</tr>"
    if table.left_out:
        yield f'<tr><td class="more" colspan="{len(table.align)}">{escape(table.left_out)}</td></tr>'
    yield "</tbody></table></div>"


def _matrix(matrix: Matrix) -> Iterator[str]:
    """Ranks down, files across: a letter and a colour a cell, and the words for whoever points at it."""
    shown = [label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…" for label, _ in matrix.rows]
    left = int(max(map(len, shown), default=0) * _CHARACTER) + 12
    step = _CELL + _GAP
    width, height = left + len(matrix.columns) * step, _HEAD + len(matrix.rows) * step
    yield (
        f'<figure><div class="scroll"><svg class="matrix" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{escape(matrix.caption)}</title>'
    )
    for place, name in enumerate(matrix.columns):
        x = left + place * step + _CELL / 2
        yield f'<text class="head" x="{x:g}" y="14"><title>{escape(name)}</title>{place + 1}</text>'
    for number, ((label, cells), text) in enumerate(zip(matrix.rows, shown, strict=True)):
        y = _HEAD + number * step
        yield f'<text class="label" x="{left - 10}" y="{y + 14}"><title>{escape(label)}</title>{escape(text)}</text>'
        for place, cell in enumerate(cells):
            yield _cell(cell, left + place * step, y, f"{label}, {matrix.columns[place]}: {cell.words}")
    yield f"</svg></div><figcaption>{escape(matrix.caption)}</figcaption></figure>"


def _cell(cell: Cell, x: int, y: int, words: str) -> str:
    middle = f'x="{x + _CELL / 2:g}" y="{y + _CELL / 2:g}"'
    return (
        f'<g class="cell {escape(cell.tone)}"><title>{escape(words)}</title>'
        f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" rx="4"/>'
        f"<text {middle}>{escape(cell.letter)}</text></g>"
    )
