"""The lines around the tables: title, verdict, tabs, the whole's progress, legend, footer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...facts import ranksets
from ...facts.outcome import Exit
from ...facts.status import Phase
from ...present import units
from ...stream.messages import Mode, Word
from .counts import cached_shards, shared_shards
from .spans import Line, Span, clip, fit, line, pieces, spread, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...facts.status import RankStatus
    from ...stream.messages import Survey
    from ...stream.state import StreamState
    from .charset import Charset

#: Silence of this many seconds is said on the screen.
SILENCE = 3.0

#: Ranks that do nothing any more.
_GONE = frozenset({Phase.ABSENT, Phase.LOST, Phase.FAILED})
#: The surface that each word lies on; `-strong` is the same for the word itself.
SURFACES = {
    Word.STARTING: "neutral", Word.MEETING: "run", Word.READING: "run", Word.PAUSED: "neutral",
    Word.COMPARING: "run", Word.DONE: "neutral",
    Word.VERIFIED: "well", Word.AGREE: "well", Word.DAMAGED: "alarm", Word.DIFFER: "alarm",
    Word.MISSING: "alarm", Word.EXTRA: "alarm",
    Word.INCOMPLETE: "caution", Word.UNDECIDED: "caution", Word.NO_BEAT: "caution", Word.FAILED: "caution",
    Word.STOPPED: "neutral",
}  # fmt: skip


def title(state: StreamState, path: str, charset: Charset, room: int) -> Line:
    """What is looked at, and as which rank."""
    survey = state.survey
    if survey is None:
        return line(" ", (charset.name(_last(path)), "strong"), "   ", (charset.name(path), "dim"))
    ref = survey.checkpoint
    name = ref.repo_id or _last(ref.path)
    shards = survey.roles.count("w")
    parts = [
        (0, line((charset.name(name), "strong"))),
        (3, line((f"hub rev {ref.revision[:8]}" if ref.revision else "", "dim"))),
        (2, line((units.count(shards, "shard"), "dim"))),
        (1, line((units.size(survey.bytes_total), "dim"))),
    ]
    if not ref.repo_id:
        parts.append((4, line((charset.name(ref.path), "dim"))))
    host = state.ranks[state.watched].status.host if state.watched in state.ranks else survey.host
    who = line(
        ("rank ", "dim"), (f"[{state.watched} {charset.name(host)}]", "strong"), (f" of {survey.world_size}", "dim")
    ) if survey.world_size > 1 else line((charset.name(host), "dim"))  # fmt: skip
    room -= 2
    left = pieces(parts, max(room - width(who) - 3, 12))
    return (Span(" "), *spread(left, who, room, ellipsis=charset.ellipsis), Span(" "))


def _last(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1] or path


class Standing(NamedTuple):
    """What the verdict line says: a word, parts with the number at which they leave, and the outcome so far."""

    word: Word
    parts: tuple[tuple[int, Line], ...]
    outcome: str = ""
    outcome_surface: str = ""


def standing(state: StreamState, silent: float, path: str) -> Standing:
    """How it stands now. `silent` is how many seconds ago the worker was last heard."""
    verdict = state.verdict
    if verdict is not None and verdict.code is not None:
        return Standing(verdict.word, ((0, line(verdict.text)),), verdict.also, "caution")
    outcome = ("", "") if verdict is None else (verdict.text, SURFACES[verdict.word])
    if state.over:
        return _ended(state, outcome)
    if silent >= SILENCE and state.hello is not None:
        said = f"no word from the worker for {units.age(silent)}; it may be busy or stopped"
        return Standing(Word.NO_BEAT, ((0, line(said)),), *outcome)
    if state.survey is None and not state.ranks:
        return Standing(Word.STARTING, ((0, line(f"looking at {path}" if state.hello else "the worker is starting")),))
    statuses = [row.status for row in state.ranks.values()]
    # There may be thousands: they are walked over once where that will do.
    phases = {status.phase for status in statuses}
    world = state.survey.world_size if state.survey else 1
    if world > 1 and Phase.MEETING in phases:
        return Standing(Word.MEETING, _meeting(statuses, world), *outcome)
    alive = [status for status in statuses if status.phase not in _GONE] if phases & _GONE else statuses
    if alive and phases - _GONE <= {Phase.COMPARING, Phase.DONE}:
        return Standing(Word.COMPARING, ((0, line("every byte is known; comparing")),), *outcome)
    own = state.ranks.get(state.survey.rank) if state.survey else None
    attached = state.hello is not None and state.hello.mode is Mode.ATTACH
    if own is not None and own.status.paused and not attached:
        return Standing(Word.PAUSED, _paused(own.status, world), *outcome)
    return Standing(Word.READING, _reading(alive, world), *outcome)


def _meeting(statuses: Sequence[RankStatus], world: int) -> tuple[tuple[int, Line], ...]:
    here = {status.rank for status in statuses if status.phase not in {Phase.ABSENT, Phase.LOST}}
    waiting = [status.rank for status in statuses if status.phase is Phase.ABSENT]
    missing = waiting or sorted(set(range(world)) - here)
    waited = ((1, line(f"waiting for {ranksets.named(missing)}")),) if missing else ()
    return ((0, line(f"{len(here)} of {world} ranks are here")), *waited)


def _ended(state: StreamState, outcome: tuple[str, str]) -> Standing:
    if state.bye is not None:
        word = Word.STOPPED if state.bye.code == 130 else Word.FAILED
        return Standing(word, ((0, line(state.bye.reason or "stopped before a verdict")),), *outcome)
    if state.ended is not None and state.ended.said:
        return Standing(Word.STOPPED, ((0, line(state.ended.said)),), *outcome)
    code = state.ended.code if state.ended else None
    if code is None:
        how = "the stream ended without a verdict"
    else:
        how = f"the worker died with signal {-code}" if code < 0 else f"the worker ended with code {code}"
    return Standing(Word.NO_BEAT, ((0, line(how)), (1, line("the log may say why"))), *outcome)


def _reading(statuses: Sequence[RankStatus], world: int) -> tuple[tuple[int, Line], ...]:
    done, total = sum(s.bytes_done for s in statuses), sum(s.bytes_total for s in statuses)
    rate = sum(s.rate for s in statuses)
    if total <= 0:
        return ((0, line("headers, index and config first")),)
    unit = units.size_unit(total)
    on = f" on {units.count(world, 'rank')}" if world > 1 else ""
    # An answer is there when the slowest rank has one.
    lefts = [(s.bytes_total - s.bytes_done) / s.rate for s in statuses if s.rate > 0 and s.bytes_done < s.bytes_total]
    left = f"{units.duration(max(*lefts, 1.0))} left" if lefts else ""
    # Nobody knows how long a pause lasts.
    if resting := [s.rank for s in statuses if s.paused]:
        left = f"{ranksets.named(resting)} {'is' if len(resting) == 1 else 'are'} paused"
    return (
        (2, line(f"{units.in_unit(done, unit)} of {units.in_unit(total, unit)} {unit[0]}{on}")),
        (0, line(f"{units.percent(done, total):>5}")),
        (3, line(f"{units.rate(rate)}" if rate > 0 else "")),
        (1, line(left)),
    )


def _paused(status: RankStatus, world: int) -> tuple[tuple[int, Line], ...]:
    done, total = status.bytes_done, status.bytes_total
    unit = units.size_unit(total)
    others = "; the other ranks read on" if world > 1 else ""
    return (
        (2, line(f"{units.in_unit(done, unit)} of {units.in_unit(total, unit)} {unit[0]}" if total else "")),
        (0, line(f"{units.percent(done, total):>5}" if total else "before the first byte")),
        (1, line(f"p goes on{others}")),
    )


def verdict_line(now: Standing, charset: Charset, room: int) -> Line:
    """The one large coloured line, exactly `room` cells wide."""
    surface = SURFACES[now.word]
    word = line((f" {now.word} ", f"{surface}-strong"))
    chip: Line = ()
    if now.outcome:
        chip = line((f" {charset.cross} {charset.name(now.outcome)} ", f"{now.outcome_surface}-strong"))
        # It may take what the word and the part that leaves last do not need.
        last = min(now.parts, key=lambda part: part[0])[1]
        chip = clip(chip, room - width(word) - width(last) - 4, charset.ellipsis)
    space = room - width(chip) - width(word) - 3
    body = pieces(now.parts, space)
    safe = [Span(charset.name(text), surface) for text, _ in body]
    filled = fit([Span("  ", surface), *safe], room - width(chip) - width(word) - 1, ellipsis=charset.ellipsis)
    return (*word, *(Span(text, tone or surface) for text, tone in filled), Span(" ", surface), *chip)


class Tab(NamedTuple):
    """A view's place above the views."""

    key: str
    word: str
    #: A view with nothing to say is dim.
    applies: bool = True


