"""Which rank this is, and where the store is: flags before torchrun before a complete RANK set."""

from __future__ import annotations

import pytest

from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.ranks import Flags, find_place
from ckpt_tui.ranks.address import Address, parse_address

RANK_SET = {"MASTER_ADDR": "node-a", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}
TORCHRUN = RANK_SET | {
    "TORCHELASTIC_RUN_ID": "job7",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("node-a:29500", "node-a", 29500), ("[fd00::1]:80", "fd00::1", 80), ("[fe80::1%eth0]:1", "fe80::1%eth0", 1)],
)
def test_an_address_reads_as_it_is_written(text: str, host: str, port: int) -> None:
    assert parse_address(text, given_by="--master") == Address(host, port)
    assert str(Address(host, port)) == text


@pytest.mark.parametrize("text", ["", "node-a", ":1", "node-a:", "node-a:x", "a:0", "a:65536", "a b:1", "http://a:1"])
def test_what_is_no_address_is_a_usage_error_that_names_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        parse_address(text, given_by="--master")


def test_an_ipv6_address_without_brackets_gets_the_advice() -> None:
    with pytest.raises(UsageError, match="brackets"):
        parse_address("fd00::1:29500", given_by="--master")


def test_flags_come_before_torchrun() -> None:
    place = find_place(Flags(master="other:1234", world_size=2, rank=0), TORCHRUN)
    assert (place.rank, place.world_size, place.store) == (0, 2, Address("other", 1234))
    assert place.hosts_store
    assert place.scope == ""


def test_a_flag_that_is_missing_is_taken_from_its_variable() -> None:
    place = find_place(Flags(master="other:1234"), RANK_SET)
    assert (place.rank, place.world_size) == (3, 4)
    assert find_place(Flags(rank=2, world_size=3), RANK_SET).store == Address("node-a", 29500)


def test_under_torchrun_nobody_binds_and_each_attempt_is_apart() -> None:
    place = find_place(Flags(), TORCHRUN | {"RANK": "0"})
    assert (place.rank, place.local_rank, place.store) == (0, 1, Address("node-a", 29500))
    assert not place.hosts_store
    assert place.scope == "job7/2"
    assert find_place(Flags(), TORCHRUN | {"TORCHELASTIC_RESTART_COUNT": "3"}).scope == "job7/3"


def test_where_the_agent_serves_no_store_rank_0_does() -> None:
    env = TORCHRUN | {"TORCHELASTIC_USE_AGENT_STORE": "False"}
    assert find_place(Flags(), env | {"RANK": "0"}).hosts_store
    assert not find_place(Flags(), env).hosts_store


def test_a_complete_rank_set_is_a_place_and_rank_0_serves_the_store() -> None:
    assert find_place(Flags(), RANK_SET | {"RANK": "0"}).hosts_store
    place = find_place(Flags(), RANK_SET | {"GLOO_SOCKET_IFNAME": "eth0, ib0"})
    assert not place.hosts_store
    assert place.interfaces == ("eth0", "ib0")


def test_one_rank_alone_needs_no_address_and_no_number() -> None:
    place = find_place(Flags(world_size=1), {})
    assert (place.rank, place.store.host) == (0, "127.0.0.1")


def test_where_no_number_is_given_one_is_to_be_handed_out() -> None:
    place = find_place(Flags(master="node-a:29500", world_size=2), {})
    assert (place.rank, place.hosts_store) == (None, False)
    with pytest.raises(UsageError, match="--rank"):
        _ = place.number


@pytest.mark.parametrize("missing", ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"])
def test_an_incomplete_set_gets_advice(missing: str) -> None:
    with pytest.raises(UsageError, match="torchrun"):
        find_place(Flags(), {name: value for name, value in RANK_SET.items() if name != missing})


@pytest.mark.parametrize(
    ("flags", "env"),
    [
        (Flags(master="a:1", rank=0), {}),
        (Flags(rank=0, world_size=2), {}),
        (Flags(master="a:1", rank=2, world_size=2), {}),
        (Flags(master="a:1", rank=0, world_size=0), {}),
        (Flags(), RANK_SET | {"RANK": "4"}),
        (Flags(), RANK_SET | {"RANK": "-1"}),
        (Flags(), RANK_SET | {"WORLD_SIZE": "many"}),
        (Flags(), RANK_SET | {"MASTER_PORT": "0"}),
    ],
)
def test_a_place_that_cannot_be_is_a_usage_error(flags: Flags, env: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        find_place(flags, env)
