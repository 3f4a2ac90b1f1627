"""Textual's driver of the terminal: it comes back from any stop, and lets nobody wait who was told to end."""

from __future__ import annotations

import os
import select
import signal
import termios
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds after which a terminal that takes no output, not a byte, is not waited for by a screen that is to end.
_STALLED = 1.5


class TerminalDriver(LinuxDriver):
    """Textual's own, but for three things.

    After a SIGSTOP, which nobody is told of, the terminal is left and entered anew.

    Textual only enters it: beside the thread that reads the keys there is then a second one. Each takes keys from the
    other, only one is ended with the screen, and the modes of a screen are what the shell gets back in the end.

    What a signal asks for is done by the event loop. Textual does it in the signal's handler, which waits for ever if
    the main thread was about to write: it holds the lock that writing needs.

    And where nobody reads the terminal any more (a connection that has died, a window that is stopped) all writing
    waits for ever, the goodbye's too. `end_where_stalled` ends the process then.
    """

    _continued = False
    _entered = False

    def start_application_mode(self) -> None:
        """Enter the terminal."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._entered = True

    def stop_application_mode(self) -> None:
        """Leave the terminal."""
        super().stop_application_mode()
        self._entered = False

    def _sigtstp_application(self, *_: object) -> None:
        self._soon(self._stop)

    def _sigcont_application(self, *_: object) -> None:
        self._continued = True
        self._soon(self._come_back)

    def _soon(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and so is the screen
            self._loop.call_soon_threadsafe(what)

    def _stop(self) -> None:
        if not self._entered:
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        super()._sigtstp_application()
        # Here again, and nothing may be written before the terminal is entered.
        self._continued = True
        self._come_back()

    def _come_back(self) -> None:
        while self._continued:  # it may be stopped again on its way
            self._continued = False
            if not self._entered and not self._must_signal_resume:
                return  # left for good: a terminal that is closed sends the signal too
            before = self.attrs_before
            if self._auto_restart and not self._must_signal_resume:
                self.suspend_application_mode()
                self._must_signal_resume = True
            super()._sigcont_application()
            self.attrs_before = before or self.attrs_before

    def end_where_stalled(self, code: int) -> None:
        """End the process with this code if the terminal stalls; to be called in a signal's handler, before leaving.

        The worker ends with us, as its stdin does.
        """
        threading.Thread(target=self._end_where_stalled, args=(code,), name="stalled terminal", daemon=True).start()

    def _end_where_stalled(self, code: int) -> None:
        output = self._file.fileno() if self._file else self.fileno
        while select.select([], [output], [], _STALLED)[1]:
            threading.Event().wait(0.1)
        if self.attrs_before is not None:
            with suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
        os._exit(code)
