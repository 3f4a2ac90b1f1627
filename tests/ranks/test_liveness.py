"""Who is silent, by a clock that the test holds."""

from __future__ import annotations

from ckpt_tui.ranks.liveness import MAX_STEP, Liveness


def watch(liveness: Liveness, start: float, seconds: float, beats: dict[int, int]) -> float:
    """Look four times a second while the beats stand still; the time after that."""
    now = start
    while now < start + seconds:
        now += 0.25
        liveness.observe(now, beats)
    return now


def test_a_rank_whose_beat_stands_still_is_lost_after_the_timeout_and_not_before() -> None:
    liveness = Liveness([1, 2], 10, 0)
    liveness.observe(0.25, {1: 1, 2: 1})
    now = watch(liveness, 0.25, 9.5, {1: 1, 2: 1})
    assert liveness.silent() == {}
    watch(liveness, now, 0.5, {1: 1, 2: 2})
    assert list(liveness.silent()) == [1]
    assert liveness.silence[2] < 1


def test_a_slow_rank_that_beats_is_never_lost() -> None:
    """Case R04 d."""
    liveness = Liveness([1], 10, 0)
    for beat in range(100):
        watch(liveness, beat * 9.0, 9.0, {1: beat})
        assert liveness.silent() == {}


def test_a_rank_that_was_never_heard_is_lost_too() -> None:
    liveness = Liveness([1], 10, 0)
    watch(liveness, 0, 10, {})
    assert list(liveness.silent()) == [1]


def test_time_in_which_this_process_did_not_look_accuses_nobody() -> None:
    liveness = Liveness([1], 10, 0)
    liveness.observe(1, {1: 1})
    liveness.observe(3600, {1: 1})
    assert liveness.silence[1] <= MAX_STEP


def test_a_clock_that_goes_back_does_no_harm() -> None:
    liveness = Liveness([1], 10, 100)
    liveness.observe(50, {1: 1})
    liveness.observe(50.5, {1: 1})
    assert liveness.silence[1] == 0.5


def test_a_rank_that_beats_again_is_heard_again() -> None:
    liveness = Liveness([1], 10, 0)
    now = watch(liveness, 0, 9, {1: 1})
    liveness.observe(now + 0.25, {1: 2})
    assert liveness.silence[1] == 0
