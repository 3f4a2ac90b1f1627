"""File descriptors: how many a session takes (docs/scale.md), and how many this process may open.

Gloo does not report that it ran out of them, it aborts the process; a store that runs out turns ranks away without a
word. So both are asked before.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress

#: What a rank opens whatever the number of ranks: files that are read, torch's own, the first connections.
_BASE = 32
#: For every rank: a connection of the mesh and a process on this host; at the store's host three connections to it.
_MESH, _STORE_MESH, _STORE = 2, 5, 2


def for_gloo(world_size: int, *, hosts_store: bool) -> int:
    """Descriptors that a rank needs from its coming on where the ranks compare through Gloo."""
    return _BASE + world_size * (_STORE_MESH if hosts_store else _MESH)


def for_store(world_size: int) -> int:
    """Descriptors that the store's host needs in any case."""
    return _BASE + world_size * _STORE


def room(wanted: int) -> int:
    """How many more descriptors this process may open: its soft limit is raised where that is needed and permitted."""
    used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone are wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = used + wanted
    if soft < needed:
        raised = min(needed, hard) if hard != resource.RLIM_INFINITY else needed
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return soft - used
