"""Who may make a session, and what is said where they may not: in the same words on every rank."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.ranks.messages import Hello, encode_line
from ckpt_tui.ranks.roster import make_nonce, quarrel, read_roster, waiting_words


def hello(rank: int, **changes: object) -> Hello:
    """A rank of three as it should be."""
    usual = Hello(
        protocol=1,
        layout=1,
        tool="ckpt-tui 1",
        rank=rank,
        world_size=3,
        host=f"node-{rank}",
        pid=100 + rank,
        token=f"{rank}",
    )
    return msgspec.structs.replace(usual, **changes)


def test_ranks_that_fit_do_not_quarrel() -> None:
    assert quarrel([hello(0), hello(1), hello(2)]) is None
    assert quarrel([hello(0), hello(1, tool="ckpt-tui 2")]) is None
    assert quarrel([]) is None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (hello(1, world_size=4), ("world size 3", "rank 1 (node-1) says 4")),
        (hello(1, layout=2, tool="ckpt-tui 9"), ("digest layout 1", "ckpt-tui 9 (digest layout 2", "same version")),
        (hello(1, protocol=2), ("protocol 1", "protocol 2")),
        (hello(0, pid=7, token="x"), ("two processes say rank 0", "node-0 pid 100", "pid 7")),
        (hello(1, course=("--keep-going",)), ("--keep-going",)),
    ],
)
def test_ranks_that_do_not_fit_are_told_who_says_what(other: Hello, words: tuple[str, ...]) -> None:
    said = quarrel([hello(0), other, hello(2)])
    assert said is not None
    assert all(word in said for word in words)


def test_the_words_do_not_depend_on_who_came_first() -> None:
    assert quarrel([hello(0), hello(1, world_size=4)]) == quarrel([hello(1, world_size=4), hello(0)])


def test_a_roster_reads_back_and_counts_what_is_no_hello() -> None:
    lines = b"".join(map(encode_line, [hello(1), hello(0)]))
    assert read_roster(lines) == ([hello(1), hello(0)], 0)
    assert read_roster(lines + b'{"rank": "x"}\n') == ([hello(1), hello(0)], 1)
    assert quarrel([hello(0)], strangers=1) is not None


@pytest.mark.parametrize("host", ["a\nb", "a\x1b[31mb", "a\u202eb", "a\\q"])
def test_a_host_name_that_may_not_be_shown_is_no_hello(host: str) -> None:
    assert read_roster(encode_line(hello(0, host=host)))[1] == 1


@given(st.binary(max_size=200))
def test_no_bytes_break_a_roster(raw: bytes) -> None:
    hellos, _ = read_roster(raw)
    assert hellos == []


def test_the_nonce_is_everybodys_and_nobodys_alone() -> None:
    everybody = [hello(0), hello(1), hello(2)]
    nonce = make_nonce(everybody)
    assert nonce == make_nonce(reversed(everybody))
    for rank in range(3):
        others = [one if one.rank != rank else hello(rank, token="new") for one in everybody]
        assert make_nonce(others) != nonce


def test_those_who_wait_say_who_is_here() -> None:
    assert waiting_words({0: "a", 1: "a"}, 3) == "waiting for rank 2; 2 of 3 are here: [0,1] a"
    assert waiting_words({1: "b"}, 4).startswith("waiting for ranks [0,2,3]; 1 of 4")
    assert len(waiting_words({rank: f"host{rank}" for rank in range(1000)}, 4096)) < 300
