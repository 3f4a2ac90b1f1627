"""Collects what the audit has to say, in the order in which it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.files import BROKEN_STATES, Finding, Severity, State
from ..present.safe import escape

if TYPE_CHECKING:
    from collections.abc import Sequence


class Findings(list[Finding]):
    """A growing list of findings. Messages are escaped text; `file` and `tensor` too."""

    def add(
        self, code: str, severity: Severity, message: str, *, file: str | None = None, tensor: str | None = None
    ) -> None:
        """One finding."""
        self.append(Finding(code=code, severity=severity, message=message, file=file, tensor=tensor))

    def state(self, state: State, message: str, file: str) -> None:
        """A file that ends in a state other than `good`: an error where the state is damage, else a warning."""
        severity = Severity.ERROR if state in BROKEN_STATES else Severity.WARNING
        self.add(state.value, severity, f"{file}: {message}", file=file)


def some(names: Sequence[str], most: int = 8) -> str:
    """The first few of many names as escaped text, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(escape, names[:most])) + more
