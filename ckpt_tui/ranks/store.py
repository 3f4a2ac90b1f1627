"""The store that ranks meet at: torch's TCPStore, with deadlines that hold.

With its host stopped, every call on a TCPStore blocks for good, whatever its timeout says. So each connection has a
thread of its own, and what a caller gets for silence is `StoreLost`, which accuses no rank.
"""

from __future__ import annotations

import errno
import socket
import time
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ..facts.outcome import CkptError, Exit, UsageError
from ..present.safe import error_text, escape
from .address import is_loopback
from .calls import Caller, NoAnswer, nothing
from .processes import listener

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from .address import Address

T = TypeVar("T")

#: torch's store hangs up on whoever sends it a value of more than 8 MiB (MAX_PAYLOAD_LEN, TCPStoreLibUvBackend.cpp).
_PIECE = 4 << 20
#: What is not longer travels with its key.
_INLINE = 64 << 10
#: More pieces than this are of no message that is taken (`messages.MAX_BYTES`), whatever a stranger says.
_PIECES = 17
#: How long one attempt to reach the store may take, and the pause before the next.
_ATTEMPT, _PAUSE = 2.0, 0.1


class StoreLost(CkptError):
    """The store does not answer: nothing is known of the ranks that it was to tell of."""

    code = Exit.INCOMPLETE

    def __init__(self, address: Address, why: str) -> None:
        super().__init__(f"lost contact with the store on {address}: {why}")
        self.why = why


class NobodyThere(CkptError):
    """Nothing that could be the store was reached in time."""

    code = Exit.INCOMPLETE


class Store:
    """One connection to the store. Every call returns, or raises StoreLost after `patience` seconds."""

    def __init__(self, raw: Any, address: Address, patience: float, caller: Caller, watch: Callable[[], None]) -> None:
        self.raw = raw
        self.address = address
        self._patience = patience
        self._caller = caller
        self._watch = watch

    def set(self, key: str, value: bytes) -> None:
        """Put a value."""
        self._do(lambda: self.raw.set(key, value))

    def append(self, key: str, value: bytes) -> None:
        """Add to a value's end, atomically."""
        self._do(lambda: self.raw.append(key, value))

    def add(self, key: str, amount: int) -> int:
        """Add to a counter; its new value. A counter that nobody has touched is 0."""
        return int(self._do(lambda: self.raw.add(key, amount)))

    def decide(self, key: str, undecided: bytes, value: bytes) -> bytes:
        """Put the value if the key still holds `undecided` (empty: if there is no such key); what it holds then."""
        return bytes(self._do(lambda: self.raw.compare_set(key, undecided, value)))

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return self.has_all([key])

    def has_all(self, keys: Sequence[str]) -> bool:
        """Whether all of these keys are there."""
        return bool(self._do(lambda: self.raw.check(list(keys))))

    def get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of keys that are known to be there, in one call."""
        return [bytes(value) for value in self._do(lambda: self.raw.multi_get(list(keys)))]

    def post(self, key: str, value: bytes) -> int:
        """Put a value of any length, for `fetch`; in how many pieces. The key is there once all of it is."""
        if len(value) <= _INLINE:
            self.set(key, bytes(4) + value)
            return 0
        starts = range(0, len(value), _PIECE)
        for number, at in enumerate(starts):
            self.set(f"{key}/piece/{number}", value[at : at + _PIECE])
        self.set(key, len(starts).to_bytes(4, "big"))
        return len(starts)

    def clear(self, key: str, pieces: int) -> None:
        """Take the pieces of what was posted out of the store's memory; whoever comes late finds nothing."""
        self.set(key, bytes(4))
        for number in range(pieces):  # a shorter value would keep the longer one's room
            self._do(lambda piece=f"{key}/piece/{number}": self.raw.delete_key(piece))  # type: ignore[misc]

    def fetch(self, keys: Sequence[str]) -> list[bytes]:
        """The posted values of keys that are known to be there."""
        return [self._whole(key, first) for key, first in zip(keys, self.get(keys), strict=True)]

    def _whole(self, key: str, first: bytes) -> bytes:
        pieces = [f"{key}/piece/{number}" for number in range(int.from_bytes(first[:4], "big"))]
        found = [self.get([piece])[0] if self.has(piece) else b"" for piece in pieces]
        return first[4:] if not pieces else b"".join(found) if all(found) else b""

    def close(self) -> None:
        """Make no more calls."""
        self._caller.close()

    def _do(self, work: Callable[[], T]) -> T:
        try:
            return self._caller.call(work, self._patience, self._watch)
        except NoAnswer:
            raise StoreLost(self.address, f"no answer for {self._patience:.0f} s") from None
        except RuntimeError as error:  # what torch raises, whatever it is
            raise StoreLost(self.address, first_line(error)) from None


