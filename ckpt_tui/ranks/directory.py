"""Which sessions a store knows, seen from outside, and the one to watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..facts.outcome import CkptError, Exit, UsageError
from ..facts.version import TOOL
from ..present import units
from ..present.safe import unescape
from .display import DIRECTORY
from .messages import PROTOCOL, BadMessage, Hello, Listed, Opening, Pulse, decode, decode_line
from .roster import read_roster
from .telemetry import pulse_key

if TYPE_CHECKING:
    from .store import Store

#: The newest sessions of a store that are looked at: a restart loop may have left thousands.
_NEWEST = 32
#: No pulse is longer than this, and no world is larger: the store may hold what a stranger put there.
MAX_PULSE, MAX_WORLD = 256 << 10, 1 << 16


class NoSession(CkptError):
    """There is a store, and nothing in it that could be watched."""

    code = Exit.INCOMPLETE


class Entry(NamedTuple):
    """One session in a store. `number` counts from 1, in the order of their beginning; `call` is where it meets."""

    number: int
    scope: str
    call: str
    world_size: int


def entries(store: Store) -> list[Entry]:
    """The sessions of this store that may be watched, the newest last; none where it knows none.

    UsageError where the newest is of a version that speaks otherwise.
    """
    if not store.has(DIRECTORY):
        return []
    lines = store.get([DIRECTORY])[0].splitlines()
    found: list[Entry] = []
    other: Listed | None = None
    for number, line in list(enumerate(lines, 1))[-_NEWEST:]:
        try:
            listed = decode_line(line, Listed)
        except BadMessage:
            continue
        other = listed if listed.protocol != PROTOCOL else None
        if other is None and 0 < listed.world_size <= MAX_WORLD:
            scope = unescape(listed.scope)
            found.append(Entry(number, scope, f"{scope}/call/{listed.call}", listed.world_size))
    if other is not None:
        raise UsageError(
            f"the session on {store.address} runs {other.tool} (protocol {other.protocol}), this is {TOOL} "
            f"(protocol {PROTOCOL}): attach with the version that it runs"
        )
    return found


def choose(store: Store, found: list[Entry], number: int | None) -> tuple[Entry, str]:
    """The session to watch, and what a person should know of the choice.

    The one that was asked for, else the newest that runs, else the newest. UsageError for a number that is not there.
    """
    if number is not None:
        for entry in found:
            if entry.number == number:
                return entry, ""
        known = ", ".join(str(entry.number) for entry in found)
        raise UsageError(f"there is no session {number} on {store.address}; there are: {known}")
    running = [entry for entry in found if is_running(store, entry)]
    if not running:
        return found[-1], ""
    newest = running[-1]
    others = ", ".join(str(entry.number) for entry in running[:-1])
    said = (
        f"{units.count(len(running), 'session')} are running on {store.address}: this is number {newest.number}, the "
        f"newest; --session shows another: {others}"
    )
    return newest, said if others else ""


def is_running(store: Store, entry: Entry) -> bool:
    """Whether any rank of the session has come and not said that it leaves."""
    if not (store.has(f"{entry.call}/roster") and store.has(f"{entry.call}/outcome")):
        return False
    roster, outcome = store.get([f"{entry.call}/roster", f"{entry.call}/outcome"])
    opening = opening_of(outcome)
    if opening is not None and opening.usage is not None:
        return False
    hellos, _ = read_roster(roster)
    return any(pulse.left is None for pulse in pulses_of(store, entry.scope, hellos[:MAX_WORLD]).values())


def opening_of(outcome: bytes) -> Opening | None:
    """How the meeting ended; None while it goes on."""
    try:
        return None if outcome == b"-" else decode(outcome, Opening)
    except BadMessage:
        return Opening(usage="the session's opening cannot be read")


def pulses_of(store: Store, scope: str, hellos: list[Hello]) -> dict[int, Pulse]:
    """The pulse of each rank that has one which can be read. A key that is not there is never waited for."""
    keys = {hello.rank: pulse_key(scope, hello) for hello in hellos}
    if not store.has_all(list(keys.values())):
        keys = {rank: key for rank, key in keys.items() if store.has(key)}
    pulses = {}
    for (rank, _), raw in zip(keys.items(), store.get(list(keys.values())) if keys else (), strict=True):
        try:
            pulse = decode(raw if len(raw) <= MAX_PULSE else b"", Pulse)
        except BadMessage:
            continue  # silence
        if pulse.status.rank == rank:
            pulses[rank] = pulse
    return pulses
