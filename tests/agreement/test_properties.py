"""Thousands of made-up sessions against a brute-force oracle that looks at every pair and knows the true bytes."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckpt_tui.agreement import Testimony as Said
from ckpt_tui.agreement import failed, groups_of
from ckpt_tui.agreement.groups import partition
from ckpt_tui.facts.agreement import Agreement, Fingerprint, Stage, Standing, Verdict
from ckpt_tui.facts.files import Segmentation, State

from .made_up import S1, S2, Model, Shard, judge_all, recorded, scan_of, tiny, witness

TINY = tiny()
REVISIONS = {"a" * 40: TINY, "b" * 40: TINY.with_shard(S1, tensors=(("embed", "E"), ("layers.0.w", "0"))).but()}
#: What ranks may hold, beside what the hub has: the true bytes.
VARIANTS = [
    TINY,
    TINY,
    TINY,
    REVISIONS["b" * 40],
    TINY.with_shard(S2, tensors=(("layers.1.w", "flipped"), ("lm_head", "h"))),
    TINY.with_shard(S2, metadata="pt"),
    TINY.but(sidecars={"config.json": "c", "tokenizer.json": "other"}),
    TINY.but(sidecars={"config.json": "other", "tokenizer.json": "t"}),
    TINY.but(shards={"model.safetensors": Shard(tuple(t for s in TINY.shards.values() for t in s.tensors))}),
]
DAMAGE = [State.TRUNCATED, State.MISSING, State.NOT_WEIGHTS, State.SUSPECT, State.UNREADABLE, State.CHANGED]


class Rank:
    """One made-up rank: what it truly holds, and what it can say of it."""

    def __init__(self, rng: random.Random, rank: int) -> None:
        self.rank = rank
        self.model: Model = rng.choice(VARIANTS)
        self.state = rng.choice(DAMAGE) if rng.random() < 0.15 else State.GOOD
        self.shard = rng.choice(sorted(self.model.shards))
        self.error = rng.random() < 0.05
        self.absent = rng.random() < 0.05
        self.unread = False
        self.innocent = self.state in {State.GOOD, State.SUSPECT, State.UNREADABLE, State.CHANGED}
        shown = self.model if self.state is State.GOOD else self.model.with_shard(self.shard, state=self.state)
        if rng.random() < 0.4 and self.state is State.GOOD and len(self.model.shards) == 2:
            # A snapshot: what breaks the hub's recorded hashes is what the revision does not hold.
            revision = rng.choice(sorted(REVISIONS))
            truth = REVISIONS[revision]
            wrong = [name for name in self.model.shards if self.model.shards[name] != truth.shards[name]]
            wrong += [name for name in self.model.sidecars if self.model.sidecars[name] != truth.sidecars[name]]
            shown = recorded(self.model, revision, breaks=wrong)
            self.innocent = not wrong
        if rng.random() < 0.15:
            shown = shown.with_shard(self.shard, cut=Segmentation.EXTENTS)
        if rng.random() < 0.1:
            shown = shown.but(sidecar_states={"config.json": State.UNREADABLE})
            self.unread = True
        self.shown = shown
        self.fast = rng.random() < 0.3
        self.copy = rng.choice(["x", "y", f"own {rank}", f"own {rank}"]) + str(VARIANTS.index(self.model))
        self.tables = rng.random() < 0.8

    @property
    def truth(self) -> object:
        """What lies on disk, read or not; of a broken file what can be known of it."""
        shards: dict[str, object] = dict(self.model.shards)
        if self.state in {State.MISSING, State.NOT_WEIGHTS}:
            shards[self.shard] = self.state
        if self.state is State.TRUNCATED:
            shards[self.shard] = self.state, self.model.shards[self.shard].segments()[0]
        return shards, self.model.sidecars

    def testimony(self) -> Said:
        """What it says."""
        if self.error:
            return Said(failed(self.rank, "a", "/models", "EACCES: Permission denied"))
        return witness(self.shown, self.rank, copy=self.copy, tables=self.tables, fast=self.fast)


def session(seed: int) -> tuple[list[Rank], list[Said], Agreement]:
    rng = random.Random(seed)
    size = rng.randint(1, 7)
    variants = rng.sample(range(len(VARIANTS)), rng.randint(1, 2))
    ranks = [Rank(rng, rank) for rank in range(size)]
    if rng.random() < 0.7:  # most sessions hold one or two kinds of copies
        for rank in ranks:
            again = Rank(random.Random(rng.random()), rank.rank)
            if VARIANTS.index(again.model) in variants:
                rank.__dict__.update(again.__dict__)
    heard = [rank.testimony() for rank in ranks if not rank.absent]
    absent = {rank.rank: "silent" for rank in ranks if rank.absent}
    return ranks, heard, judge_all(heard, absent=absent)


@pytest.mark.parametrize("block", range(8))
def test_no_session_is_judged_wrongly(block: int) -> None:
    seen: defaultdict[str, int] = defaultdict(int)
    for seed in range(block * 300, block * 300 + 300):
        ranks, heard, agreement = session(seed)
        seen[agreement.verdict] += 1
        check(ranks, agreement)
        shuffled = heard[:]
        random.Random(seed).shuffle(shuffled)
        absent = {rank.rank: "silent" for rank in ranks if rank.absent}
        assert judge_all(shuffled, absent=absent) == agreement
    assert set(seen) == set(Verdict), "the sessions reach every verdict"


def check(ranks: list[Rank], agreement: Agreement) -> None:
    present = [rank for rank in ranks if not rank.absent]
    answering = [rank for rank in present if not rank.error]
    by_rank = {rank.rank: rank for rank in ranks}
    truths = {repr(rank.truth) for rank in answering}
    if agreement.verdict is Verdict.AGREE:
        assert present == ranks
        assert answering == ranks
        assert len(truths) == 1
        assert all(rank.state is State.GOOD and not rank.unread for rank in ranks)
        assert agreement.weights_equal is True
    if agreement.verdict is Verdict.DIFFER:
        assert len(truths) > 1
    if agreement.verdict is Verdict.DAMAGED:
        assert any(not rank.innocent for rank in answering)
    if agreement.verdict is Verdict.INCOMPLETE:
        assert len(present) < len(ranks)
    if agreement.weights_equal is False:
        assert len({repr(rank.truth) for rank in answering}) > 1
    if agreement.weights_equal is True:
        assert len({repr(sorted(t for s in rank.model.shards.values() for t in s.tensors)) for rank in ranks}) == 1
    placed = [rank for group in agreement.groups for rank in group.ranks]
    unplaced = {error.rank for error in agreement.errors} | set(agreement.absent)
    assert len(placed) == len(set(placed))
    assert set(placed) | unplaced == set(by_rank)
    assert set(agreement.absent) == {rank.rank for rank in ranks if rank.absent}
    assert {rank.rank for rank in present if rank.error} <= unplaced
    for group in agreement.groups:
        assert len({repr(by_rank[rank].truth) for rank in group.ranks}) == 1, "a group holds one thing"
        if group.standing is Standing.WRONG:
            assert not all(by_rank[rank].innocent for rank in group.ranks), "no innocent is called wrong"
        if group.standing is Standing.MINORITY:
            majority = next(other for other in agreement.groups if other.standing is Standing.MAJORITY)
            own = {by_rank[rank].copy for rank in group.ranks}
            theirs = {by_rank[rank].copy for rank in majority.ranks}
            assert len(theirs) > len(own), "votes are copies"
    for difference in agreement.differences:
        named = {segment.name for segment in difference.segments if segment.kind == "tensor"}
        held = [dict(r.model.shards[difference.file].tensors) for r in answering if difference.file in r.model.shards]
        for name in named:
            whole = {word.get(name) for word in held}
            cut = any(rank.state is not State.GOOD for rank in answering)
            assert len(whole) > 1 or cut, f"{name} is the same everywhere"


def test_alike_and_whole_always_agree() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        model = rng.choice(VARIANTS)
        heard = [
            witness(model, rank, fast=rng.random() < 0.5, copy=rng.choice(["x", f"own {rank}"]))
            for rank in range(rng.randint(1, 6))
        ]
        assert judge_all(heard).verdict is Verdict.AGREE


def test_whole_and_unlike_never_escape() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        one, other = rng.sample(VARIANTS[2:], 2)
        heard = [witness(m, rank, fast=rng.random() < 0.5, tables=False) for rank, m in enumerate([one, other, one])]
        assert judge_all(heard).verdict is Verdict.DIFFER


# Fingerprints of any make, even such as no honest tool sends: the relation is an equivalence all the same.

digests = st.sampled_from(["1", "2", "3"])
claims = st.fixed_dictionaries(
    {
        "content": digests,
        "content_sha256": st.none() | digests,
        "segmentation": st.sampled_from(["safetensors", "extents-16MiB"]),
        "identity": st.sampled_from(["i", "i", "i", "j"]),
        "sidecars": st.sampled_from(["s", "s", "s", "t"]),
        "logical_content": st.just(None),
    }
)
WHOLE = witness(TINY, 0).fingerprint


def other_weights(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two ranks alone prove that their weight files differ."""
    if one.content_sha256 and other.content_sha256 and one.content_sha256 != other.content_sha256:
        return True
    return one.segmentation == other.segmentation and one.content != other.content


