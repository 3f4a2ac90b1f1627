"""Threads over files: who waits, who helps, and that nobody waits for nothing."""

from __future__ import annotations

import threading

import pytest

from ckpt_tui.digest.control import Control
from ckpt_tui.digest.scheduler import Job, run_longest_first
from tests.digest.conftest import SetClock

HUGE = 1 << 40


def test_a_job_that_is_put_off_goes_behind_the_others_and_is_asked_again(clock: SetClock) -> None:
    order: list[str] = []

    def put_off(_buffer: memoryview) -> bool:
        order.append("waits")
        return order.count("waits") < 4

    def ready(_buffer: memoryview) -> bool:
        order.append("ready")
        return False

    run_longest_first([Job(9, put_off), Job(1, ready)], 1, Control(clock))
    assert order == ["waits", "ready", "waits", "waits", "waits"]


def test_a_thread_without_a_job_helps_the_one_that_has_one(clock: SetClock) -> None:
    control = Control(clock)
    both = threading.Barrier(2, timeout=30)

    def step(_buffer: memoryview) -> bool:
        both.wait()
        return False

    def run(buffer: memoryview) -> bool:
        with control.crew.helped(step, 1):
            step(buffer)
        return False

    run_longest_first([Job(HUGE, run)], 2, control)
    assert both.broken is False


def test_a_thread_that_waits_for_work_takes_a_job_that_another_put_off(clock: SetClock) -> None:
    control = Control(clock)
    asked: list[str] = []
    second = threading.Event()

    def first(_buffer: memoryview) -> bool:
        assert second.wait(30)
        return False

    def put_off(_buffer: memoryview) -> bool:
        asked.append(threading.current_thread().name)
        if len(asked) == 3:
            second.set()
        return len(asked) < 3

    run_longest_first([Job(HUGE, first), Job(1, put_off)], 3, control)
    assert len(asked) == 3


def test_what_fails_wakes_the_threads_that_wait_for_work(clock: SetClock) -> None:
    def fail(_buffer: memoryview) -> bool:
        raise ValueError("a fault of ours")

    with pytest.raises(ValueError, match="a fault of ours"):
        run_longest_first([Job(HUGE, fail)], 8, Control(clock))


@pytest.mark.parametrize("size", [0, 1])
def test_small_files_start_no_threads_that_could_only_look_on(size: int, clock: SetClock) -> None:
    before = set(threading.enumerate())
    started: set[threading.Thread] = set()

    def note(_buffer: memoryview) -> bool:
        started.update(threading.enumerate())
        return False

    run_longest_first([Job(size, note)], 8, Control(clock))
    assert len(started - before) == 1
