"""`-- CMD ARG...`: this process becomes the command, as if it had been started in our place.

What the command may notice of us is nothing: its environment, streams, descriptors, limits and signals are those that
we were started with. Our threads, locks and connections end with the exec.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ..facts.outcome import UsageError
from ..present.safe import error_text, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Signals that we handle, or that Python ignores on its own (so an exec would pass that on).
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Gate:
    """The command, and the state of this process before anything of ours was done to it."""

    def __init__(self, command: Sequence[str]) -> None:
        """UsageError where the command can't be found, so that no session starts in vain."""
        self._command = list(command)
        self._env = dict(os.environ)
        self._handlers = {number: signal.getsignal(number) for number in _HANDLED}
        self._inherited = _inheritable()
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._program = _find(command[0])

    def open(self, stdout: int) -> NoReturn:
        """Become the command; `stdout` is what fd 1 was. UsageError where the kernel refuses it."""
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(stdout, 1)
        for number in _inheritable() - self._inherited - {0, 1, 2}:  # torch's sockets would live on in the command
            with suppress(OSError):  # a thread of ours has just closed it
                os.set_inheritable(number, False)
        # What was set by Python ends with the exec; only what is ignored is passed on.
        for number, handler in self._handlers.items():
            signal.signal(number, signal.SIG_IGN if handler is signal.SIG_IGN else signal.SIG_DFL)
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_NOFILE, self._files)  # a session of many ranks may have raised it
        try:
            os.execve(self._program, self._command, self._env)  # noqa: S606 - what the user asked for, without a shell
        except OSError as error:
            hint = ": a script needs a first line like #!/bin/sh" if error.errno == errno.ENOEXEC else ""
            raise UsageError(
                f"the ranks agree, but {escape(self._program)} cannot be run: {error_text(error)}{hint}"
            ) from error


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is not None:
        return found
    name = escape(program)
    if os.sep not in program:
        raise UsageError(f"the command {name} is not found in PATH, so there is nothing to become")
    try:
        Path(program).stat()
    except OSError as error:
        raise UsageError(f"the command {name} is not there: {error_text(error)}") from error
    raise UsageError(f"the command {name} is no program that may be run")


def _inheritable() -> frozenset[int]:
    """The descriptors that an exec would pass on."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed since: what lists them is among them
            if os.get_inheritable(int(entry.name)):
                found.add(int(entry.name))
    return frozenset(found)
