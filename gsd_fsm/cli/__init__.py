"""Parse a command, call the engine, print the result. A command's module is imported when it is used.

`call.py` has the options that all commands share, `output.py` and `display/` print.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from importlib import import_module
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm import __version__
from gsd_fsm.cli.help.candidates import COMPLETE_VARIABLE, complete_line, live_loops
from gsd_fsm.cli.help.words import ALIASES, OTHER_WORDS, VERSION
from gsd_fsm.cli.output import print_warnings
from gsd_fsm.config.program import program_here
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.command_line import PROGRAM, program, set_program
from gsd_fsm.core.errors import CannotWrite, GsdError, UsageError
from gsd_fsm.core.text.sanitize import harmless
from gsd_fsm.evidence.interruption import Interrupted

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

REDUNDANT = "Rarely needed"  # other commands cover them
# heading -> command -> module, in the order of `--help`
GROUPS = {
    "Everyday": {
        "start": "start", "status": "status", "next": "status", "why": "status",
        "replay": "replay", "answer": "lifecycle", "note": "note", "pause": "lifecycle",
        "resume": "lifecycle", "cancel": "lifecycle", "mode": "lifecycle", "release": "lifecycle",
        "rollback": "rollback", "accept": "accept", "proof": "proof",
    },
    "For agents": {
        "check": "check", "restore": "accept", "criterion": "check", "complete": "lifecycle", "wait": "lifecycle",
        "task": "task", "report": "report", "fail": "task", "tdd": "tdd", "verify": "verify",
        "gap": "verify", "score": "stage", "stage": "stage", "review": "stage", "spend": "note",
    },
    "Set-up": {
        "init": "init", "doctor": "doctor", "uninstall": "init", "trust": "trust",
        "import": "start", "statusline": "statusline", "completion": "completion",
    },
    "Inspection": {
        "ps": "trust", "history": "history", "plan": "plan", "config": "config", "recall": "recall",
        "fsck": "replay", "simulate": "simulate", "graph": "graph", "schema": "graph", "hook": "simulate",
    },
    REDUNDANT: {"exit-signal": "check", "verified": "verify", "iterate": "task"},
}  # fmt: skip
COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}

# A command in a hint; one that `command_line` composed for another program does not match.
_COMMAND = re.compile(r"(?<![^\s(`'])gsd-fsm(?= [a-z])")
_NARROWEST = 30  # columns of help
SIGNALLED = 128  # the exit code for a signal is this and its number
INTERRUPTED = "interrupted; acknowledged events are kept"


class _Help(click.HelpFormatter):
    """Help that also fits narrow terminals; click writes lines of 50 columns there."""

    def __init__(self, *args: Any, **options: Any) -> None:
        from shutil import get_terminal_size

        super().__init__(*args, **options)
        self.width = min(self.width, max(get_terminal_size().columns - 2, _NARROWEST))


class _Context(click.Context):
    formatter_class = _Help


class Commands(click.Group):
    context_class = _Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below the headings of their groups."""
        width = max(map(len, COMMANDS))
        for heading, rows in self.summaries(ctx).items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in rows.items()])

    def summaries(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """Return heading -> command -> the first line of its help, without the period."""
        return {
            heading: {
                name: _summary(command)
                for name in group
                if (command := self.get_command(ctx, name))
            }
            for heading, group in GROUPS.items()
        }

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return commands with uncut summaries, or options."""
        found = super().shell_complete(ctx, incomplete)
        for item in found:
            command = self.get_command(ctx, item.value)
            item.help = _summary(command) if command else item.help
        return found

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"gsd_fsm.cli.{COMMANDS[cmd_name]}")
        name = cmd_name.replace("-", "_") + ("_" if cmd_name in ("next", "import") else "")
        command = getattr(module, name)
        if not isinstance(command, click.Command):
            return None
        command.context_class = _Context
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            name = ctx.invoked_subcommand
            command = self.get_command(ctx, name) if name else None
            if error.ctx is None and command:  # click omits it if an option lacks its value
                error.ctx = click.Context(command, parent=ctx, info_name=name)
            raise
        except UsageError as error:  # the engine does not know which command was typed
            error.hint = error.hint.replace(" COMMAND ", f" {ctx.invoked_subcommand} ")
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0] if args else ""
        if word in OTHER_WORDS and not ctx.resilient_parsing:
            return self._resolve_word(ctx, args)
        if word in ALIASES:
            return super().resolve_command(ctx, [ALIASES[word], *args[1:]])
        if word in COMMANDS or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from gsd_fsm.cli.help.mistakes import unknown_command

        raise unknown_command(word, [name for name in COMMANDS if name not in GROUPS[REDUNDANT]])

    def _resolve_word(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Answer `version` and `help`; resolve `help COMMAND` as `COMMAND --help`."""
        if args[0] == VERSION:
            click.echo(f"{PROGRAM}, version {__version__}")
        elif len(args) > 1 and not args[1].startswith("-"):
            name, command, _ = self.resolve_command(ctx, args[1:2])
            if name != args[1]:
                click.echo(f"{args[1]} is an alias of {name}.\n")
            return name, command, ["--help"]
        else:
            click.echo(ctx.get_help())
        raise click.exceptions.Exit(0)


def _summary(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0].removesuffix(".")


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--project",
    metavar="DIR",
    help="Look for the project here instead of in the current directory.",
)
@click.option(
    "--loop",
    "loop_id",
    metavar="ID",
    shell_complete=live_loops,
    help="Act on this loop (default: this session's, or the only live one).",
)
@click.version_option(__version__, prog_name="gsd-fsm")
@click.pass_context
def cli(context: click.Context, project: str | None, loop_id: str | None) -> None:
    """Durable loops for coding agents: keep working until the work is proven done.

    Every event is appended to a checksummed journal (.gsd/journal.jsonl); the state is derived
    from it.

    For the options and examples of a command, run: gsd-fsm help COMMAND

    Exit codes: 0 done, 1 bug, 2 usage, 3 no project or loop, 4 refused by the state machine,
    5 journal corrupt, 6 cannot write, 7 a check failed, 130 interrupted.
    """
    if project:
        set_program(f"{program()} --project {quote(os.path.abspath(project))}")
    if context.invoked_subcommand is None:
        if loop_id:
            raise UsageError(
                "--loop has no effect without a command", f"Run: gsd-fsm status --loop {loop_id}"
            )
        from gsd_fsm.cli.overview import overview

        overview(project)


