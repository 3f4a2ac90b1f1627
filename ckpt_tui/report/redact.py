"""A result without host names and paths, for a place where strangers read. Pure.

Hosts and paths go where they have a field of their own, and wherever they, an address, a URL or anything that looks
like an absolute path stands in a sentence or a command. Names of files and tensors stay: a report would say nothing
without them.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..facts.agreement import Agreement
from ..facts.scan import ScanResult

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", bound=Agreement | ScanResult)

#: Fields that hold words of ours, digests, or names that stay.
_KEPT = frozenset({
    "schema", "tool", "file", "name", "tensor", "kind", "state", "code", "role", "segmentation", "digest", "identity",
    "content", "sha256", "dtype", "standing", "verdict", "repo_id", "revision", "first", "runs",
})  # fmt: skip
_HIDDEN = "…"
#: Whatever else names a machine or a place: URLs, addresses, `name:port`, and what begins like an absolute path.
_OTHERS = r"""
    (?P<url>\b[a-z][a-z0-9+]*://[^\s'"<>]+)
  | (?P<address>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]) | (?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?!\w))
  | (?P<port>(?<![\w.-])[A-Za-z][\w.-]*(?=:\d{2,5}(?!\d)))
  | (?P<path>(?<![\w.)\]/>…-])(?:~|/)(?=[^\s/])[^\s'"(),;:]+)
"""


def redacted(result: T) -> T:
    """The same result with `host-1` and `/path-1` in place of what names a machine or a place on it."""
    built = _walk(msgspec.to_builtins(result), _teller(result))
    for holder in built.get("ranks", [built]):
        if holder.get("file_system"):
            # The server of a network file system is a host too.
            kinds = (part.partition(" ")[0] for part in holder["file_system"].split(", "))
            holder["file_system"] = ", ".join(dict.fromkeys(kinds))
    return msgspec.convert(built, type(result))


def _teller(result: Agreement | ScanResult) -> Callable[[str], str]:
    """What makes a sentence fit for strangers."""
    reports = result.ranks if isinstance(result, Agreement) else ()
    hosts = [report.host for report in reports] if isinstance(result, Agreement) else [result.host]
    paths = [report.path for report in reports] if isinstance(result, Agreement) else [result.checkpoint.path]
    names = {path: f"/path-{place}" for place, path in enumerate(dict.fromkeys(filter(None, paths)), 1)}
    patterns = [f"{re.escape(path)}(?![^/\\s'\"(),;:])" for path in sorted(names, key=len, reverse=True)]
    for place, host in enumerate(dict.fromkeys(filter(None, hosts)), 1):
        names[host] = f"host-{place}"
        bare = re.escape(host)
        alone = rf"(?<![\w.-]){bare}(?![\w.-])"
        # A short name may be a word of any sentence: then only where a host stands.
        short = rf"(?<=\(){bare}(?=\)) | (?<=\bhost\ ){alone} | {alone}(?=:/) | ^{bare}$"
        patterns.append(alone if len(host) > 3 else short)
    known = "|".join(f"(?:{pattern})" for pattern in patterns)
    pattern = re.compile(f"(?P<known>{known or '(?!)'})|{_OTHERS}", re.VERBOSE)
    return lambda text: pattern.sub(lambda match: names.get(match[0], _HIDDEN), text)


def _walk(value: Any, told: Callable[[str], str], key: str = "") -> Any:
    if isinstance(value, str):
        return _command(value, told) if key == "mend" else told(value)
    if isinstance(value, dict):
        return {name: held if name in _KEPT else _walk(held, told, name) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(held, told, key) for held in value]
    return value


def _command(text: str, told: Callable[[str], str]) -> str:
    """A command, word by word, so that no quoting hides a part of a path."""
    return shlex.join(map(told, shlex.split(text)))
