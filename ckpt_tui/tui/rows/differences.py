"""Where the groups differ, in a few lines: each file with its segments, what each group holds, cause and mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...facts import ranksets
from ...present import units, words
from .spans import Line, Span, clip, labelled, line, spread, width, wrapped

if TYPE_CHECKING:
    from ...facts.agreement import Agreement, Difference
    from .charset import Charset


def differences(agreement: Agreement, charset: Charset, room: int, rows: int) -> list[Line]:
    """At most `rows` lines about what is not the same; what does not fit is counted."""
    if not agreement.differences or rows < 2:
        return []
    unit = words.unit_of(agreement)
    title = f" {units.count(len(agreement.differences), f'{unit} differs', f'{unit}s differ')} "
    rule = charset.rule * max(room - len(title) - 6, 0)
    drawn = [line("  ", (charset.rule * 2, "faint"), (title, "strong"), (rule, "faint"))]
    for difference in agreement.differences:
        drawn += _difference(agreement, difference, charset, room)
    if len(drawn) <= rows:
        return drawn
    left = len(drawn) - rows + 1
    return [*drawn[: rows - 1], labelled("", (Span(f"and {units.count(left, 'line')} more", "dim"),))]


def _difference(agreement: Agreement, difference: Difference, charset: Charset, room: int) -> list[Line]:
    """One file: where, who holds what, why, and what would mend it."""
    lines = wrapped(words.unit_of(agreement), charset.name(difference.file), room, "strong")
    for segment in difference.segments:
        where = units.size(segment.length) + ("" if segment.held else f" at byte {segment.offset:,}")
        name = charset.name(segment.name)
        label = labelled(segment.kind.value, line((name, "bad")))
        if width(label) + len(where) + 7 <= room:
            lines.append(spread(label, line((where, "dim")), room - 4, ellipsis=charset.ellipsis))
        else:
            lines += [*wrapped(segment.kind.value, name, room, "bad"), labelled("", line((where, "dim")))]
    if difference.segments_left_out:
        more = units.count(difference.segments_left_out, "more segment")
        lines.append(labelled("", line((f"and {more}", "dim"))))
    ranks = {group.name: ranksets.fold(group.ranks) for group in agreement.groups}
    wide = max(map(len, ranks.values()), default=0)
    for letter, held in sorted(difference.groups.items()):
        who = f"{ranks.get(letter, ''):<{wide}}  "
        lines.append(labelled(f"group {letter}", line((who, "plain"), charset.name(held))))
    lines += wrapped("cause", charset.name(words.cause_words(difference)), room)
    if difference.cause.mend:
        lines += wrapped("mend", charset.name(difference.cause.mend), room)
    return [clip(one, room - 2, charset.ellipsis) for one in lines]
