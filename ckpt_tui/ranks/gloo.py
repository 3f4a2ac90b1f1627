"""The exchange through a Gloo group of our own, which leaves the caller's groups alone.

Every rank must have arrived before a collective is entered, and sizes travel before bytes: a payload of another size
than a peer expects makes Gloo abort the process.
"""

from __future__ import annotations

import ctypes
import struct
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .calls import Caller, NoAnswer
from .gather import GatherBroken
from .messages import MAX_BYTES, PROTOCOL, Step
from .store import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from .store import Store

#: What goes first: magic, protocol, step, nonce, length, and the payload itself where it fits.
_HEADER = struct.Struct("<4sHH16sQ40s")
_MAGIC = b"CKTG"
_INLINE = 40
#: How long one collective may take among ranks that have all arrived, beside what the bytes need.
_SECONDS = 30.0
#: Gloo's own timeout: our deadlines come first.
_NATIVE_SECONDS = 600.0


class GlooGather:
    """A group that has formed. Broken once is broken for good."""

    def __init__(
        self,
        torch: ModuleType,
        group: Any,
        caller: Caller,
        *,
        rank: int,
        size: int,
        nonce: str,
        watch: Callable[[], None],
    ) -> None:
        self._torch = torch
        self._group = group
        self._caller = caller
        self._rank = rank
        self._size = size
        self._nonce = bytes.fromhex(nonce)
        self._watch = watch
        # A group whose peers are gone may abort the process when it is destroyed, so this one never is.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))

    @classmethod
    def form(
        cls,
        torch: ModuleType,
        store: Store,
        *,
        address: str,
        interfaces: Sequence[str],
        rank: int,
        size: int,
        nonce: str,
        seconds: float,
        forming: Callable[[], None],
        watch: Callable[[], None],
    ) -> GlooGather:
        """Connect with all ranks; GatherBroken if that does not succeed within `seconds`, or as `forming` raises it.

        Gloo listens on the address from which this machine reaches the store: what a host name resolves to is too
        often loopback. `interfaces` (GLOO_SOCKET_IFNAME) come before that.
        """
        caller = Caller("gloo")
        distributed = torch.distributed

        def make() -> Any:
            options = distributed.ProcessGroupGloo._Options()  # noqa: SLF001 - the only name that torch gives it
            options._timeout = timedelta(seconds=_NATIVE_SECONDS)  # noqa: SLF001
            options._devices = [  # noqa: SLF001
                distributed.ProcessGroupGloo.create_device(interface=interface) for interface in interfaces
            ] or [distributed.ProcessGroupGloo.create_device(hostname=address)]
            return distributed.ProcessGroupGloo(
                distributed.PrefixStore(f"ckpt-tui/gloo/{nonce}", store.raw), rank, size, options
            )

        try:
            group = caller.call(make, seconds, forming)
        except NoAnswer:
            raise GatherBroken(f"Gloo's connections did not form within {seconds:.0f} s") from None
        except RuntimeError as error:
            raise GatherBroken(f"Gloo's connections did not form: {first_line(error)}") from None
        return cls(torch, group, caller, rank=rank, size=size, nonce=nonce, watch=watch)

    @property
    def absent(self) -> Mapping[int, str]:
        """Nobody falls out of a Gloo group: it breaks."""
        return {}

    def gather(self, step: Step, payload: bytes) -> dict[int, bytes]:
        """Headers first, in one fixed-size gather; then the bytes of those whose payload did not fit there."""
        if len(payload) > MAX_BYTES:
            raise GatherBroken(f"a message of {len(payload)} bytes")
        inline = payload if len(payload) <= _INLINE else b""
        header = _HEADER.pack(_MAGIC, PROTOCOL, step, self._nonce, len(payload), inline)
        lengths: list[int] = []
        gathered: dict[int, bytes] = {}
        for rank, raw in enumerate(self._all_gather(header)):
            magic, protocol, their_step, nonce, length, inline = _HEADER.unpack(raw)
            if (magic, protocol, their_step, nonce) != (_MAGIC, PROTOCOL, step, self._nonce) or length > MAX_BYTES:
                raise GatherBroken(f"rank {rank} is not at the same step")
            lengths.append(length)
            if length <= _INLINE:
                gathered[rank] = inline[:length]
        if len(gathered) == 0:
            padded = self._all_gather(payload.ljust(max(lengths), b"\0"))
            return {rank: raw[: lengths[rank]] for rank, raw in enumerate(padded)}
        for rank, length in enumerate(lengths):
            if rank not in gathered:
                gathered[rank] = self._broadcast(rank, payload if rank == self._rank else None, length)
        return dict(sorted(gathered.items()))

    def _all_gather(self, mine: bytes) -> list[bytes]:
        buffers = [bytearray(len(mine)) for _ in range(self._size)]

        def work() -> None:
            self._group.allgather(
                [[self._tensor(buffer) for buffer in buffers]], [self._tensor(bytearray(mine))]
            ).wait()

        self._call(work, len(mine) * self._size)
        return [bytes(buffer) for buffer in buffers]

    def _broadcast(self, root: int, mine: bytes | None, length: int) -> bytes:
        buffer = bytearray(length) if mine is None else bytearray(mine)
        self._call(lambda: self._group.broadcast(self._tensor(buffer), root).wait(), length)
        return bytes(buffer)

    def _tensor(self, buffer: bytearray) -> Any:
        return self._torch.frombuffer(buffer, dtype=self._torch.uint8)

    def _call(self, work: Callable[[], Any], size: int) -> None:
        try:
            self._caller.call(work, _SECONDS + size / (1 << 20), self._watch)
        except NoAnswer:
            raise GatherBroken("Gloo did not answer in time") from None
        except RuntimeError as error:
            raise GatherBroken(f"Gloo: {first_line(error)}") from None
