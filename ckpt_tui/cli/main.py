"""The `ckpt-tui` command: finds the command's module, runs it, and turns every ending into its exit code."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ..facts.outcome import CkptError, Exit, UsageError
from ..facts.version import VERSION
from ..present.safe import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The short help of each command; its module, of the same name, is imported only when it is asked for.
COMMANDS = {
    "scan": "identity and content of one checkpoint on this machine",
    "verify": "does it keep every hash that is on record of it?",
    "compare": "do these folders hold the same checkpoint? (no ranks)",
    "ranks": "one rank of a session: does every rank hold the same?",
    "attach": "the screen on a session of ranks that runs elsewhere",
    "replay": "a recording (`--record FILE`), shown again",
    "report": "a saved result again: for people, an issue tracker or a browser",
    "cache": "the digests that this machine remembers: list, prune, read again",
    "demo": "real ranks on this machine, a real checkpoint, one deliberate fault",
    "open": "the screen on one checkpoint (what `ckpt-tui PATH` does)",
    "_worker": "",
}


def _refuse_misspelt(word: str, commands: Sequence[str]) -> None:
    """UsageError for what is nearly a command and no path."""
    from difflib import get_close_matches

    meant = get_close_matches(word, commands, n=1, cutoff=0.75)
    if meant and not os.path.lexists(word):
        known = f"`ckpt-tui {meant[0]}` is one, and `ckpt-tui open` takes a repo of this name"
        raise UsageError(f"{escape(word)}: neither a command nor a path; {known}")


class Commands(click.Group):
    """Commands by name; any other first word is a path and opens the screen on it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands that a user may type."""
        return [name for name, help_ in COMMANDS.items() if help_]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and take its `command`."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{cmd_name.lstrip('_')}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, help_ in COMMANDS.items() if help_])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Command names win over paths of that name: `./scan` means the folder."""
        if args and args[0] not in COMMANDS:
            _refuse_misspelt(args[0], self.list_commands(ctx))
            args = ["open", *args]
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _: click.Parameter, wished: bool) -> None:
    """The version, and what decides how fast this installation hashes."""
    if not wished or ctx.resilient_parsing:
        return
    from ..facts.scan import DIGEST_LAYOUT
    from ..native import ABREAST, COMPILED

    speed = "two sha256 a core" if ABREAST == 2 else "compiled code" if COMPILED else "no compiled code, so slower"
    click.echo(f"ckpt-tui, version {VERSION} (digest layout {DIGEST_LAYOUT}; {speed})")
    ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    invoke_without_command=True,
    epilog="Exit codes: 0 the same, 1 a proven difference or damage, 2 wrong usage, 3 could not be decided, "
    "4 a rank is missing or lost, 130 interrupted.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Does every rank hold the same checkpoint, byte for byte, and if not, which bytes, on which rank, and why?

    `ckpt-tui PATH` opens the screen on a folder, a .safetensors file or a repo id (org/name) in the local hub cache.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(Exit.USAGE)


def run(argv: Sequence[str]) -> int:
    """Run one command; the exit code, whatever happened. Never a traceback for what a user can mend."""
    try:
        code = cli.main(list(argv), prog_name="ckpt-tui", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return Exit.USAGE
    except CkptError as error:
        _complain(str(error))
        return error.code
    except SystemExit as stop:
        # With 1, which here is a proven difference, click ends where the reader of a pipe has left.
        return stop.code if isinstance(stop.code, int) and stop.code != 1 else Exit.UNDECIDED
    except Exception as error:  # noqa: BLE001 - a traceback would leave with 1, which is a proven difference
        from ..present.safe import unexpected

        _complain(unexpected(error))
        return Exit.UNDECIDED
    return int(code or 0)


def _complain(text: str) -> None:
    """A line for each of the text's on stderr, if it takes one: the code has to be right either way."""
    with suppress(OSError):
        for line in text.splitlines():
            print(f"ckpt-tui: {line}", file=sys.stderr, flush=True)
