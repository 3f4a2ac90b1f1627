"""A shared file system may show a rank what has been: a file that another host has just written is not there yet.

So where files are missing on one, they are looked for again a few times, with the folders above listed in between,
before that is this rank's answer.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..facts.files import State
from ..present.units import count

if TYPE_CHECKING:
    from ..digest import Scanner, Survey

#: Seconds before each further look; together as long as clients keep a folder's listing at most (NFS: acdirmin 30 s).
_PAUSES = (2.0, 8.0, 25.0)


class Patience:
    """One rank's survey, with second thoughts. `waiting` says what for while it waits, `doubt` what stays open then."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self.waiting = ""
        self.doubt = ""

    def survey(self) -> Survey:
        """The survey; Interrupted when the scan is cancelled."""
        found = self._scanner.survey()
        unseen = _unseen(found)
        place = ""
        with suppress(OSError):
            file_system = self._scanner.file_system()
            place = str(file_system) if unseen and file_system.shared else ""
        if not place:
            return found
        try:
            for pause in _PAUSES:
                more = f" and {count(len(unseen) - 1, 'more file')}" if len(unseen) > 1 else ""
                self.waiting = f"waiting for the file system: {unseen[0]}{more} not seen on {place}"
                found = self._scanner.survey_again(pause)
                unseen = _unseen(found)
                if not unseen:
                    return found
        finally:
            self.waiting = ""
        self.doubt = (
            f"{unseen[0]} is not there on {place} after {sum(_PAUSES):.0f} s: if other hosts see it under this path, "
            "this one's cache of the file system is stale"
        )
        return found


def _unseen(survey: Survey) -> list[str]:
    return [file.name for file in survey.checkpoint.files if file.state is State.MISSING]