def reach(address: Address, seconds: float, watch: Callable[[], None], waiting: Callable[[str], None]) -> str:
    """Wait until something listens at the address; the address of this machine from which it is reached.

    A plain connection, so that waiting for a rank 0 that starts later is quiet. `waiting` gets the reason of every
    failure; NobodyThere after `seconds`.
    """
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        try:
            with socket.create_connection(address, timeout=max(min(left, _ATTEMPT), 0.05)) as connection:
                return str(connection.getsockname()[0])
        except socket.gaierror:
            why = f"the name {escape(address.host)} is not known on this machine"
        except ConnectionRefusedError:
            why = f"nobody listens at {address}"
        except TimeoutError:
            why = f"{address} does not answer"
        except OSError as error:
            why = f"{address} cannot be reached: {error_text(error)}"
        watch()
        if time.monotonic() >= end:
            raise NobodyThere(why)
        waiting(why)
        time.sleep(_PAUSE)


def connect(
    torch: ModuleType,
    address: Address,
    *,
    seconds: float,
    patience: float,
    watch: Callable[[], None] = nothing,
    listening: socket.socket | None = None,
) -> Store:
    """A connection to the store, served by this process from `listening` where that is given."""
    caller = Caller("store")

    def make() -> Any:
        descriptor = None if listening is None else listening.detach()
        return torch.distributed.TCPStore(
            address.host,
            address.port,
            is_master=descriptor is not None,
            wait_for_workers=False,
            timeout=timedelta(seconds=max(seconds, 1)),
            master_listen_fd=descriptor,
        )

    try:
        raw = caller.call(make, max(seconds, 1), watch)
    except NoAnswer:
        raise NobodyThere(f"what listens at {address} does not answer as a store") from None
    except RuntimeError as error:
        raise NobodyThere(f"{address} is no store: {first_line(error)}") from None
    return Store(raw, address, patience, caller, watch)


def is_here(host: str) -> bool:
    """Whether the host's name or address is one of this machine's. One that is not known here is not, so far."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in found:
        with suppress(OSError), socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
            return True
    return False


def listen(address: Address) -> socket.socket | None:
    """Listen where rank 0 is to serve the store; None if the port is taken.

    `localhost` and loopback addresses are served on loopback alone. For any other the store listens on all interfaces:
    what the name by which others reach this machine means here is another matter, often 127.0.1.1.
    """
    if address.host == "localhost" or is_loopback(address.host):
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        tries = [(int(info[0]), str(info[4][0])) for info in found]
    else:
        tries = [(int(socket.AF_INET6), "::"), (int(socket.AF_INET), "0.0.0.0")]  # noqa: S104 - see above
    refusal: OSError | None = None
    for family, host in tries:
        try:
            listening = socket.socket(socket.AddressFamily(family), socket.SOCK_STREAM)
        except OSError as error:  # a kernel without IPv6
            refusal = refusal or error
            continue
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if host == "::":
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.bind((host, address.port))
            listening.listen(512)
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRINUSE:
                return None  # whatever the next address is: there would be two stores
            refusal = refusal or error
        else:
            return listening
    raise UsageError(f"rank 0 cannot listen on {address}: {error_text(refusal) if refusal else 'no such address'}")


def taken(address: Address) -> str:
    """What is known of who listens on a port that is taken."""
    pid = listener(address.port)
    here = escape(socket.gethostname())
    return f"port {address.port} on {here} is in use" + (f" by pid {pid}" if pid else "")


def first_line(error: BaseException) -> str:
    """The first line of a native error's text, which may run over many, as one line of safe text."""
    with suppress(IndexError):
        return escape(str(error).splitlines()[0])[:200]
    return type(error).__name__


def local_address_towards(host: str) -> str:
    """The address of this machine from which packets to the host leave; '' if there is no way. Sends none."""
    try:
        family, kind, protocol, _, there = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(there)
            return str(probe.getsockname()[0])
    except OSError:
        return ""
