"""Who has come, whether they can make a session, and what the session is called. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..facts import ranksets
from .messages import BadMessage, Hello, decode_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def read_roster(raw: bytes) -> tuple[list[Hello], int]:
    """The hellos in the order of their coming, and how many lines are no hello of ours."""
    hellos: list[Hello] = []
    strangers = 0
    for line in raw.splitlines():
        try:
            hellos.append(decode_line(line, Hello))
        except BadMessage:
            strangers += 1
    return hellos, strangers


def quarrel(hellos: Iterable[Hello], strangers: int = 0) -> str | None:
    """Why these ranks can never make a session, in the same words on every rank; None if they may."""
    by_rank: dict[int, Hello] = {}
    for hello in hellos:
        other = by_rank.setdefault(hello.rank, hello)
        if other is not hello:
            return twice(other, hello)
    ordered = [by_rank[rank] for rank in sorted(by_rank)]
    if strangers:
        return "a process of another version of ckpt-tui takes part; all ranks need the same"
    if not ordered:
        return None
    first = ordered[0]
    for hello in ordered:
        if (hello.protocol, hello.layout) != (first.protocol, first.layout):
            return (
                f"{_who(first)} runs {first.tool} (digest layout {first.layout}, protocol {first.protocol}), "
                f"{_who(hello)} runs {hello.tool} (digest layout {hello.layout}, protocol {hello.protocol}): "
                "their digests cannot be compared; all ranks need the same version"
            )
        if hello.world_size != first.world_size:
            return f"{_who(first)} says world size {first.world_size}, {_who(hello)} says {hello.world_size}"
        if hello.handed_out != first.handed_out:
            return _mixed(first, hello)
        if hello.course != first.course:
            return f"{_who(first)} was started with {_course(first)}, {_who(hello)} with {_course(hello)}"
    refusing = next((hello for hello in ordered if hello.refusal), None)
    return f"{_who(refusing)}: {refusing.refusal}" if refusing else None


def twice(one: Hello, other: Hello) -> str:
    """What to say where two processes claim one rank."""
    if one.handed_out != other.handed_out:
        return _mixed(one, other)
    return f"two processes say rank {one.rank}: {one.host} pid {one.pid} and {other.host} pid {other.pid}"


def make_nonce(hellos: Iterable[Hello]) -> str:
    """The session's name: random in every rank's part, so that no session's messages are ever read in another."""
    tokens = sorted((hello.rank, hello.token) for hello in hellos)
    return hashlib.sha256(repr(tokens).encode()).hexdigest()[:32]


def waiting_words(here: Mapping[int, str], world_size: int) -> str:
    """Who has come and who has not: `waiting for rank 2; 2 of 3 are here: [0] node-a, [1] node-b`."""
    missing = [rank for rank in range(world_size) if rank not in here]
    by_host: dict[str, list[int]] = {}
    for rank in sorted(here):
        by_host.setdefault(here[rank], []).append(rank)
    hosts = [f"{ranksets.fold(ranks)} {host}" for host, ranks in by_host.items()]
    shown = ", ".join(hosts[:8]) + (f", {len(hosts) - 8} more hosts" if len(hosts) > 8 else "")
    words = f"{len(here)} of {world_size} are here" + (f": {shown}" if shown else "")
    return f"waiting for {ranksets.named(missing)}; {words}" if missing else words


def _mixed(one: Hello, other: Hello) -> str:
    taken, told = sorted((one, other), key=lambda hello: hello.handed_out, reverse=True)
    return (
        f"{_who(told)} pid {told.pid} was given its number, {_who(taken)} pid {taken.pid} had it handed out: "
        "give --rank to all ranks or to none"
    )


def _who(hello: Hello) -> str:
    return f"rank {hello.rank} ({hello.host})"


def _course(hello: Hello) -> str:
    return " ".join(hello.course) or "no such option"
