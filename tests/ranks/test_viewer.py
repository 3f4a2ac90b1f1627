"""What a viewer makes of a store: the right session, and nothing of what a stranger may have put there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import pytest

from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.facts.scan import CheckpointRef
from ckpt_tui.facts.status import Phase, RankStatus
from ckpt_tui.present.safe import escape
from ckpt_tui.ranks.calls import nothing
from ckpt_tui.ranks.directory import NoSession, choose, entries
from ckpt_tui.ranks.display import DIRECTORY, agreement_key, page_key, shelf_key, viewers_key, watch_key
from ckpt_tui.ranks.messages import (
    PROTOCOL,
    Break,
    Hello,
    Listed,
    Opening,
    Page,
    Pulse,
    Shelf,
    encode,
    encode_line,
)
from ckpt_tui.ranks.store import Store
from ckpt_tui.ranks.telemetry import pulse_key
from ckpt_tui.ranks.viewer import SessionOver, Sight, Viewer, statuses
from ckpt_tui.stream import rows
from ckpt_tui.stream.messages import Survey
from tests.support.clocks import StillClock

Connections = Callable[[], Store]


def listed(**changes: object) -> bytes:
    fields = {"protocol": PROTOCOL, "tool": "ckpt-tui 9.9", "scope": "ckpt-tui", "call": 1, "world_size": 2}
    return encode_line(Listed(**(fields | changes)))


def hello(rank: int, **changes: object) -> Hello:
    usual = Hello(
        protocol=PROTOCOL,
        layout=1,
        tool="ckpt-tui",
        rank=rank,
        world_size=2,
        host=f"node-{rank}",
        pid=1,
        token=f"token{rank}",
    )
    return msgspec.structs.replace(usual, **changes)


def pulse(rank: int, phase: Phase = Phase.CONTENT, left: str | None = None, **changes: object) -> Pulse:
    return Pulse(status=RankStatus(rank=rank, host=f"node-{rank}", phase=phase, beat=1, **changes), left=left)


@dataclass
class Stage:
    """A store in which a session of two ranks goes on, with nobody behind it, and a viewer of it."""

    store: Store
    viewer: Viewer
    clock: StillClock
    scope: str = "ckpt-tui"

    def enter(self, call: int = 1, *, left: str | None = None) -> None:
        self.store.append(DIRECTORY, listed(scope=escape(self.scope), call=call))
        self.store.set(f"{self.scope}/call/{call}/outcome", b"-")
        for rank in (0, 1):
            self.store.set(pulse_key(self.scope, hello(rank, token=f"{call}.{rank}")), encode(pulse(rank, left=left)))
            self.store.append(f"{self.scope}/call/{call}/roster", encode_line(hello(rank, token=f"{call}.{rank}")))

    def look(self) -> Sight:
        self.viewer.open(10.0)
        return self.viewer.look()


@pytest.fixture
def stage(connections: Connections) -> Iterator[Stage]:
    store, clock = connections(), StillClock()
    viewer = Viewer(store.address, clock=clock, watch=nothing, note=lambda _line: None)
    yield Stage(store, viewer, clock)
    viewer.close()


def test_a_store_without_a_session_says_so(stage: Stage) -> None:
    stage.store.set("theirs", b"1")
    with pytest.raises(NoSession, match="no session of ckpt-tui has begun there"):
        stage.look()


def test_a_session_of_another_version_is_named(stage: Stage) -> None:
    stage.store.append(DIRECTORY, listed(protocol=PROTOCOL + 1))
    with pytest.raises(UsageError, match=rf"runs ckpt-tui 9\.9 \(protocol {PROTOCOL + 1}\)"):
        stage.look()


@pytest.mark.parametrize(
    "line",
    [b"\xff\x00 noise\n", listed(world_size=1 << 40), b"[" * 100_000 + b"\n", listed(tool="\x1b[31m")],
    ids=["noise", "a world of a trillion", "deep", "an escape sequence"],
)  # fmt: skip
def test_a_hostile_line_of_the_directory_is_no_session(stage: Stage, line: bytes) -> None:
    stage.enter()
    stage.store.append(DIRECTORY, line)
    assert [entry.number for entry in entries(stage.store)] == [1]


def test_the_newest_session_that_runs_is_taken_and_others_are_told(stage: Stage) -> None:
    stage.enter(1, left="has ended")
    stage.enter(2)
    stage.enter(3)
    stage.enter(4, left="has ended")
    found = entries(stage.store)
    entry, said = choose(stage.store, found, None)
    assert (entry.number, entry.call) == (3, "ckpt-tui/call/3")
    assert "2 sessions are running" in said
    assert said.endswith("another: 2")
    assert choose(stage.store, found, 1)[0].number == 1
    with pytest.raises(UsageError, match="there is no session 7"):
        choose(stage.store, found, 7)


def test_a_launchers_scope_of_any_text_is_found(stage: Stage) -> None:
    stage.scope = "ckpt-tui/job\n\x1b[31m/0"
    stage.enter()
    assert set(stage.look().statuses) == {0, 1}
    assert not stage.viewer.by_hand


def test_a_session_that_all_have_left_without_a_verdict_is_over(stage: Stage) -> None:
    stage.enter(left="interrupted")
    stage.look()
    stage.clock.forward(3)
    with pytest.raises(SessionOver, match="has ended: rank 0: interrupted; rank 1: interrupted"):
        stage.viewer.look()


def test_a_meeting_that_failed_is_told_in_the_ranks_words(stage: Stage) -> None:
    stage.enter()
    stage.store.set("ckpt-tui/call/1/outcome", encode(Opening(usage="two processes say rank 1")))
    with pytest.raises(UsageError, match="cannot make a session: two processes say rank 1"):
        stage.look()


def test_a_viewer_counts_itself_and_what_it_watches_and_touches_no_other_key(stage: Stage) -> None:
    stage.enter()
    before = stage.store.raw.num_keys()
    stage.look()
    assert stage.store.get([viewers_key("ckpt-tui/call/1")]) == [b"1"]
    assert stage.store.get([watch_key("ckpt-tui", "1.0")]) == [b"1"]
    assert stage.store.raw.num_keys() == before + 2
    stage.viewer.close()
    assert stage.store.get([viewers_key("ckpt-tui/call/1")]) == [b"0"]


SURVEY = Survey(
    checkpoint=CheckpointRef(path="/model", kind="folder"),
    host="node-0",
    roles="ww",
    bytes_total=2,
    threads=1,
    sha256=True,
)


def shelve(stage: Stage, survey: Survey, *indexes: int, name: str = "a", rank: int = 0) -> None:
    status = RankStatus(rank=rank, host="node-0", phase=Phase.CONTENT, cells="..")
    file = type("File", (), {"name": name, "role": "weights", "size": 1})
    made = tuple(rows.other_file(status, index, file) for index in indexes)  # type: ignore[arg-type]
    stage.store.set(page_key("ckpt-tui", "1.0", 0), encode(Page(rows=made)))
    stage.store.set(shelf_key("ckpt-tui", "1.0"), encode(Shelf(survey=survey, editions=(1,))))


def test_rows_of_the_watched_rank_arrive(stage: Stage) -> None:
    stage.enter()
    shelve(stage, SURVEY, 0, 1)
    sight = stage.look()
    assert sight.survey is not None
    assert (sight.survey.rank, sight.survey.world_size, set(sight.rows)) == (0, 2, {0, 1})


def test_rows_that_are_not_the_ranks_own_are_left_out(stage: Stage) -> None:
    stage.enter()
    shelve(stage, SURVEY, 1, 2, 10**9, -1)
    assert set(stage.look().rows) == {1}


def test_another_ranks_rows_are_left_out(stage: Stage) -> None:
    stage.enter()
    shelve(stage, SURVEY, 0, 1, rank=1)
    assert stage.look().rows == {}


@pytest.mark.parametrize(
    ("survey", "name"),
    [(SURVEY, "\x1b[31m"), (msgspec.structs.replace(SURVEY, host="\u202e"), "a"),
     (msgspec.structs.replace(SURVEY, roles="w" * 101), "a")],
    ids=["an escape in a name", "a reversed host", "editions that do not fit"],
)  # fmt: skip
def test_what_a_rank_could_not_have_shown_is_not_shown(stage: Stage, survey: Survey, name: str) -> None:
    stage.enter()
    shelve(stage, survey, 0, 1, name=name)
    assert stage.look().rows == {}


@pytest.mark.parametrize("posted", [b"", b"12345", b"\x81\xa6schema\x01"], ids=["empty", "noise", "another shape"])
def test_a_verdict_that_cannot_be_one_is_none(stage: Stage, posted: bytes) -> None:
    stage.enter()
    stage.store.post(agreement_key("ckpt-tui/call/1"), posted)
    assert stage.look().agreement is None


def test_pulses_that_cannot_be_read_are_silence(stage: Stage) -> None:
    stage.enter()
    stage.store.set(pulse_key("ckpt-tui", hello(0, token="1.0")), encode(pulse(1)))
    stage.store.set(pulse_key("ckpt-tui", hello(1, token="1.1")), encode(pulse(1, path="x" * (1 << 20))))
    assert [status.phase for status in stage.look().statuses.values()] == [Phase.STARTING, Phase.STARTING]


def test_every_rank_has_a_status_whatever_is_known_of_it() -> None:
    hellos = {rank: hello(rank) for rank in (0, 1, 3, 4)}
    pulses = {0: pulse(0), 1: pulse(1), 4: pulse(4, Phase.DONE, left="has ended")}
    opening, broken = Opening(nonce="n", absent={2: "had not come"}), Break(absent={1: "silent for 61 s"})
    known = statuses(6, hellos, pulses, opening, broken)
    assert [known[rank].phase for rank in range(6)] == [
        *(Phase.CONTENT, Phase.LOST, Phase.ABSENT, Phase.STARTING, Phase.DONE, Phase.ABSENT)
    ]
    assert (known[1].error, known[2].error) == ("silent for 61 s", "had not come")