def tabs(views: Sequence[Tab], active: str, charset: Charset, room: int) -> tuple[Line, Line]:
    """The tabs, and the rule under them, which is heavier under the active one."""
    words: list[Span] = []
    rule: list[Span] = []
    for tab, text, gap in _fitting(views, active, room):
        on = tab.word == active
        tones = ("active", "strong") if on else ("dim", "plain") if tab.applies else ("faint", "faint")
        words += [Span(f" {tab.key} ", tones[0]), Span(text, tones[1]), Span(" " * gap)]
        size = len(tab.key) + len(text) + 2
        rule.append(Span((charset.rule_active if on else charset.rule) * size, "active" if on else "faint"))
        rule.append(Span(charset.rule * gap, "faint"))
    rule.append(Span(charset.rule * max(room - width(rule), 0), "faint"))
    return clip(words, room, ""), clip(rule, room, "")


def tab_at(views: Sequence[Tab], active: str, room: int, x: int) -> Tab | None:
    """The tab at that cell."""
    right = 0
    for tab, text, gap in _fitting(views, active, room):
        right += len(tab.key) + len(text) + 2 + gap
        if x < right:
            return tab
    return None


def _fitting(views: Sequence[Tab], active: str, room: int) -> list[tuple[Tab, str, int]]:
    """Each tab with its word and the gap behind it; where not all words fit, the active one's alone."""
    if sum(len(tab.key) + len(tab.word) + 5 for tab in views) - 2 <= room:
        return [(tab, f"{tab.word} ", 2) for tab in views]
    return [(tab, f"{tab.word} " if tab.word == active else "", 0) for tab in views]


