"""`python -m tests.support.sick FAULT FILE OFFSET MARK ranks ...`: ckpt-tui on a machine that reads one byte wrongly.

Below all of our own code: what `preadv` gives of a file with this name, where it holds this offset. `flips-once` gives
another bit the first time alone, `flips` every time; `hangs-again` never returns the second time, once MARK is there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event
from typing import Any


def fall_ill(fault: str, name: str, offset: int, mark: Path) -> None:
    """From now on `os.preadv` is not to be trusted."""
    honest, times = os.preadv, [0]

    def preadv(descriptor: int, buffers: Any, start: int, flags: int = 0) -> int:
        count = honest(descriptor, buffers, start, flags)
        if start <= offset < start + count and Path(f"/proc/self/fd/{descriptor}").readlink().name == name:
            times[0] += 1
            if fault == "flips" or (fault == "flips-once" and times[0] == 1):
                buffers[0][offset - start] ^= 1
            if fault == "hangs-again" and times[0] == 2:
                mark.touch()
                Event().wait()
        return count

    os.preadv = preadv


if __name__ == "__main__":
    fall_ill(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    sys.argv[1:] = sys.argv[5:]
    from ckpt_tui.__main__ import main

    main()
