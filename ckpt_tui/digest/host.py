"""What tells this host from others that share its digest cache."""

from __future__ import annotations

import os
from pathlib import Path

from ..present.safe import escape

_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")


def host_name() -> str:
    """The host's name as escaped text."""
    return escape(os.uname().nodename)


def host_id(given: str | None = None) -> str:
    """Machine id and host name, as escaped text.

    In a container, where both may be anybody's: what was given, else machine id and boot id. A host that goes under
    several names reads files again; two hosts under one name would trust each other's bytes.
    """
    if given:
        return escape(given)
    machine = next(filter(None, map(_read, _MACHINE_IDS)), "")
    if machine and not _in_container():
        return escape(f"{machine} {os.uname().nodename}")
    return escape(f"{machine} {_read(_BOOT_ID)}")


def _in_container() -> bool:
    return any(Path(mark).exists() for mark in _CONTAINER_MARKS) or _root_is_overlay()


def _root_is_overlay() -> bool:
    """Container runtimes put the root on an overlay; some leave no other mark."""
    mounts = (line.split(" ") for line in _read("/proc/self/mounts").splitlines())
    return any(fields[1:3] == ["/", "overlay"] for fields in mounts)


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return ""
