"""`ckpt-tui _worker`: what the screen starts. It speaks messages, not to people."""

from __future__ import annotations

import os
from inspect import signature
from typing import Any

import click
import msgspec

from ..facts.clock import SystemClock
from ..facts.settings import RankSettings, ScanSettings
from ..stream.messages import Mode
from . import ranks as ranks_command
from .options import scan_settings


@click.group(hidden=True)
@click.option("--stay", is_flag=True, help="Stay after the verdict, for what a screen may still ask.")
@click.pass_context
def command(ctx: click.Context, *, stay: bool) -> None:
    """The background worker: messages on stdout, commands on stdin."""
    ctx.obj = stay


@command.command()
@click.argument("path")
@click.option("--settings", required=True, help="ScanSettings as JSON.")
def scan(path: str, settings: str) -> None:
    """Scan one checkpoint."""
    from ..worker.serve import serve

    clock, stay = SystemClock(), bool(click.get_current_context().obj)
    decoded = msgspec.json.decode(settings, type=ScanSettings)

    def make() -> Any:
        from ..worker.scan import ScanJob

        return ScanJob(path, decoded, clock, stay=stay)

    serve(make, clock, mode=Mode.SCAN)


@command.command()
@click.argument("targets", nargs=-1, required=True)
@click.option("--settings", required=True, help="ScanSettings as JSON.")
@click.option("--drill-bytes", type=int, required=True, help="How much of each may be read again.")
@click.option("--strict", is_flag=True, help="Leave with 1 on warnings too.")
def compare(targets: tuple[str, ...], settings: str, drill_bytes: int, *, strict: bool) -> None:
    """Compare copies on this machine, and answer what is asked below the verdict."""
    from ..worker.serve import serve

    clock = SystemClock()
    decoded = msgspec.json.decode(settings, type=ScanSettings)

    def make() -> Any:
        from ..worker.compare import CompareJob

        return CompareJob(targets, decoded, clock, drill_bytes=drill_bytes, strict=strict)

    serve(make, clock, mode=Mode.COMPARE)


@command.command()
@click.argument("address")
@click.option("--wait", type=float, required=True, help="Seconds in which there has to be a session.")
@click.option("--session", type=int, help="Its number in the store's directory.")
def attach(address: str, wait: float, session: int | None) -> None:
    """Watch a session as no rank of it."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from ..worker.serve import serve

    clock = SystemClock()

    def make() -> Any:
        from ..ranks.address import parse_address
        from ..worker.attach import AttachJob

        return AttachJob(parse_address(address, given_by="attach"), wait=wait, session=session, clock=clock)

    serve(make, clock, mode=Mode.ATTACH)


def _ranks(
    path: str,
    *,
    master: str | None,
    world_size: int | None,
    rank: int | None,
    join_timeout: float,
    rank_timeout: float,
    hold: float | None,
    keep_going: bool,
    strict: bool,
    given: tuple[str, ...],
    result: str | None,
    **scan_options: Any,
) -> None:
    """Be one rank of a session."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from ..ranks import Flags, find_place
    from ..worker.serve import serve

    clock, stay = SystemClock(), bool(click.get_current_context().obj)

    def make() -> Any:
        from ..worker.ranks import RanksJob

        place = find_place(Flags(master=master, world_size=world_size, rank=rank))
        settings = RankSettings(
            scan=scan_settings(**scan_options),
            join_timeout=join_timeout,
            rank_timeout=rank_timeout,
            hold=ranks_command.HOLD if hold is None else hold,
            keep_going=keep_going,
            strict=strict,
            given=ranks_command.facts(given),
        )
        return RanksJob(path, place, settings, clock, result=result, stay=stay)

    serve(make, clock, mode=Mode.RANKS)


#: Those options of `ckpt-tui ranks` that say what to read and where to meet, not how it prints and leaves.
_TAKEN = {*signature(_ranks).parameters, *signature(scan_settings).parameters}
RANK_PARAMS = [param for param in ranks_command.command.params if param.name in _TAKEN]
command.add_command(click.Command("ranks", params=RANK_PARAMS, callback=_ranks, help=_ranks.__doc__))
