"""`HOST:PORT`, with IPv6 hosts in brackets. Pure."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple

from ..facts.outcome import UsageError
from ..present.safe import escape

_BRACKETS = re.compile(r"\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]:(\d{1,5})")
_PLAIN = re.compile(r"([^\s:\[\]/]+):(\d{1,5})")


class Address(NamedTuple):
    """Where something listens. `str()` is what a person types: never build `host:port` by joining strings."""

    host: str
    port: int

    def __str__(self) -> str:
        host = escape(self.host)
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether the host is written as a loopback address; what a name may lead to is not asked."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def parse_address(text: str, *, given_by: str) -> Address:
    """The address that the text names; UsageError, naming `given_by`, for anything else."""
    match = _BRACKETS.fullmatch(text) or _PLAIN.fullmatch(text)
    if match is not None:
        return checked(match[1], int(match[2]), given_by=given_by)
    if text.count(":") > 1 and "[" not in text:
        raise UsageError(f"{given_by}: {escape(text)!r}: write an IPv6 address in brackets, like [fd00::1]:29500")
    raise UsageError(f"{given_by}: {escape(text)!r} is no HOST:PORT, like node-a:29500")


def checked(host: str, port: int, *, given_by: str) -> Address:
    """The address, its port in range."""
    if not 0 < port < 1 << 16:
        raise UsageError(f"{given_by}: {port} is no port; ports go from 1 to 65535")
    return Address(host, port)
