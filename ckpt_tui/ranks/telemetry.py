"""Every rank's status through the store, all the time: a thread with a connection of its own that beats and listens.

It publishes this rank's status, reads all others' in one call, notices who is silent, dead or leaving, and declares a
loss to all. Nobody waits for it: what it knows is read from its fields, which are replaced and never changed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from ..facts.outcome import CkptError
from ..present import units
from ..present.safe import error_text
from .display import watch_key
from .liveness import Liveness
from .messages import BadMessage, Break, Hello, Pulse, decode, encode
from .processes import LocalProcesses
from .store import Store, StoreLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..facts.clock import Clock
    from ..facts.status import RankStatus
    from .display import Display

#: What the key of a break holds while there is none, and once the verdict stands.
OPEN, COMMITTED = b"-", b"="


#: Ranks of a larger world than this do not all listen to all.
EVERYBODY = 256
#: So many of the others each listens to then, beside rank 0, which listens to all (docs/scale.md).
_NEXT = 64


def interval(world_size: int) -> float:
    """Seconds between two beats: it grows with those that a rank reads, and with all that ask the store."""
    read = world_size if world_size <= EVERYBODY else _NEXT
    return 0.25 + read / 200 + world_size / 4000


def listened_to(me: int, world_size: int, here: Iterable[int]) -> frozenset[int]:
    """The ranks whose beats a rank reads, of those that are here.

    In a large world those that come next in a ring: each is heard by many, and whoever misses one tells all.
    """
    others = sorted(rank for rank in here if rank != me)
    if world_size <= EVERYBODY or me == 0:
        return frozenset(others)
    return frozenset(sorted(others, key=lambda rank: (rank - me) % world_size)[:_NEXT]) | {0} & frozenset(others)


class Telemetry:
    """The thread. `status` makes this rank's present status; it is called in the thread."""

    def __init__(
        self,
        store: Store,
        me: Hello,
        status: Callable[[], RankStatus],
        *,
        scope: str,
        rank_timeout: float,
        clock: Clock,
        display: Display | None = None,
    ) -> None:
        """`display` is shown to whoever watches this rank from outside."""
        self._store = store
        self._display = display
        self._watch_key = watch_key(scope, me.token)
        self._me = me
        self._status = status
        self._scope = scope
        self._clock = clock
        self._interval = interval(me.world_size)
        self._timeout = max(rank_timeout, 4 * self._interval)
        self._wake = threading.Condition()
        self._hurry = False
        self._left: str | None = None
        self._told = threading.Event()
        self._beat = 0
        self._break_key: str | None = None
        self._peers: dict[int, Hello] = {}
        self._processes: LocalProcesses | None = None
        self._liveness = Liveness((), self._timeout, clock.monotonic())
        #: The newest status of every other rank that was heard, and the ranks that are gone with what is known of them.
        self.heard: Mapping[int, RankStatus] = {}
        self.gone: Mapping[int, str] = {}
        #: Those among them that have left by themselves.
        self.left: frozenset[int] = frozenset()
        #: The break that was declared, by this rank or another.
        self.broken: Break | None = None
        #: Why telemetry ended before its time.
        self.failure: CkptError | None = None
        self._thread = threading.Thread(target=self._run, name="ckpt-tui telemetry", daemon=True)

    def start(self) -> None:
        """Publish a first status, so that whoever knows this rank finds its pulse, and go on in a thread."""
        self._publish()
        if self._display is not None:
            self._store.add(self._watch_key, 0)  # it is there from now on, so that it can be read with the pulses
        self._thread.start()

    def follow(self, hellos: Iterable[Hello]) -> None:
        """Listen to these ranks; those that are known already keep what was heard of them."""
        here = {hello.rank: hello for hello in hellos}
        peers = {rank: here[rank] for rank in sorted(listened_to(self._me.rank, self._me.world_size, here))}
        with self._wake:
            if peers == self._peers:
                return
            self._peers = peers
            self._liveness = Liveness(peers, self._timeout, self._clock.monotonic())
            if self._processes is not None:
                self._processes.close()
            self._processes = LocalProcesses(self._me, peers.values())

    def guard(self, break_key: str) -> None:
        """From now on declare a lost rank under this key, which holds OPEN, and hear what others declare."""
        with self._wake:
            self._break_key = break_key

    def hurry(self) -> None:
        """Beat now: something changed that others should see."""
        with self._wake:
            self._hurry = True
            self._wake.notify()

    def leave(self, why: str, seconds: float) -> None:
        """Tell the others why this rank leaves before there is a verdict; returns once that is out, or in time."""
        self._left = why
        self.hurry()
        self._told.wait(seconds)

    def _run(self) -> None:
        try:
            while self._left is None:
                self._publish()
                self._listen()
                with self._wake:
                    if not self._hurry and self._left is None:
                        self._wake.wait(self._interval)
                    self._hurry = False
            self._publish()
        except StoreLost as lost:
            self._look_after()
            self.failure = lost
        except Exception as error:  # noqa: BLE001 - a rank that no longer beats must not go on as if it did
            self.failure = CkptError(f"this rank's telemetry failed: {type(error).__name__}: {error_text(error)}")
        finally:
            self._told.set()
            self._store.close()
            with self._wake:
                if self._processes is not None:
                    self._processes.close()

    def _publish(self) -> None:
        self._beat += 1
        left = self._left
        status = msgspec.structs.replace(self._status(), beat=self._beat)
        self._store.set(pulse_key(self._scope, self._me), encode(Pulse(status=status, left=left)))

    def _listen(self) -> None:
        with self._wake:
            peers, processes, liveness, break_key = self._peers, self._processes, self._liveness, self._break_key
            # Before the pulses: one that has said why it leaves may be gone, one that has not was lost.
            ended = processes.ended() if processes else frozenset()
        keys = [pulse_key(self._scope, peer) for peer in peers.values()]
        if break_key is not None:
            keys.append(break_key)
        if self._display is not None:
            keys.append(self._watch_key)
        values = self._store.get(keys) if keys else []
        if self._display is not None:
            self._display.serve(self._store, self._scope, self._me, values.pop())
        if break_key is not None:
            self._take_break(values.pop())
        pulses = {}
        for rank, raw in zip(peers, values, strict=True):
            try:
                pulses[rank] = decode(raw, Pulse)
            except BadMessage:
                continue  # a pulse that says nothing is silence
        liveness.observe(self._clock.monotonic(), {rank: pulse.status.beat for rank, pulse in pulses.items()})
        self.heard = {**self.heard, **{rank: pulse.status for rank, pulse in pulses.items()}}
        gone = {
            rank: obituary(peers[rank].host, pulse.status, pulse.left)
            for rank, pulse in pulses.items()
            if pulse.left is not None
        }
        self.left = frozenset(gone)
        for rank in ended:
            gone.setdefault(rank, self._ended(rank, peers, liveness))
        for rank, seconds in liveness.silent().items():
            gone.setdefault(
                rank, obituary(peers[rank].host, self.heard.get(rank), f"silent for {units.duration(seconds)}")
            )
        self.gone = gone
        if gone and break_key is not None and self.broken is None:
            self._take_break(self._store.decide(break_key, OPEN, encode(Break(absent=gone))))

    def _look_after(self) -> None:
        """The store is lost. What accuses nobody wrongly: whether rank 0, which may have served it, has died here."""
        with self._wake:
            peers, liveness = self._peers, self._liveness
            ended = self._processes.ended() if self._processes else frozenset()
        if 0 in ended:
            self.gone = {0: self._ended(0, peers, liveness), **self.gone}

    def _ended(self, rank: int, peers: Mapping[int, Hello], liveness: Liveness) -> str:
        heard = units.duration(liveness.silence.get(rank, 0.0))
        return obituary(peers[rank].host, self.heard.get(rank), f"its process has ended, last heard {heard} ago")

    def _take_break(self, raw: bytes) -> None:
        if raw in {OPEN, COMMITTED} or self.broken is not None:
            return
        try:
            self.broken = decode(raw, Break)
        except BadMessage as error:
            self.broken = Break(reason=f"the session was broken off with {error}")


def pulse_key(scope: str, hello: Hello) -> str:
    """Where a rank's pulse lies: under its token, so that no other process's is ever read for it."""
    return f"{scope}/pulse/{hello.token}"


def obituary(host: str, status: RankStatus | None, what: str) -> str:
    """What is known of a rank that is gone: `on node-b, silent for 61 s, was reading model-00002...`."""
    doing = f", was {status.doing}" if status is not None and status.doing else ""
    return f"on {host}, {what}{doing}"