def differ(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two ranks alone prove any difference."""
    return one.identity != other.identity or one.sidecars != other.sidecars or other_weights(one, other)


def same_weights(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two ranks alone prove that their weight files are the same."""
    if other_weights(one, other):
        return False
    if one.segmentation == other.segmentation:
        return True
    return one.content_sha256 is not None and one.content_sha256 == other.content_sha256


def chained(ranks: list[Fingerprint]) -> list[set[int]]:
    """The classes that chains of proven equality make, by brute force."""
    classes: list[set[int]] = [{one.rank} for one in ranks]
    for one, other in itertools.combinations(ranks, 2):
        if same_weights(one, other):
            mine, theirs = (next(c for c in classes if r.rank in c) for r in (one, other))
            if mine is not theirs:
                classes.remove(theirs)
                mine |= theirs
    return classes


def apart(ranks: list[Fingerprint], classes: list[set[int]]) -> list[set[int]]:
    """The classes, told apart by identity and sidecars too."""
    keys: defaultdict[tuple[object, ...], set[int]] = defaultdict(set)
    for place, one in enumerate(classes):
        for rank in one:
            keys[place, ranks[rank].identity, ranks[rank].sidecars].add(rank)
    return list(keys.values())


@settings(max_examples=600, deadline=None)
@given(st.lists(claims, min_size=1, max_size=7))
def test_equality_is_an_equivalence_whatever_the_digests(said: list[dict[str, str]]) -> None:
    ranks = [msgspec.structs.replace(WHOLE, rank=rank, **fields) for rank, fields in enumerate(said)]
    found = partition(ranks, Stage.CONTENT)
    agreement = judge_all([Said(one) for one in ranks])
    groups = [set(group.ranks) for group in found.groups]
    weights = chained(ranks)
    classes = apart(ranks, weights)
    assert all(any(group <= one for one in classes) for group in groups), "only proven equality makes a group"
    for group in groups:
        assert not any(differ(ranks[a], ranks[b]) for a, b in itertools.combinations(sorted(group), 2))
    if not any(other_weights(ranks[a], ranks[b]) for one in weights for a, b in itertools.combinations(one, 2)):
        assert sorted(map(sorted, groups)) == sorted(map(sorted, classes)), "all that is proven equal is together"
        assert not found.loose
    contradicted = any(differ(a, b) for a, b in itertools.combinations(ranks, 2))
    assert (agreement.verdict is Verdict.DIFFER) == contradicted
    assert (agreement.verdict is Verdict.AGREE) == (len(classes) == 1 and not contradicted)


@settings(max_examples=200, deadline=None)
@given(st.lists(claims, min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_the_order_of_ranks_does_not_matter(said: list[dict[str, str]], rng: random.Random) -> None:
    ranks = [msgspec.structs.replace(WHOLE, rank=rank, **fields) for rank, fields in enumerate(said)]
    shuffled = ranks[:]
    rng.shuffle(shuffled)
    assert groups_of(ranks, Stage.CONTENT) == groups_of(shuffled, Stage.CONTENT)
    assert judge_all([Said(one) for one in ranks]) == judge_all([Said(one) for one in shuffled])


def test_a_scan_of_the_model_is_consistent() -> None:
    assert scan_of(TINY).content == scan_of(TINY, fast=True).content
