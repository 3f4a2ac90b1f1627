"""The Ranks view: one row a rank, those that are alike folded into one, those that differ apart and first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...facts import ranksets
from ...facts.agreement import Agreement, Standing
from ...facts.status import Phase
from ...present import units
from ...present.glyphs import PHASES, Mark
from .counts import cached_shards
from .spans import Column, Line, TableRow, line, wrapped

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...facts.agreement import Group
    from ...stream.messages import RankRow
    from .charset import Charset

#: More ranks than this fold while they work too; fewer are all worth a row of their own.
MANY = 16
_TROUBLE = {Phase.FAILED, Phase.LOST, Phase.ABSENT}

STANDINGS = {
    Standing.RIGHT: Mark("✓", "v", "right", "good"),
    Standing.MAJORITY: Mark("✓", "v", "majority", "good"),
    Standing.WRONG: Mark("✗", "x", "wrong", "bad"),
    Standing.MINORITY: Mark("✗", "x", "minority", "bad"),
    Standing.UNDECIDED: Mark("?", "?", "undecided", "warn"),
}


class Bundle(NamedTuple):
    """Ranks that make one row. `key` is the lowest rank, so that a cursor stays with it."""

    key: int
    rows: tuple[RankRow, ...]
    group: Group | None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the row."""
        return tuple(row.status.rank for row in self.rows)

    def fresh(self, ranks: Mapping[int, RankRow]) -> Bundle:
        """The same ranks, as they are now."""
        return self._replace(rows=tuple(ranks.get(row.status.rank, row) for row in self.rows))


def group_of(agreement: Agreement | None) -> dict[int, Group]:
    """The group of each rank that is in one."""
    return {rank: group for group in agreement.groups for rank in group.ranks} if agreement else {}


def bundles(ranks: Mapping[int, RankRow], agreement: Agreement | None, unfolded: Collection[int]) -> list[Bundle]:
    """The rows in their order. `unfolded` holds keys of bundles that the user has opened."""
    groups = group_of(agreement)
    many = len(ranks) > MANY
    alike: dict[object, list[RankRow]] = {}
    for rank in sorted(ranks):
        row = ranks[rank]
        alike.setdefault(_likeness(row, groups.get(rank), many=many), []).append(row)
    made = []
    for rows in alike.values():
        first = rows[0].status.rank
        if first in unfolded:
            made += [Bundle(row.status.rank, (row,), groups.get(row.status.rank)) for row in rows]
        else:
            made.append(Bundle(first, tuple(rows), groups.get(first)))
    return sorted(made, key=lambda bundle: (_urgency(bundle, agreement), *_size(bundle), bundle.key))


def _size(bundle: Bundle) -> tuple[int, ...]:
    """Of groups that stand alike the smaller comes first, and each stays together."""
    return (len(bundle.group.ranks), bundle.group.ranks[0]) if bundle.group else (0, 0)


def _likeness(row: RankRow, group: Group | None, *, many: bool) -> object:
    status = row.status
    if status.phase in _TROUBLE and not many:
        return status.rank
    if group is not None:
        return (group.name, status.phase in _TROUBLE)
    if status.phase is Phase.DONE:
        return status.phase
    return (status.phase, status.host) if many else status.rank


def _urgency(bundle: Bundle, agreement: Agreement | None) -> int:
    if bundle.group is not None and agreement is not None and len(agreement.groups) > 1:
        order = (Standing.WRONG, Standing.MINORITY, Standing.UNDECIDED, Standing.MAJORITY, Standing.RIGHT)
        return (0, 1, 2, 8, 9)[order.index(bundle.group.standing)]
    phase = bundle.rows[0].status.phase
    if phase in _TROUBLE:
        return 3
    return 7 if phase is Phase.DONE else 5


def columns(room: int, host_width: int, unit: units.Unit, *, decided: bool) -> tuple[Column, ...]:
    """The columns on a screen that is `room` cells wide: before the verdict what ranks do, then what they hold."""
    bar = _bar_width(room)
    never, later = 1 << 16, 136
    return (
        Column((), 1),
        Column(line("rank"), 7),
        Column(line("host"), min(max(host_width, 9), 24), needs=56),
        Column(line("phase"), 9, needs=later if decided else 70),
        Column(line("progress" if bar else "done"), bar + 6),
        Column(line(f"{unit[0]}/s"), 6, right=True, needs=never if decided else 90),
        Column(line("cached"), 8, right=True, needs=90, gap=3),
        Column(line("heard"), 5, right=True, needs=later if decided else 70, gap=3),
        Column(line("group"), 5, needs=76 if decided else never),
        Column(line("standing" if decided else "doing"), 8, grow=1, gap=1),
    )


def _bar_width(room: int) -> int:
    return 20 if room >= 116 else 12 if room >= 100 else 6 if room >= 56 else 0


