"""Textual's driver of the terminal, which comes back from any stop and not from ^Z alone."""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver


class TerminalDriver(LinuxDriver):
    """After a SIGSTOP, which nobody is told of, the terminal is left and entered anew.

    Textual only enters it: beside the thread that reads the keys there is then a second one. Each takes keys from the
    other, only one is ended with the screen, and the modes of a screen are what the shell gets back in the end.
    """

    _continued = _coming_back = False

    def _sigcont_application(self, *args: object) -> None:
        self._continued = True
        if self._coming_back:  # it was stopped again on its way
            return
        self._coming_back = True
        try:
            while self._continued:
                self._continued = False
                before = self.attrs_before
                if self._auto_restart and not self._must_signal_resume:
                    self.suspend_application_mode()
                    self._must_signal_resume = True
                super()._sigcont_application(*args)
                self.attrs_before = before or self.attrs_before
        finally:
            self._coming_back = False
