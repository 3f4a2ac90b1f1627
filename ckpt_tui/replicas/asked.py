"""What a rank was called with: checked, and in the words that are held against those of the other ranks."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex, TypeVar

from ..facts.outcome import UsageError
from ..facts.ranksets import fold
from ..facts.scan import DIGEST_LAYOUT
from ..present.safe import escape
from ..report.saving import format_of
from .hearing import Question
from .kinds import Algorithm, Kind

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from enum import StrEnum

    ReportPath = str | os.PathLike[str]

T = TypeVar("T", bound="StrEnum")


class Asked(NamedTuple):
    """One call. `call` has what has to be the same on all ranks; it is empty where nothing can be done with a call."""

    question: Question
    call: Mapping[str, str] = {}
    algorithm: Algorithm = Algorithm.XXH3
    local: tuple[str, ...] = ()
    drill_bytes: int = 0
    report: ReportPath | None = None


def asked_for(
    ranks: Sequence[int],
    *,
    phase: str,
    step: int | None = None,
    digest: str = Algorithm.XXH3,
    apart: Collection[str] = (),
    local: Collection[str] = (),
    sets: Sequence[Sequence[int]] | None = None,
    drill_bytes: int = 0,
    report: ReportPath | None = None,
) -> Asked:
    """The call among these global ranks. Raises UsageError, or whatever an argument of another type raises."""
    if report is not None:
        format_of(report)
    algorithm = _member(Algorithm, "digest", digest)
    question = Question(
        phase=escape(_text("phase", phase)),
        step=None if step is None else index(step),
        sets=_sets(sets, ranks),
        apart=frozenset(_member(Kind, "apart", kind) for kind in _listed("apart", "kinds", apart)),
    )
    patterns = tuple(_text("local: a pattern", pattern) for pattern in _listed("local", "patterns", local))
    if index(drill_bytes) < 0:
        raise UsageError(f"drill_bytes is a whole number of bytes, 0 or more, not {drill_bytes}")
    call = {
        "layout": str(DIGEST_LAYOUT),
        "digest": algorithm.value,
        "apart": escape(", ".join(sorted(question.apart))),
        "local": escape(", ".join(sorted(patterns))),
        "sets": " ".join(map(fold, question.sets)),
        "drill_bytes": str(index(drill_bytes)),
    }
    return Asked(question, call, algorithm, patterns, index(drill_bytes), report)


def refused(ranks: Sequence[int], phase: object, step: SupportsIndex | None) -> Asked:
    """What stands for a call with which nothing can be done: the moment at which it was made is known all the same."""
    words, number = escape(phase if isinstance(phase, str) else repr(phase)), None
    try:
        number = None if step is None else index(step)
    except Exception:  # noqa: BLE001 - whatever it is, it is no number
        words = f"{words}, step {escape(repr(step))}"
    return Asked(Question(phase=words, step=number, sets=(tuple(ranks),), apart=frozenset()))


def _member(words: type[T], what: str, value: str) -> T:
    try:
        return words(value)
    except ValueError:
        known = ", ".join(words)
        raise UsageError(f"{what} is one of {known}, not {escape(repr(value))}") from None


def _listed(what: str, of: str, given: Collection[str]) -> Iterable[str]:
    """A text would be taken for the list of its characters."""
    if isinstance(given, str):
        raise UsageError(f"{what} is a list of {of}, and {escape(repr(given))} is one text")
    return given


def _text(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise UsageError(f"{what} is text, not {escape(repr(given))}")
    return given


def _sets(sets: Sequence[Sequence[int]] | None, ranks: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The sets of global ranks, in order: every rank of the group is in exactly one."""
    if sets is None:
        return (tuple(ranks),)
    found = tuple(sorted(tuple(sorted(one)) for one in sets if one))
    if sorted(rank for one in found for rank in one) != sorted(ranks):
        raise UsageError(f"each of the control group's ranks {fold(ranks)} has to be in exactly one set")
    return found
