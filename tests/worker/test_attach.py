"""Viewers of real sessions: they see what the ranks do, and the ranks do not see them."""

from __future__ import annotations

import http.server
import os
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from ckpt_tui.facts.agreement import Agreement
from ckpt_tui.facts.status import Phase
from ckpt_tui.stream.messages import Descend, DrillState, Place, Quit, Release, Watch, Word
from ckpt_tui.stream.state import StreamState
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.ranks import Ended, Ranks, free_port
from tests.worker.child import Watcher, watching, worker_argv

#: Six tensors of 1 MiB a file, read at 3 MiB a second: a session of a few seconds.
LARGE = (512, 512)
SLOW = ("--max-rate", "3M")


def attach(port: int, *, wait: float = 20) -> list[str]:
    return worker_argv("attach", f"--wait={wait}", "--", f"127.0.0.1:{port}")


def copies(folder: Path, count: int) -> list[Path]:
    made = [write_checkpoint(folder / str(number), shape=LARGE) for number in range(count)]
    shard = made[-1] / "model-00002-of-00002.safetensors"
    flip_bit(shard, payload_offset(shard) + 5)
    return made


def reading(state: StreamState) -> bool:
    phases = [row.status.phase for row in state.ranks.values()]
    return bool(phases) and all(phase is Phase.CONTENT for phase in phases)


def end_as_without_viewers(ended: list[Ended]) -> None:
    assert [rank.code for rank in ended] == [1] * len(ended), [rank.err for rank in ended]
    assert len({rank.out for rank in ended}) == 1
    assert ended[0].agreement["verdict"] == "differ"


def test_a_viewer_sees_ranks_files_and_the_whole_verdict_and_leaves_with_its_code(tmp_path: Path) -> None:
    folders = copies(tmp_path, 2)
    with Ranks(2, SLOW) as ranks, watching(attach(ranks.port)) as viewer:
        ranks.start(0, folders[0])
        viewer.until(lambda state: state.ranks and state.ranks[0].status.phase is Phase.MEETING)
        assert viewer.state.ranks[1].status.phase is Phase.ABSENT
        viewer.until(lambda state: state.survey)
        assert viewer.state.survey is not None
        assert viewer.state.survey.join.endswith(f"--master 127.0.0.1:{ranks.port} --world-size 2 --rank")
        ranks.start(1, folders[1])
        viewer.until(reading)
        viewer.source.send(Watch(rank=1))
        files = viewer.until(lambda state: state.watched == 1 and len(state.files.get(1, {})) > 2).files[1]
        assert {file.name for file in files.values()} >= {"model-00001-of-00002.safetensors", "config.json"}
        state = viewer.until(lambda state: state.over)
        end_as_without_viewers(ranks.end())
    assert isinstance(state.result, Agreement)
    assert state.verdict is not None
    assert (state.verdict.word, state.verdict.code) == (Word.DIFFER, 1)
    assert state.bye is not None
    assert state.bye.code == 1
    assert all(row.result is not None for row in state.files[1].values())


def test_viewers_that_are_killed_stopped_or_many_do_not_disturb_the_ranks(tmp_path: Path) -> None:
    folders = copies(tmp_path, 2)
    with Ranks(2, SLOW) as ranks, ExitStack() as stack:
        for rank, folder in enumerate(folders):
            ranks.start(rank, folder)
        viewers: list[Watcher] = [stack.enter_context(watching(attach(ranks.port))) for _ in range(3)]
        for viewer in viewers:
            viewer.until(reading)
        os.kill(viewers[0].source.pid, signal.SIGKILL)
        os.kill(viewers[1].source.pid, signal.SIGSTOP)
        ended = ranks.end()
        end_as_without_viewers(ended)
        assert not any(rank.err for rank in ended)
        for viewer in viewers[2:]:
            assert isinstance(viewer.until(lambda state: state.over).result, Agreement)
        os.kill(viewers[1].source.pid, signal.SIGKILL)


def test_a_lost_rank_is_named_and_the_verdict_of_the_others_is_shown(tmp_path: Path) -> None:
    folders = copies(tmp_path, 3)
    with Ranks(3, (*SLOW, "--rank-timeout", "2s")) as ranks, watching(attach(ranks.port)) as viewer:
        for rank, folder in enumerate(folders):
            ranks.start(rank, folder)
        viewer.until(reading)
        ranks.signal(1, signal.SIGKILL)
        state = viewer.until(lambda state: state.over)
        assert [rank.code for rank in ranks.end(0, 2)] == [4, 4]
    assert state.ranks[1].status.phase is Phase.LOST
    assert state.verdict is not None
    assert (state.verdict.word, state.verdict.code) == (Word.INCOMPLETE, 4)


