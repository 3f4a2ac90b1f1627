"""Options that several commands share, and how they become one frozen `ScanSettings`.

A flag wins over the environment, the environment over the default.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..facts.settings import ScanSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

_SIZE = r"(?i)(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?"
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Size(click.ParamType[int]):
    """Bytes: `512M`, `1.5GiB`; units are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes as a whole number."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(_SIZE, str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no size; write it like 200M or 1.5G", param, ctx)
        return int(float(match[1]) * 1024 ** _POWERS[match[2].upper()])


class Rate(click.ParamType[float]):
    """Bytes a second: `200M`, `1.5GiB/s`; units are powers of 1024."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Bytes a second as a float."""
        if isinstance(value, float):
            return value
        return float(Size().convert(str(value).strip().removesuffix("/s"), param, ctx))


class Age(click.ParamType[float]):
    """A time span: `90s`, `12h`, `7d`."""

    name = "age"
    pattern = r"(\d+(?:\.\d+)?)\s*([smhd]?)"

    def __init__(self, at_least: float = 0.0) -> None:
        """`at_least`: seconds."""
        self._at_least = at_least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds as a float."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(self.pattern, str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no time span; write it like 90s, 12h or 7d", param, ctx)
        seconds = float(match[1]) * _SECONDS[match[2]]
        if seconds < self._at_least:
            self.fail(f"{value!r} is too short; {self._at_least:.0f}s at least is needed", param, ctx)
        return seconds


_SCAN_OPTIONS = (
    click.option("--fast", is_flag=True, help="Leave sha256 out: xxh3 alone, which is not cryptographic."),
    click.option(
        "--threads",
        type=click.IntRange(1, 256),
        help="Hashing threads.  [default: as many as keep the cores busy, at most 8]",
    ),
    click.option("--rehash", is_flag=True, help="Read every byte again, whatever the cache says."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write the digest cache."),
    click.option("--cache-dir", type=click.Path(file_okay=False), help="Where the digest cache lies."),
    click.option("--max-age", type=Age(), help="Read again what was hashed longer ago, e.g. 7d."),
    click.option("--max-rate", type=Rate(), default=0.0, help="Read at most this many bytes a second, e.g. 200M."),
    click.option(
        "--drop-page-cache",
        is_flag=True,
        help="Release what was read from the page cache, as reading goes on.",
    ),
    click.option("--include", multiple=True, metavar="GLOB", help="Add weights that the index does not name."),
    click.option("--rank-local", multiple=True, metavar="GLOB", help="Leave out files that are each rank's own."),
    click.option("--trust-fs", multiple=True, metavar="NAME", help="Vouch for the timestamps of a file system."),
)


def scan_options(function: F) -> F:
    """The options of every command that hashes; `scan_settings` takes them."""
    for option in reversed(_SCAN_OPTIONS):
        function = option(function)
    return function


def scan_settings(
    *,
    fast: bool = False,
    threads: int | None = None,
    rehash: bool = False,
    no_cache: bool = False,
    cache_dir: str | None = None,
    max_age: float | None = None,
    max_rate: float = 0.0,
    drop_page_cache: bool = False,
    include: tuple[str, ...] = (),
    rank_local: tuple[str, ...] = (),
    trust_fs: tuple[str, ...] = (),
    identity_only: bool = False,
    segments: bool = False,
) -> ScanSettings:
    """Resolve the options: flag before environment before default. The only place that reads these variables."""
    env = os.environ
    return ScanSettings(
        threads=threads or _positive(env.get("CKPT_TUI_THREADS")),
        sha256=not fast,
        rehash=rehash,
        use_cache=not no_cache,
        cache_dir=cache_dir or env.get("CKPT_TUI_CACHE_DIR") or None,
        runtime_dir=env.get("XDG_RUNTIME_DIR") or None,
        host_id=env.get("CKPT_TUI_HOST_ID") or None,
        identity_only=identity_only,
        segments=segments,
        include=include,
        rank_local=rank_local,
        trust_fs=trust_fs,
        max_age=max_age,
        max_rate=max_rate,
        drop_page_cache=drop_page_cache,
    )


def _positive(text: str | None) -> int:
    if not text:
        return 0
    if not text.isdecimal() or not int(text):
        raise click.UsageError(f"CKPT_TUI_THREADS={text!r}: a whole number from 1 up is needed")
    return int(text)


def as_arguments(params: Iterable[click.Parameter], values: Mapping[str, Any]) -> list[str]:
    """The words of a command line that give these options these values: what was given to one command, for another.

    Options that have no value are left out; so are arguments.
    """
    words = []
    for param in params:
        value = values.get(param.name or "")
        if not isinstance(param, click.Option) or value is None or value is False:
            continue
        if param.is_flag:
            words.append(param.opts[0])
        else:
            words += [f"{param.opts[0]}={one}" for one in (value if param.multiple else [value])]
    return words


FORMATS = ("human", "json", "jsonl", "quiet")


def format_option(*more: str) -> Callable[[F], F]:
    """`--format` and its short form `--json`; passes `format_` to the command. `more` are formats of that command."""

    def decorate(function: F) -> F:
        function = click.option("--json", "format_", flag_value="json", help="The same as --format json.")(function)
        return click.option(
            "--format", "format_", type=click.Choice([*FORMATS, *more]), default="human", show_default=True,
            help="What stdout carries.",
        )(function)  # fmt: skip

    return decorate
