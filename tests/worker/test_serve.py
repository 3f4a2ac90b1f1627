"""What the worker's process does where its own job breaks it."""

from __future__ import annotations

import sys

from ckpt_tui.facts.outcome import Exit
from tests.worker.child import watching

_BROKEN = """
import threading
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.stream.messages import Mode
from ckpt_tui.worker.serve import serve

class Broken:
    def work(self): threading.Event().wait()
    def publish(self, post): raise ValueError("no such\\x1b thing")
    def cancel(self): pass
    def watch(self, rank): pass
    def code(self): return None

serve(Broken, SystemClock(), mode=Mode.SCAN)
"""


def test_a_job_that_cannot_be_published_ends_the_worker_with_the_reason_and_no_verdict() -> None:
    with watching([sys.executable, "-c", _BROKEN]) as child:
        state = child.until(lambda state: state.ended)
    assert state.bye is not None
    assert state.bye.code == Exit.UNDECIDED
    assert state.bye.reason.startswith("this should not have happened: ValueError: no such\\x1b thing (<string>:")
    assert state.ended is not None
    assert state.ended.code == Exit.UNDECIDED
