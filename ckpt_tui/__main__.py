"""`python -m ckpt_tui` and the `ckpt-tui` command."""

from __future__ import annotations

import gc
import os
import signal
import sys


def main() -> None:
    """Run the command line and leave with its code."""
    # Tables of a hundred thousand tensors hold no cycles: looking for some while they grow costs a third of the time.
    gc.set_threshold(100_000, 50, 100)
    _fill_standard_streams()
    # Ctrl+C while the commands are imported ends the process as the signal does, without a traceback.
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli.main import run

    if raises:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(sys.argv[1:])
    gc.freeze()  # nor is what is left worth a look: it takes a tenth of a warm start
    sys.exit(code)


def _fill_standard_streams() -> None:
    """A stream that our caller has closed leads nowhere: else the next file that is opened would get its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - a descriptor, for good


if __name__ == "__main__":
    main()