def rank_row(
    bundle: Bundle,
    agreement: Agreement | None,
    charset: Charset,
    *,
    roles: str,
    unit: units.Unit,
    now: float,
    room: int,
) -> TableRow:
    """A bundle of ranks as one row."""
    statuses = [row.status for row in bundle.rows]
    first = statuses[0]
    mark = PHASES[first.phase]
    if bundle.group is not None and first.phase not in _TROUBLE:
        mark = STANDINGS[bundle.group.standing]
    silent = first.phase in _TROUBLE
    # A verdict is everybody's: what a rank was last heard to do is over.
    phase = Phase.DONE if bundle.group is not None and not silent else first.phase
    done, total = sum(s.bytes_done for s in statuses), sum(s.bytes_total for s in statuses)
    rate = sum(s.rate for s in statuses)
    heard = max(row.heard for row in bundle.rows)
    hits = [cached_shards(status, roles) for status in statuses]
    cached = f"{min(cached for cached, _ in hits)}/{hits[0][1]}" if hits[0][1] else ""
    troubled = mark.tone in {"bad", "warn"}
    return TableRow(
        bundle.key,
        (
            line((charset.mark(mark), mark.tone)),
            line((ranksets.fold(bundle.ranks).strip("[]"), "strong" if troubled else "")),
            line(_hosts([s.host for s in statuses], charset)),
            line((PHASES[phase].word, mark.tone if silent else "")),
            _progress(done, total, charset, room, phase),
            line(units.rate_in(rate, unit) if rate > 0 and phase is not Phase.DONE else ""),
            line(cached if not silent else ""),
            line(units.age(now - heard) if heard else ""),
            line((bundle.group.name if bundle.group else "", "strong" if troubled else "")),
            _standing(bundle, agreement, charset, mark, room),
        ),
        "dim" if not troubled and phase is Phase.DONE else "plain",
    )


def _hosts(hosts: list[str], charset: Charset) -> str:
    distinct = dict.fromkeys(hosts)
    first = charset.name(next(iter(distinct)))
    return first if len(distinct) == 1 else f"{len(distinct)} hosts"


def _progress(done: int, total: int, charset: Charset, room: int, phase: Phase) -> Line:
    if total <= 0 or phase in _TROUBLE | {Phase.STARTING, Phase.MEETING}:
        return line()
    tone = "cached" if phase is Phase.DONE else "active"
    bar = charset.progress(done, total, _bar_width(room), tone) if _bar_width(room) else ()
    return (*bar, *line(f" {units.percent(done, total):>5}"))


def _standing(bundle: Bundle, agreement: Agreement | None, charset: Charset, mark: Mark, room: int) -> Line:
    status = bundle.rows[0].status
    if status.phase in _TROUBLE:
        return line((charset.name(status.error or status.doing or PHASES[status.phase].word), "warn"))
    if bundle.group is None or agreement is None:
        return line((charset.name(status.doing if room >= 64 else PHASES[status.phase].word), "dim"))
    alone = len(agreement.groups) == 1
    evidence = charset.name("; ".join(bundle.group.evidence))
    if alone and bundle.group.standing in {Standing.MAJORITY, Standing.UNDECIDED}:
        return line(evidence or "the same")
    return line(f"{mark.word}: {evidence}" if evidence else mark.word)


def missing(ranks: Mapping[int, RankRow], join: str, charset: Charset, waited: float, room: int) -> list[Line]:
    """Who has not come, since when, and what the first of them must run."""
    absent = [rank for rank, row in sorted(ranks.items()) if row.status.phase is Phase.ABSENT]
    if not absent:
        return []
    said = [line(), line("  ", ("missing   ", "dim"), f"{ranksets.named(absent)}, for {units.duration(waited)}")]
    if join:
        said += wrapped("run there", charset.name(f"{join} {absent[0]}"), room)
    return said


def details(bundle: Bundle, agreement: Agreement | None, charset: Charset, now: float) -> list[tuple[str, str]]:
    """All there is to say about a row of ranks, as (what, value) pairs."""
    status = bundle.rows[0].status
    facts = [
        ("ranks", ranksets.named(bundle.ranks)),
        ("host", ", ".join(dict.fromkeys(row.status.host for row in bundle.rows))),
        ("path", ", ".join(dict.fromkeys(row.status.path for row in bundle.rows))),
        ("phase", status.phase.value),
        ("doing", status.doing),
        ("read", f"{units.size(status.bytes_done)} of {units.size(status.bytes_total)}" if status.bytes_total else ""),
        ("not read", f"{units.size(status.bytes_cached)}, cached" if status.bytes_cached else ""),
        ("heard", f"{units.age(now - bundle.rows[0].heard)} ago" if now - bundle.rows[0].heard >= 1 else "just now"),
        ("error", status.error or ""),
    ]
    group = bundle.group
    if group is not None:
        facts += [
            ("group", f"{group.name}: {ranksets.named(group.ranks)}, {units.count(group.copies, 'copy', 'copies')}"),
            ("standing", f"{group.standing}{''.join(f', {phrase}' for phrase in group.evidence)}"),
            ("identity", group.identity or "not known"),
            ("content", group.content or "not known"),
        ]
    if agreement is not None:
        facts += [("absent", text) for text in agreement.absent_detail]
    return [(what, charset.name(value)) for what, value in facts if value]
