"""Processes of this machine: a rank here that has died is known at once, without waiting for its silence."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .messages import Hello


def process_space() -> str:
    """What is equal for two processes exactly when they see each other's pids: this boot and pid namespace; else ''."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    except (OSError, ValueError):
        return ""


def start_time(pid: int) -> int:
    """When the process started, in ticks since boot, which tells it from a later one of the same pid; 0 if unknown."""
    try:
        # The second field is the command's name in brackets, which may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19])
    except (OSError, ValueError, IndexError):
        return 0


class LocalProcesses:
    """The other ranks' processes on this machine, each held by a pidfd: immune to pids that are used again."""

    def __init__(self, me: Hello, others: Iterable[Hello]) -> None:
        self._descriptors: dict[int, int] = {}
        self._ended: set[int] = set()
        for other in others:
            if me.space and other.space == me.space and other.pid != me.pid and other.started:
                self._hold(other)

    def ended(self) -> frozenset[int]:
        """The ranks whose processes have ended."""
        if self._descriptors:
            poll = select.poll()
            ranks = {}
            for rank, descriptor in self._descriptors.items():
                poll.register(descriptor, select.POLLIN)
                ranks[descriptor] = rank
            for descriptor, _ in poll.poll(0):
                self._ended.add(ranks[descriptor])
                del self._descriptors[ranks[descriptor]]
                os.close(descriptor)
        return frozenset(self._ended)

    def close(self) -> None:
        """Let go of all descriptors."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _hold(self, other: Hello) -> None:
        try:
            descriptor = os.pidfd_open(other.pid)
        except ProcessLookupError:
            self._ended.add(other.rank)
            return
        except (AttributeError, OSError):
            return  # no pidfds here, or none to spare: its silence will tell
        if start_time(other.pid) == other.started:
            self._descriptors[other.rank] = descriptor
        else:
            os.close(descriptor)
            self._ended.add(other.rank)


def listener(port: int) -> int | None:
    """The pid of the process that listens on this port, where it is ours to see."""
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening(table, port)}
    if not sockets:
        return None
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()) in sockets:
                return int(link.parts[2])
        except OSError:
            continue
    return None


def _listening(table: str, port: int) -> list[str]:
    try:
        lines = Path("/proc/net", table).read_text("ascii").splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port]
