"""stdout carries the result alone, whole and at once."""

from __future__ import annotations

import sys

from ..facts.outcome import CkptError
from ..present.safe import error_text
from ..worker.lifetime import write_all


def emit(data: bytes) -> bool:
    """The result, past Python's buffers. A reader that wants no more of it does not change what was found.

    Whether there still is a reader; CkptError where it could not be written.
    """
    sys.stdout.flush()
    try:
        write_all(sys.stdout.fileno(), data)
    except BrokenPipeError:
        return False
    except OSError as error:
        raise CkptError(f"stdout: the result could not be written: {error_text(error)}") from error
    return True