def main(arguments: list[str] | None = None) -> None:
    """Run one command, or complete a command line for a shell, and exit with its code."""
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        code = complete_line(cli, instruction)
    else:
        set_program(program_here())
        code = run(sys.argv[1:] if arguments is None else arguments)
    if code < SIGNALLED:  # else a reader that has stalled could hold up the exit
        code = _flushed(code)
    # Everything is written; the end of the interpreter would take a tenth of the call.
    os._exit(code)


def _flushed(code: int) -> int:
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:
        pass  # the reader has left
    except OSError:
        return code or CannotWrite.exit_code
    return code


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; report an error in one or two lines."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console shows "?" for other characters
            if sys.platform == "win32" and not stream.isatty():
                stream.reconfigure(encoding="utf-8", newline="\n")  # what every reader expects
    as_json, called = "--json" in arguments, program()
    try:
        # Not cli.main: it answers a broken pipe itself, with exit code 1.
        with cli.make_context("gsd-fsm", list(arguments), color=_colour()) as context:
            cli.invoke(context)
    except click.exceptions.Exit as left:
        return left.exit_code
    except GsdError as error:
        return _report(error.message, error.hint, error.exit_code, as_json, is_list=error.is_list)
    except click.UsageError as error:
        from gsd_fsm.cli.help.mistakes import usage_error

        found = usage_error(error)
        return _report(found.message, found.hint, found.exit_code, as_json)
    except Interrupted as interrupted:
        return _interrupted(interrupted.number, as_json)
    except (click.Abort, KeyboardInterrupt):
        return _report(INTERRUPTED, "", 130, as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for the flush at exit
        return 0
    except OSError as error:
        cause = f"{error.filename or 'a file'}: {error.strerror or error}"
        return _report(cause, "Fix the cause, then retry.", 6, as_json)
    except Exception as error:  # noqa: BLE001 - the last resort: no traceback for the user
        import traceback

        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        message = f"this is a bug in gsd-fsm: {type(error).__name__} at {place}: {error}"
        return _report(message, "Please report it. The journal is safe.", 1, as_json)
    finally:
        print_warnings()
        set_program(called)
    return 0


def _interrupted(number: int, as_json: bool) -> int:
    """Return the exit code for a signal; print a message for Ctrl-C only, which has a reader."""
    import signal

    code = SIGNALLED + number
    if number != signal.SIGINT:
        return code
    signal.signal(number, signal.SIG_DFL)  # a reader that has stalled could hold up the message
    return _report(INTERRUPTED, "", code, as_json)


def _colour() -> bool | None:
    """Return False if colour is not wanted, None if the stream decides."""
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if unwanted else None


def _as_run_here(hint: str) -> str:
    """Return the hint with each command as it is run here, in this project."""
    return _COMMAND.sub(lambda _: program(), hint)


def _report(message: str, hint: str, code: int, as_json: bool, *, is_list: bool = False) -> int:
    """Print a message and its hint on standard error; a list has several lines."""
    with contextlib.suppress(OSError):  # it may be this very stream that failed
        if as_json:
            click.echo(dumps({"error": message, "hint": _as_run_here(hint), "exit_code": code}))
    with contextlib.suppress(OSError):
        shown = message if is_list else " ".join(message.split())
        click.echo(f"gsd-fsm: {harmless(shown, lines=True)}", err=True)
        if hint:
            click.echo(f"  → {harmless(' '.join(_as_run_here(hint).split()))}", err=True)
    return code
