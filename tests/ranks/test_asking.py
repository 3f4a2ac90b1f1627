"""The questions of a session through a real store: one order for all, and an end to every wait."""

from __future__ import annotations

from collections.abc import Callable

from ckpt_tui.facts.agreement import DifferingSegment
from ckpt_tui.facts.files import SegmentKind
from ckpt_tui.ranks.asking import PATIENCE, Asker, Questions
from ckpt_tui.ranks.messages import Party, Told, encode
from ckpt_tui.ranks.store import Store
from ckpt_tui.stream.messages import DrillState, Place
from tests.support.clocks import StillClock

ONE, OTHER = Place(file="one"), Place(file="other")


def asker(store: Store, rank: int | None = None) -> Asker:
    return Asker(Questions(store, "s"), StillClock(), rank)


def places(questions: Questions) -> list[Place | None]:
    """All that is asked, in its order."""
    found = []
    while (one := questions.next()) is not None:
        found.append(one[1].place if one[1] else None)
    return found


def test_everybody_sees_all_questions_in_one_order_and_what_is_no_question_stops_nobody(
    connections: Callable[[], Store],
) -> None:
    first, viewer = asker(connections(), 1), asker(connections())
    first.ask(ONE)
    connections().set("s/hold/2", b"\xc1 no question")
    viewer.ask(OTHER)
    first.ask(ONE)  # is under way
    for store in (connections(), connections()):
        assert places(Questions(store, "s")) == [ONE, None, OTHER]


def test_an_answer_is_a_row_and_a_known_one_is_not_asked_again(connections: Callable[[], Store]) -> None:
    one = asker(connections())
    one.ask(ONE)
    assert one.rows[ONE].state is DrillState.PENDING
    one.look({})
    assert one.rows[ONE].state is DrillState.PENDING
    segments = (DifferingSegment(name="w", kind=SegmentKind.TENSOR, offset=8, length=4),)
    connections().post("s/hold/1/answer", encode(Told(segments=segments, more=3)))
    one.look({})
    assert (one.rows[ONE].state, one.rows[ONE].segments, one.rows[ONE].more) == (DrillState.DONE, segments, 3)
    one.ask(ONE)
    assert places(Questions(connections(), "s")) == [ONE]


def test_a_lead_that_dies_and_an_answer_that_never_comes_are_failures_that_may_be_asked_again(
    connections: Callable[[], Store],
) -> None:
    one = asker(connections())
    one.ask(ONE)
    connections().decide("s/hold/1/party", b"", encode(Party(speakers={"A": 0, "B": 1}, lead=0)))
    one.look({1: "is gone"})
    assert one.rows[ONE].state is DrillState.PENDING
    one.look({0: "is gone"})
    assert one.rows[ONE].error == "rank 0, which was to answer, is gone: ask again"
    one.ask(ONE)
    assert one.rows[ONE].state is DrillState.PENDING
    assert isinstance(one.clock, StillClock)
    one.clock.forward(PATIENCE + 1)
    one.look({})
    assert one.rows[ONE].error == "no answer in time: ask again"
    one.ask(OTHER)
    one.give_up("all were let go")
    assert (one.rows[OTHER].state, one.rows[OTHER].error) == (DrillState.FAILED, "all were let go")


def test_an_answer_that_cannot_be_read_has_failed(connections: Callable[[], Store]) -> None:
    one = asker(connections())
    one.ask(ONE)
    connections().post("s/hold/1/answer", encode(Told(error="\x1b[31mred")))
    one.look({})
    assert "cannot be read" in one.rows[ONE].error
