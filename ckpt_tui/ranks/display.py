"""What a session shows to those who watch it from outside, through the store: next to nothing while nobody does.

A viewer counts up a rank's `watch` key for as long as it wants to see that rank's files. While the counter moves the
rank puts its survey and its file rows into the store, in pages, and then those pages again that have changed. A viewer
counts itself in `viewers` too: then the verdict is put there as well. No rank waits for any of these keys, but for the
moment that `see_off` grants; the viewer's side is `viewer.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stream import rows
from .messages import Page, Shelf, encode

if TYPE_CHECKING:
    from ..digest import Scanner
    from ..facts.agreement import Agreement
    from ..facts.clock import Clock
    from ..facts.settings import ScanSettings
    from .messages import Hello
    from .store import Store

#: Where every session that begins on a store is listed: a line of JSON each (`messages.Listed`).
DIRECTORY = "ckpt-tui/sessions"
#: Rows in a page; one row is under a kilobyte, but for names of unusual length.
PAGE = 100
#: Bytes of a page at most.
_PAGE_BYTES = 1 << 20
#: Seconds for which rows are kept up to date after the counter has last moved.
_KEEP = 5.0
_LOOK = 0.05


def watch_key(scope: str, token: str) -> str:
    """The counter that viewers of a rank's files move."""
    return f"{scope}/watch/{token}"


def shelf_key(scope: str, token: str) -> str:
    """Where a rank's survey lies, and the editions of its pages."""
    return f"{scope}/shelf/{token}"


def page_key(scope: str, token: str, page: int) -> str:
    """Where a page of a rank's rows lies."""
    return f"{scope}/shelf/{token}/{page}"


def viewers_key(call: str) -> str:
    """The number of viewers that have come and not said that they leave."""
    return f"{call}/viewers"


def served_key(call: str) -> str:
    """The number of viewers that have read the verdict."""
    return f"{call}/served"


def agreement_key(call: str) -> str:
    """Where the verdict is posted."""
    return f"{call}/agreement"


class Display:
    """One rank's files, shown while somebody asks. `serve` is called by telemetry, in its thread, at every beat."""

    def __init__(self, scanner: Scanner, settings: ScanSettings, clock: Clock) -> None:
        self._scanner = scanner
        self._settings = settings
        self._clock = clock
        self._asked = b"0"
        self._until = float("-inf")
        self._looks: list[object] = []
        self._editions: list[int] = []

    def serve(self, store: Store, scope: str, me: Hello, asked: bytes) -> None:
        """`asked` is what the rank's watch key holds now: whatever it is, only that it moved counts."""
        now = self._clock.monotonic()
        if asked != self._asked:
            self._asked = asked
            self._until = now + _KEEP
        progress = self._scanner.progress
        if now >= self._until or not progress.files:
            return
        survey = self._scanner.survey()
        files = survey.checkpoint.files
        # How far a file is that is being read travels with the rank's status, at every beat.
        looks: list[object] = [(one.cell, one.finished, id(one.result)) for one in progress.files]
        pages = range(-(-len(files) // PAGE))
        if not self._editions:
            self._editions = [0 for _ in pages]
        changed = False
        for page in pages:
            places = range(page * PAGE, min((page + 1) * PAGE, len(files)))
            if self._looks[places.start : places.stop] == looks[places.start : places.stop]:
                continue
            made = tuple(rows.own_file(me.rank, at, files[at], progress.files[at], now) for at in places)
            raw = encode(Page(rows=made))
            if len(raw) > _PAGE_BYTES:  # names of unheard-of length: nobody's screen could take them
                raw = encode(Page(rows=tuple(row for row in made if len(row.name) < _PAGE_BYTES // (4 * PAGE))))
            store.set(page_key(scope, me.token, page), raw)
            self._editions[page] += 1
            changed = True
        self._looks = looks
        if changed:
            row = rows.survey_row(
                survey,
                self._settings,
                host=me.host,
                threads=progress.threads,
                rank=me.rank,
                world_size=me.world_size,
            )
            store.set(shelf_key(scope, me.token), encode(Shelf(survey=row, editions=tuple(self._editions))))


def show_verdict(store: Store, call: str, agreement: Agreement) -> None:
    """Put the verdict where viewers find it, if any have come. Called on one rank."""
    if store.add(viewers_key(call), 0) > 0:
        store.post(agreement_key(call), encode(agreement))


def see_off(store: Store, call: str, seconds: float, clock: Clock) -> None:
    """The store may go with this session: let the viewers that are here read the verdict first."""
    end = clock.monotonic() + seconds
    while clock.monotonic() < end and store.add(served_key(call), 0) < store.add(viewers_key(call), 0):
        clock.sleep(_LOOK)
