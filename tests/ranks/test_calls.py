"""Calls that may never return, and the deadline that holds nevertheless."""

from __future__ import annotations

import threading
import time

import pytest

from ckpt_tui.ranks.calls import Caller, NoAnswer


def test_a_call_gives_what_it_returns_and_raises_what_it_raises() -> None:
    caller = Caller("test")
    assert caller.call(lambda: 7, 5) == 7
    with pytest.raises(ZeroDivisionError):
        caller.call(lambda: 1 // 0, 5)
    with pytest.raises(TimeoutError, match="its own"):
        caller.call(lambda: (_ for _ in ()).throw(TimeoutError("its own")), 5)
    caller.close()


def test_a_call_that_never_returns_ends_at_its_deadline_and_is_not_made_again() -> None:
    never = threading.Event()
    caller = Caller("test")
    begun = time.monotonic()
    with pytest.raises(NoAnswer):
        caller.call(never.wait, 0.3)
    assert 0.3 <= time.monotonic() - begun < 5
    with pytest.raises(NoAnswer):
        caller.call(lambda: 7, 5)
    never.set()


def test_what_the_watch_raises_ends_the_wait() -> None:
    never = threading.Event()
    caller = Caller("test")

    def watch() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        caller.call(never.wait, 60, watch)
    never.set()


def test_calls_are_made_one_after_the_other() -> None:
    caller = Caller("test")
    order: list[int] = []
    futures = [caller.submit(lambda n=n: order.append(n)) for n in range(20)]
    for future in futures:
        future.result(5)
    assert order == list(range(20))
    caller.close()
