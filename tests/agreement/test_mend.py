"""The command that would mend: for the copy that is bad, from where it is right, and as a shell takes it."""

from __future__ import annotations

import shlex

import pytest

from ckpt_tui.facts.agreement import Agreement, CauseCode
from ckpt_tui.facts.files import State
from tests.agreement.made_up import S1, S2, Model, judge_all, recorded, tiny, witness

TINY = tiny()
FLIPPED = TINY.with_shard(S2, tensors=(("layers.1.w", "flipped"), ("lm_head", "h")))


def mend_of(*models: Model, hosts: str = "", copies: tuple[str, ...] = (), name: str = S2) -> str:
    agreement = judged(*models, hosts=hosts, copies=copies)
    return next(one.cause.mend for one in agreement.differences if one.file == name)


def judged(*models: Model, hosts: str = "", copies: tuple[str, ...] = ()) -> Agreement:
    hosts = hosts or "a" * len(models)
    copies = copies or tuple(f"copy{place}" for place in range(len(models)))
    heard = [
        witness(model, rank, host=host, copy=copy)
        for rank, (model, host, copy) in enumerate(zip(models, hosts, copies, strict=True))
    ]
    return judge_all(heard)


def test_a_hub_snapshot_is_fetched_again() -> None:
    words = shlex.split(mend_of(recorded(TINY), recorded(FLIPPED, breaks=[S2])))
    assert words == ["hf", "download", "org/tiny", S2, "--revision", "a" * 40, "--force-download"]


def test_between_hosts_rsync_compares_by_bytes() -> None:
    assert mend_of(TINY, FLIPPED, TINY, hosts="xyz") == f"rsync --checksum x:/models/copy0/{S2} /models/copy1/{S2}"


def test_on_one_host_it_is_copied_and_no_link_is_written_through() -> None:
    wanted = f"cp --remove-destination /models/copy0/{S2} /models/copy1/{S2}"
    assert mend_of(TINY, FLIPPED, TINY, hosts="xxx") == wanted


def test_words_that_a_shell_would_take_apart_are_quoted() -> None:
    copies = ("my copy; rm -rf ~", "it's $HOME", "z")
    words = shlex.split(mend_of(TINY, FLIPPED, TINY, copies=copies))
    assert words[2:] == [f"/models/{copies[0]}/{S2}", f"/models/{copies[1]}/{S2}"]
    assert "-s" in shlex.split(mend_of(TINY, FLIPPED, TINY, hosts="xyz", copies=copies))


def test_of_two_equals_nobody_is_told_to_overwrite_the_other() -> None:
    assert mend_of(TINY, FLIPPED) == ""


@pytest.mark.parametrize("state", [State.TRUNCATED, State.MISSING])
def test_what_is_plainly_broken_is_mended_without_a_majority(state: State) -> None:
    assert mend_of(TINY, TINY.with_shard(S2, state=state)).startswith("cp ")


@pytest.mark.parametrize("state", [State.UNREADABLE, State.CHANGED])
def test_what_a_fresh_copy_would_not_mend_has_no_command(state: State) -> None:
    assert mend_of(TINY, TINY.with_shard(S2, state=state), TINY) == ""


def test_a_pointer_is_pulled_where_it_lies() -> None:
    pointer = TINY.with_shard(S2, state=State.NOT_WEIGHTS)
    assert mend_of(TINY, pointer) == f"git -C /models/copy1 lfs pull --include {S2}"


@pytest.mark.parametrize("name", ["a[1].safetensors", "a,b.safetensors", "a*.safetensors"])
def test_a_pattern_for_git_is_no_name(name: str) -> None:
    shards = {S1: TINY.shards[S1], name: TINY.shards[S2]}
    pointer = TINY.but(shards=shards).with_shard(name, state=State.NOT_WEIGHTS)
    assert mend_of(TINY.but(shards=shards), pointer, name=name) == "git -C /models/copy1 lfs pull"


@pytest.mark.parametrize("name", ["-rf.safetensors", "a\\nb.safetensors", "\\udcff.safetensors"])
def test_a_name_that_is_not_shown_as_it_is_has_no_command(name: str) -> None:
    shards = {S1: TINY.shards[S1], name: TINY.shards[S2]}
    bad = TINY.but(shards={S1: TINY.shards[S1], name: FLIPPED.shards[S2]})
    good = TINY.but(shards=shards)
    assert mend_of(good, bad, good, name=name) == ""


def test_a_copy_of_another_make_is_not_mended_file_by_file() -> None:
    tensors = [tensor for shard in TINY.shards.values() for tensor in shard.tensors]
    other = TINY.but(shards={f"s{n}.safetensors": type(TINY.shards[S1])(tuple(tensors[n::3])) for n in range(3)})
    agreement = judged(TINY, other, TINY)
    assert {one.cause.code for one in agreement.differences} == {CauseCode.RESHARDED}
    assert {one.cause.mend for one in agreement.differences} == {""}