def test_ranks_that_are_held_answer_a_viewer_and_are_let_go_by_its_word_not_by_its_leaving(tmp_path: Path) -> None:
    folders = copies(tmp_path, 2)
    place = Place(file="model-00002-of-00002.safetensors")
    with Ranks(2, ("--hold=30s",)) as ranks, watching(attach(ranks.port)) as stopped:
        with watching(attach(ranks.port)) as first:
            ranks.start(0, folders[0])
            stopped.until(lambda state: state.ranks)
            first.until(lambda state: state.ranks)
            with watching(attach(ranks.port)) as second:
                second.until(lambda state: state.ranks)
                ranks.start(1, folders[1])
                for viewer in (first, second, stopped):
                    viewer.until(lambda state: state.holding and state.holding.ready)
                os.kill(stopped.source.pid, signal.SIGSTOP)
                second.source.send(Descend(place=place))
                (segment,) = second.until(lambda state: answered(state, place)).drills[place].segments
                second.source.send(Quit())
                holding = second.until(lambda state: state.over).holding
                assert holding is not None
                assert holding.reason == "this viewer has left; the session goes on"
            below = Place(file=place.file, kind=segment.kind, name=segment.name, offset=segment.offset)
            first.source.send(Descend(place=below))
            drill = first.until(lambda state: answered(state, below)).drills[below].drill
            assert drill is not None
            assert drill.leaves_differing == 1
            first.source.send(Release())
            holding = first.until(lambda state: state.over).holding
        assert holding is not None
        assert (holding.ready, holding.reason) == (False, "a viewer has let them go")
        assert [rank.code for rank in ranks.end(seconds=20)] == [1, 1]
        os.kill(stopped.source.pid, signal.SIGCONT)
        state = stopped.until(lambda state: state.over)
        assert state.holding is not None
        assert state.holding.reason.endswith("answers no more, as when a session has ended")
        assert state.bye is not None
        assert state.bye.code == 1


def answered(state: StreamState, place: Place) -> bool:
    row = state.drills.get(place)
    assert row is None or row.state is not DrillState.FAILED, row
    return row is not None and row.state is DrillState.DONE


def test_under_torchrun_a_viewer_finds_the_session_in_the_agents_store(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", shape=LARGE)
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    port = free_port()
    with Ranks(2) as ranks, watching(attach(port, wait=30)) as viewer:
        ranks.launch(
            "torchrun",
            [
                *(torchrun, "--nnodes=1", "--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}"),
                *("--no-python", sys.executable, "-m", "ckpt_tui", "ranks", str(folder), "--no-cache", "--max-rate=3M"),
            ],
        )
        viewer.until(reading, 40)
        assert viewer.state.survey is None or not viewer.state.survey.join
        state = viewer.until(lambda state: state.over)
        assert [one.code for one in ranks.end()] == [0]
    assert state.verdict is not None
    assert (state.verdict.word, state.verdict.code) == (Word.AGREE, 0)


def fails(port: int, code: int, *words: str, wait: float = 0.5) -> None:
    """A viewer ends with this code and one line with these words."""
    with watching(attach(port, wait=wait)) as viewer:
        bye = viewer.until(lambda state: state.bye).bye
    assert bye is not None
    assert bye.code == code
    assert [word for word in words if word not in bye.reason] == []


def test_nobody_there_is_one_line() -> None:
    fails(free_port(), 4, "nobody listens at 127.0.0.1:")


def test_another_service_at_the_address_is_one_line() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        fails(server.server_address[1], 4, "store")
        server.shutdown()


def test_ranks_with_screens_get_their_numbers_from_the_store(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model")
    argv = worker_argv("ranks", "--no-cache", f"--master=127.0.0.1:{free_port()}", "--world-size=2", "--", str(folder))
    with watching(argv) as one, watching(argv) as other:
        states = [screen.until(lambda state: state.over) for screen in (one, other)]
    assert sorted(state.survey.rank for state in states if state.survey) == [0, 1]
    assert [state.bye.code for state in states if state.bye] == [0, 0]
    assert not any(state.survey.join for state in states if state.survey)
