"""`ckpt-tui ranks`: one rank of a session."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from ..facts.outcome import CkptError, Exit, Interrupted, UsageError, agreement_code
from ..facts.ranksets import named
from ..facts.settings import RankSettings
from ..facts.status import Phase
from ..present import units
from ..present.safe import escape, unexpected
from ..worker.lifetime import claim_stdout
from .gate import Gate
from .lines import record_option, recorder
from .open import is_own_terminal, watch
from .options import Age, as_arguments, format_option, scan_options, scan_settings
from .outlet import Outlet, say
from .reporting import check_report, in_the_way, report_options

if TYPE_CHECKING:
    from ..ranks import Place, Session

#: A launcher's SIGTERM comes within a moment of another rank's death: seconds in which that may still be noticed.
_GRACE = 0.8
#: How many facts may be given with --with, and how long each may be.
_FACTS, _FACT_CHARS = 64, 1024
#: Seconds after the last question for which ranks are held ready, unless the user says otherwise.
HOLD = 600.0
#: Seconds between two lines of progress.
_PROGRESS = 5.0


class NotAcknowledged(CkptError):
    """All agreed, and then not every rank was still there to go on."""

    code = Exit.INCOMPLETE

    def __init__(self) -> None:
        super().__init__("the ranks agree, but not every rank acknowledged that in time: none becomes the command")


class Gated(click.Command):
    """A command whose words after `--` are another's: never parsed here, and kept whatever they look like."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line, with the command to become."""
        return [*super().collect_usage_pieces(ctx), "[-- CMD ARG...]"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut at the first `--`."""
        gate: list[str] = []
        if "--" in args:
            at = args.index("--")
            args, gate = args[:at], args[at + 1 :]
            if not gate:
                raise click.UsageError("after -- comes the command to become", ctx)
        rest = super().parse_args(ctx, _with_hold_time(args))
        ctx.params["gate"] = tuple(gate)
        return rest


def _with_hold_time(args: list[str]) -> list[str]:
    """`--hold` alone as `--hold=10m`: the word after it may be the path."""
    given: list[str] = []
    for place, word in enumerate(args):
        following = args[place + 1] if place + 1 < len(args) else ""
        alone = word == "--hold" and not re.fullmatch(Age.pattern, following)
        given.append(f"--hold={HOLD:.0f}s" if alone else word)
    return given


@click.command(cls=Gated)
@click.argument("path")
@click.option("--master", metavar="HOST:PORT", help="Where rank 0 listens.  [default: as the launcher says]")
@click.option("--world-size", type=click.IntRange(min=1), help="How many ranks there are.  [default: WORLD_SIZE]")
@click.option("--rank", type=click.IntRange(min=0), help="Which of them this is.  [default: RANK, else handed out]")
@click.option(
    "--join-timeout", type=Age(at_least=1), default="300s", show_default=True, help="How long to wait for the others."
)
@click.option(
    "--rank-timeout",
    type=Age(at_least=1),
    default="60s",
    show_default=True,
    help="How long a rank may be silent before it is lost.",
)
@click.option(
    "--hold",
    type=Age(),
    metavar="[TIME]",
    help=f"Where files differ, stay ready to be asked, until TIME after the last question.  [TIME: {HOLD / 60:.0f}m]",
)
@click.option("--keep-going", is_flag=True, help="Read every byte also where the headers differ.")
@click.option("--identity-only", is_flag=True, help="Compare configs, indexes and headers alone; read no tensor.")
@click.option(
    "--with",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="A fact that must be equal too: engine=0.9.1. May be repeated.",
)
@click.option("--strict", is_flag=True, help="Leave with 1 where all agree, but with a warning.")
@click.option(
    "--result",
    type=click.Path(dir_okay=False, writable=True),
    help="The lowest surviving rank writes the agreement's JSON to this file.",
)
@click.option("--tui", is_flag=True, help="Open the screen on this rank. Elsewhere, `ckpt-tui attach` opens one.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw the screen with plain ASCII.")
@record_option
@report_options
@scan_options
@format_option()
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    path: str,
    master: str | None,
    world_size: int | None,
    rank: int | None,
    join_timeout: float,
    rank_timeout: float,
    hold: float | None,
    keep_going: bool,
    identity_only: bool,
    given: tuple[str, ...],
    strict: bool,
    result: str | None,
    report: str | None,
    redact: bool,
    force: bool,
    tui: bool,
    ascii_only: bool,
    record: str | None,
    format_: str,
    gate: tuple[str, ...],
    **scan: Any,
) -> int:
    """Be one rank of a session: does every rank hold the same checkpoint, byte for byte?

    Under torchrun no option is needed:  torchrun --nproc-per-node 3 --no-python ckpt-tui ranks PATH.
    Without it give every rank --master and --world-size, and either --rank or not: where no rank has one, the first
    that runs on the master's host listens there as rank 0, and hands out the others' numbers.
    All ranks print the same agreement and leave with the same code.

    With -- CMD each rank becomes CMD once every rank agrees and knows that all do. What we say goes to stderr then:
    stdout is CMD's.
    """
    check_report(report, redact=redact, force=force and record is None, late=True)
    if tui:
        return _on_screen(ctx, path, ascii_only=ascii_only, record=record, force=force)
    if record is not None:
        raise UsageError("--record goes with --tui; from outside:  ckpt-tui attach HOST:PORT --plain --record FILE")
    opening = Gate(gate) if gate else None
    # torch warns on fd 2 of every connection that is slow; what matters is said by us.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from ..ranks import Flags, Session, find_place

    place = find_place(Flags(master=master, world_size=world_size, rank=rank))
    settings = RankSettings(
        scan=scan_settings(identity_only=identity_only, **scan),
        join_timeout=join_timeout,
        rank_timeout=rank_timeout,
        hold=hold or 0.0,
        keep_going=keep_going,
        strict=strict,
        refusal=in_the_way(report, force=force) or in_the_way(result, force=True),
        given=facts(given),
    )
    session = Session(path, place, settings, note=lambda line: say(f"{_who(session)}: {line}"))
    stdout = claim_stdout()
    outlet = Outlet(
        stdout=stdout if opening is None else 2,
        format_=format_,
        result=result,
        report=report,
        redact=redact,
        force=force,
    )
    _leave_on_signals(session)
    if place.rank in {0, None} and format_ == "human":
        threading.Thread(target=_tell_progress, args=(session, place), name="progress", daemon=True).start()
    # Gloo may abort a process that takes the usual way out after a peer was lost: the code is ours to say.
    os._exit(_take_part(session, outlet, stdout, strict=strict, gate=opening))


def _on_screen(ctx: click.Context, path: str, *, ascii_only: bool, record: str | None, force: bool) -> int:
    """The rank is the screen's worker: it gets every option that says what to read, where to meet and how to judge."""
    from ..ranks import Flags, find_place
    from .worker import RANK_PARAMS

    given = ctx.params
    if given["gate"]:
        raise UsageError("--tui with -- CMD: CMD would need the terminal; start it without --tui, and attach to it")
    if given["format_"] != "human":
        raise UsageError("--tui draws a screen: take --result FILE for the agreement's JSON")
    if given["report"] is not None:
        raise UsageError("--tui draws a screen: take --result FILE, and make the report of it with ckpt-tui report")
    place = find_place(Flags(master=given["master"], world_size=given["world_size"], rank=given["rank"]))
    facts(given["given"])  # what is wrong with them is said before a screen opens
    if not is_own_terminal():
        raise UsageError(
            "--tui needs a terminal of its own, which a launcher's children have not: start the ranks without it, "
            f"and from a terminal:  ckpt-tui attach {place.store}"
        )
    return watch(
        ["ranks", *as_arguments(RANK_PARAMS, given), "--", path],
        title=escape(path),
        start_view="ranks",
        ascii_only=ascii_only,
        line_by_line=False,
        recorder=recorder(record, force=force),
    )


def facts(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The facts by key. Both travel to every rank, so they are short and escaped."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals) or len(text) > _FACT_CHARS:
            raise click.UsageError(
                f"--with {escape(text[:80])!r}: KEY=VALUE is needed, {_FACT_CHARS} characters at most"
            )
        if escape(key) in found:
            raise click.UsageError(f"--with {escape(key)}: given twice")
        found[escape(key)] = escape(value)
    if len(found) > _FACTS:
        raise click.UsageError(f"--with: {_FACTS} facts at most")
    return tuple(sorted(found.items()))


def _take_part(session: Session, outlet: Outlet, stdout: int, *, strict: bool, gate: Gate | None) -> int:
    try:
        agreement = session.run()
        written = outlet.take(agreement, session.rank)
        acknowledged = session.part(unwritten=not written)
        code = agreement_code(agreement, strict=strict)
        if session.unwritten and code is Exit.SAME:
            code = Exit.UNDECIDED
        if gate is None or code is not Exit.SAME:
            return code
        _check_that_all_go_on(session, acknowledged=acknowledged)
        gate.open(stdout)
    except CkptError as error:
        say(f"ckpt-tui: {error}")
        return error.code
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends with a line and a code
        say(f"ckpt-tui: {unexpected(error)}")
        return Exit.UNDECIDED


def _check_that_all_go_on(session: Session, *, acknowledged: bool) -> None:
    """Between the verdict and the command a rank may die, and a launcher may end all."""
    if session.cancelled:
        raise Interrupted("the ranks agree; interrupted before the command was started")
    if not acknowledged:
        raise NotAcknowledged


def _tell_progress(session: Session, place: Place) -> None:
    """A line every few seconds while any rank reads: how far all are, and who is last. First, where to see it all."""
    hint = f"a screen on this session:  ckpt-tui attach {place.store}" if place.world_size > 1 else ""
    while True:
        time.sleep(_PROGRESS)
        reading = [status for status in session.statuses().values() if status.phase is Phase.CONTENT]
        if reading and session.rank == 0:
            if hint:
                say(hint)
                hint = ""
            done = sum(status.bytes_done for status in reading)
            total = sum(status.bytes_total for status in reading)
            last = min(reading, key=lambda status: status.bytes_done / max(status.bytes_total, 1))
            say(
                f"{named(status.rank for status in reading)}: {units.percent(done, total)} of {units.size(total)}, "
                f"{units.rate(sum(status.rate for status in reading))}; last: rank {last.rank} ({last.host}) with "
                f"{units.percent(last.bytes_done, last.bytes_total)}"
            )


def _leave_on_signals(session: Session) -> None:
    """Ctrl+C and a launcher's SIGTERM end the session; after the verdict nothing does. A second Ctrl+C is final."""

    def leave(number: int, _frame: object) -> None:
        if number == signal.SIGINT and session.cancelled and session.held is None:
            os._exit(Exit.INTERRUPTED)
        session.cancel(grace=0.0 if number == signal.SIGINT else _GRACE)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, leave)


def _who(session: Session) -> str:
    return "a rank" if session.rank is None else f"rank {session.rank}"
