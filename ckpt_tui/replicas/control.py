"""What ranks tell one another about their tensors, as bytes over the caller's Gloo group. No pickle, no numpy.

Sizes and the step travel first, in one fixed-size exchange: a payload of another size than a peer expects makes Gloo
abort the process, and a rank that is at another step is told from one that is late.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import xxhash

from ..facts import ranksets
from ..facts.outcome import CkptError, Exit
from ..present.safe import error_text, escape, is_safe

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What goes first: magic, version, length of the payload, digest of the step's words, the payload where it fits.
_HEADER = struct.Struct("<4sIQ16s64s")
_MAGIC = b"CKTR"
_VERSION = 1
#: A payload of at most this many bytes needs one exchange, a longer one two.
INLINE = 64
#: No payload may be longer: every rank holds those of all.
MAX_BYTES = 64 << 20
#: Bytes of a step's words that are shown to the others.
_WORDS = 400


class ControlLost(CkptError, RuntimeError):
    """The exchange failed: a peer is gone, late, at another step or unable to go on. The group is of no more use."""

    code = Exit.INCOMPLETE


class Control:
    """The caller's Gloo group, as a means to compare and to wait. Every method but the constructor is collective.

    `rank` and `size` are those in the group, `ranks` the global ranks of its members in order; `sent` counts the bytes
    that this rank has put on the wire, without Gloo's own framing.
    """

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        """Raise ValueError where `group` is not a Gloo group that this process is a member of."""
        self.group = _checked(group)
        self.rank: int = dist.get_rank(self.group)
        self.size: int = dist.get_world_size(self.group)
        self.ranks: tuple[int, ...] = tuple(dist.get_process_group_ranks(self.group))
        self.sent = 0

    def gather(self, data: bytes, *, what: str) -> list[bytes]:
        """Every rank's bytes, in the order of the group. `what` names the step, for errors; all give the same.

        Raises ControlLost when the group's timeout passes, when a peer is gone or at another step, and on all ranks
        alike where one rank's bytes are more than `MAX_BYTES`.
        """
        step = xxhash.xxh3_128_digest(what.encode("utf-8", "surrogatepass"))
        inline = data if len(data) <= INLINE else b""
        heads = self._exchange(_HEADER.pack(_MAGIC, _VERSION, len(data), step, inline), what)
        lengths: list[int] = []
        steps: list[bytes] = []
        payloads: list[bytes] = []
        for rank, head in zip(self.ranks, heads, strict=True):
            magic, version, length, their_step, payload = _HEADER.unpack(head)
            if (magic, version) != (_MAGIC, _VERSION):
                raise ControlLost(f"{_doing(what)}: rank {rank} uses this group for something else, or another version")
            lengths.append(length)
            steps.append(their_step)
            payloads.append(payload[:length])
        if len(set(steps)) > 1:
            raise ControlLost(self._apart(what))
        if max(lengths) > MAX_BYTES:
            longest = ranksets.named(
                rank for rank, length in zip(self.ranks, lengths, strict=True) if length > MAX_BYTES
            )
            raise ControlLost(f"{_doing(what)}: more than {MAX_BYTES:,} bytes from {longest}")
        if max(lengths) <= INLINE:
            return payloads
        padded = self._exchange(data.ljust(max(lengths), b"\0"), what)
        return [raw[:length] for raw, length in zip(padded, lengths, strict=True)]

    def barrier(self, *, what: str, trouble: str = "") -> None:
        """Return once every rank has come here. Raises ControlLost like `gather`.

        `trouble` is what keeps this rank from going on: where any rank has some, all raise ControlLost, which says so.
        """
        heard = self.gather(trouble.encode()[:_WORDS], what=what)
        said = _by_text(self.ranks, heard)
        if said.keys() - {""}:
            each = "; ".join(f"{ranksets.named(ranks)}: {text}" for text, ranks in said.items() if text)
            raise ControlLost(f"{_doing(what)}: {each}")

    def _exchange(self, mine: bytes, what: str) -> list[bytes]:
        """An all-gather of as many bytes from each."""
        buffers = [bytearray(len(mine)) for _ in range(self.size)]
        given = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        try:
            dist.all_gather([torch.frombuffer(buffer, dtype=torch.uint8) for buffer in buffers], given, self.group)
        except RuntimeError as error:
            raise ControlLost(lost(what, error)) from error
        self.sent += len(mine) * (self.size - 1)
        return [bytes(buffer) for buffer in buffers]

    def _apart(self, what: str) -> str:
        """Who is at which step. All ranks have seen that steps differ, so that all come here."""
        words = escape(what).encode()[:_WORDS]
        said = _by_text(self.ranks, self._exchange(words.ljust(_WORDS, b"\0"), what))
        each = "; ".join(f"{ranksets.named(ranks)}: {text}" for text, ranks in said.items())
        return f"the ranks are not at the same step: {each}"


def _by_text(ranks: Sequence[int], heard: Sequence[bytes]) -> dict[str, list[int]]:
    """The ranks that said each text, cut or padded with zeros."""
    said: dict[str, list[int]] = {}
    for rank, raw in zip(ranks, heard, strict=True):
        text = raw.rstrip(b"\0").decode("utf-8", "replace")
        said.setdefault(text if is_safe(text) else "something else", []).append(rank)
    return said


def lost(what: str, error: BaseException) -> str:
    """What to say when a collective failed: what it was for, and the first line of what Gloo or NCCL said."""
    first = str(error).partition("\n")[0].partition(". This is typically")[0]
    return f"{_doing(what)}: a rank is gone or did not come in time: {escape(first) or error_text(error)}"


def _doing(what: str) -> str:
    return f"while exchanging {escape(what)}"


def _checked(group: Any) -> dist.ProcessGroup:
    how = 'make one on every rank, once, with torch.distributed.new_group(backend="gloo")'
    if group is None:
        raise ValueError(f"a control group is needed: {how}")
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("this process is no member of the control group")
    if not isinstance(group, dist.ProcessGroup):
        raise ValueError(f"the control group is no process group but a {type(group).__name__}: {how}")  # noqa: TRY004 - one kind for all that is wrong with it
    backend = dist.get_backend(group)  # a ValueError where the group has been destroyed
    if backend != dist.Backend.GLOO:
        raise ValueError(f"the control group's backend is {backend}, and Gloo is needed: {how}")
    return group