def overall(status: RankStatus | None, rates: Sequence[float], charset: Charset, room: int) -> Line:
    """The whole's bar, in cached, read and to go, with the rate's recent past beside it."""
    moving = any(rates) or (status is not None and status.phase is not Phase.DONE)
    spark_size = (20 if room >= 100 else 10 if room >= 64 else 0) if moving else 0
    size = room - 2 - (spark_size + 3 if spark_size else 0)
    total = status.bytes_total if status else 0
    cached, done = (status.bytes_cached, status.bytes_done) if status else (0, 0)
    if total <= 0:
        return ()
    # A peer's numbers may be anything.
    first = min(max(size * cached // total, 0), size)
    second = max(min(size * done // total, size) - first, 0)
    block_cached, block_read, block_rest = charset.blocks
    bar = line(
        (block_cached * first, "cached"), (block_read * second, "read"), (block_rest * (size - first - second), "faint")
    )
    sparks = line("   ", (charset.spark(rates, spark_size), "active")) if spark_size else ()
    return (Span(" "), *bar, *sparks)


def legend(status: RankStatus | None, survey: Survey | None, mean_rate: float, charset: Charset, room: int) -> Line:
    """What the bar's portions are, and what the cache saved in bytes, as a ratio, and in time."""
    if status is None or survey is None:
        return ()
    unit = units.size_unit(status.bytes_total)

    def amount(value: int) -> str:
        return f"{units.in_unit(max(value, 0), unit)} {unit[0]}"

    saved = status.bytes_cached / mean_rate if mean_rate > 0 else 0.0
    about = f", about {units.duration(saved)} saved" if saved >= 1 else ""
    unread = f", {amount(status.bytes_cached)} not read" if status.bytes_cached else ""
    cached, shards = cached_shards(status, survey.roles)
    shared = shared_shards(status, survey.roles)
    others = f", {shared:,} by another process" if shared else ""
    hits = f" {cached:,} of {shards:,} cached{others}{unread}{about}"
    togo = status.bytes_total - status.bytes_done
    block_cached, block_read, block_rest = charset.blocks
    parts = [
        (0, line((block_cached, "cached"), (hits, "dim"))),
        (1, line((block_read, "read"), (f" {amount(status.bytes_done - status.bytes_cached)} read", "dim"))),
        (2, line((block_rest, "faint"), (f" {amount(togo)} to go", "dim")) if togo > 0 else ()),
    ]
    how = f"{units.count(survey.threads, 'thread')}, {'sha256' if survey.sha256 else 'xxh3 alone'}"
    right = line((how, "dim")) if room >= 110 else ()
    left = pieces(parts, room - 2 - (width(right) + 3 if right else 0))
    return (Span(" "), *spread(left, right, room - 2, ellipsis=charset.ellipsis))


def footer(keys: Sequence[tuple[int, str, str]], charset: Charset, room: int, held: str = "") -> Line:
    """The keys that work here, as (number at which it leaves, key, word), and at the right who is held ready."""
    parts = [(rank, line((key, "active"), (f" {word}", "dim"))) for rank, key, word in keys]
    aside = line((held, "plain")) if held and room >= 60 else ()
    left = pieces(parts, room - 2 - (width(aside) + 3 if aside else 0))
    return (Span(" "), *spread(left, aside, room - 2, ellipsis=charset.ellipsis))


def nothing_to_watch(state: StreamState) -> bool:
    """Whether it has ended before there was anything to see: nothing could be done, or nobody was there."""
    if state.bye is None:
        return False
    if state.bye.code == Exit.USAGE:
        return True
    return state.hello is not None and state.hello.mode is Mode.ATTACH and not state.ranks


def pausable(state: StreamState) -> RankStatus | None:
    """Whose reading `p` pauses, or lets go on: this process's, as long as it reads; None where there is none."""
    own = state.ranks.get(state.survey.rank) if state.survey else None
    mode = state.hello.mode if state.hello else Mode.SCAN
    if state.over or own is None or mode not in {Mode.SCAN, Mode.RANKS}:
        return None
    return None if own.status.phase in _GONE | {Phase.COMPARING, Phase.DONE} else own.status


def turns(state: StreamState) -> bool:
    """Whether other ranks' files can be asked for."""
    return len(state.ranks) > 1 and state.survey is not None and not state.over


def in_company(state: StreamState) -> int:
    """How many other ranks would miss this one if it left now; 0 once the verdict stands or nothing will come."""
    if state.hello is None or state.hello.mode is not Mode.RANKS or state.over:
        return 0
    if state.verdict is not None and state.verdict.code is not None:
        return 0
    return max(sum(row.status.phase not in _GONE for row in state.ranks.values()) - 1, 0)
