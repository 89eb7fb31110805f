"""The options that all commands share, and how a command answers."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.help.options import SettingOption, help_option, json_option, loop_option
from gsd_fsm.cli.output import Screen, flat, say, warn
from gsd_fsm.core.clock import to_iso, to_ms
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.command_line import program
from gsd_fsm.core.errors import CheckFailed, GsdError, UsageError
from gsd_fsm.core.text.sanitize import harmless
from gsd_fsm.engine.context import Context, Receipt
from gsd_fsm.engine.effects import CommandContext
from gsd_fsm.evidence.interruption import interruptible

if TYPE_CHECKING:
    from gsd_fsm.cli.display.page import Part
    from gsd_fsm.core.loop.state import Loop

MANY = 10**9
# Commands that report on the hook themselves.
_ABOUT_THE_HOOK = ("doctor", "init", "uninstall")
# Commands that read the journal itself, never its snapshot.
_AUDITS = ("fsck", "replay")


class Number(click.types.FloatParamType):
    """A number from `least` to `most`, whole unless declared otherwise."""

    def __init__(
        self, least: int = 0, most: int = MANY, *, whole: bool = True, above: bool = False
    ) -> None:
        self.least = least
        self.most = most
        self.whole = whole
        self.above = above

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number: float = float("nan")
        with contextlib.suppress(ValueError):
            number = int(value) if self.whole else float(value)
        if not self.least <= number <= self.most or (self.above and number == self.least):
            kind = "a whole number" if self.whole else "a number"
            first = f"above {self.least}, up to" if self.above else f"from {self.least} to"
            self.fail(f"{str(value)[:40]!r} is not {kind} {first} {self.most}", param, ctx)
        return int(number) if number == int(number) else number


COUNT = Number()
ONE_OR_MORE = Number(1)
AMOUNT = Number(whole=False)

timeout_option = click.option(
    "--timeout",
    cls=SettingOption,
    setting="check_timeout_seconds",
    type=ONE_OR_MORE,
    metavar="SECONDS",
    help="Time limit per command in seconds (default: DEFAULT).",
)


def parse_time(text: str) -> str:
    """Return a time as the journal writes it, from any ISO 8601 text; without a zone it is UTC."""
    from datetime import datetime, timezone

    try:
        return to_iso(to_ms(text))
    except (ValueError, IndexError):
        pass
    try:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        if found.tzinfo is None:
            found = found.replace(tzinfo=timezone.utc)
        return to_iso(int(found.timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time", "Example: 2026-11-15T23:00:07Z") from error


class Call:
    """Hold the context of one command, and print its answer."""

    def __init__(self, project: str | None, loop: str | None, json: bool) -> None:
        self.context: Context = CommandContext(project or ".", loop)
        self.json = json

    def print_receipt(
        self, receipt: Receipt, words: str, lines: Iterable[str] = (), **more: Any
    ) -> None:
        """Print one JSON object; or `lines`, then `words` and the status of the loop in one line."""
        loop = receipt.loop
        facts = {"loop": loop.id, "seq": receipt.seq, "status": loop.status, "head": receipt.head}
        last = flat(f"{words} Loop {loop.id} is {loop.status}.")
        self.answer({**facts, **more}, "\n".join([*lines, last]))

    def print_checked(
        self,
        receipt: Receipt,
        words: str,
        facts: dict[str, Any],
        *,
        lines: Iterable[str] = (),
        is_passed: bool,
    ) -> None:
        """Print like `print_receipt`; exit with 7 unless passed, even if nobody reads the output."""
        with self.checked(is_passed=is_passed):
            self.print_receipt(receipt, words, lines, **facts)

    @contextlib.contextmanager
    def checked(self, *, is_passed: bool) -> Iterator[None]:
        """Exit with 7 after this block unless passed, even if nobody reads what it prints."""
        with contextlib.suppress(BrokenPipeError):
            yield
        if not is_passed:
            raise click.exceptions.Exit(CheckFailed.exit_code)

    @contextlib.contextmanager
    def screen(self) -> Iterator[Screen]:
        """Yield a screen on standard output, or stderr with --json; a signal ends the block."""
        from gsd_fsm.cli.display.progress import ProgressLine
        from gsd_fsm.cli.display.show import is_read_by_person

        with interruptible() as interruption:
            stream = sys.stderr if self.json else sys.stdout
            line = ProgressLine() if is_read_by_person(sys.stderr) else None
            is_agent = self.context.author.by == "agent"
            screen = Screen(stream, interruption, for_agent=is_agent, line=line)
            try:
                yield screen
            finally:
                screen.erase()

    def show(self, facts: dict[str, Any], page: Iterable[Part]) -> None:
        """Print one JSON object, or a page."""
        if self.json:
            say(dumps(facts))
        else:
            from gsd_fsm.cli.display.show import show

            show(list(page))

    def answer(self, facts: dict[str, Any], words: str) -> None:
        """Print one JSON object, or `words`, in which no foreign text has lines of its own."""
        say(dumps(facts) if self.json else harmless(words, lines=True))


def command_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--loop`, `--json` and `--help`, and a Call as its first argument."""
    return loop_option(_with_call(function))


def project_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command that is not about one loop `--json` and `--help`, and a Call."""
    return _with_call(function)


def _with_call(function: Callable[..., None]) -> Callable[..., None]:
    @json_option
    @help_option
    @click.pass_context
    @functools.wraps(function)
    def run(context: click.Context, /, as_json: bool, **options: Any) -> None:
        outer = context.find_root().params
        takes_loop = "loop_id" in options
        loop_id = options.pop("loop_id", None) or outer.get("loop_id")
        if loop_id and not takes_loop:
            raise UsageError(f"--loop has no effect on {context.info_name}", "Omit --loop.")
        call = Call(outer.get("project"), loop_id, as_json)
        try:
            function(call, **options)
        finally:
            for notice in call.context.notices:
                warn(notice)
            if context.info_name not in _ABOUT_THE_HOOK:
                _warn_about_project(call.context, context.info_name)

    return run


def _warn_about_project(context: Context, name: str | None) -> None:
    """Warn if a loop of the project here is live, and no client runs the hook for it."""
    if "gsd" not in vars(context):
        return  # the command is not about a project
    from gsd_fsm.core.project import is_registered

    with contextlib.suppress(GsdError, OSError):
        journal = context.journal
        is_read = journal.at.offset or name in _AUDITS
        loops = journal.loops if is_read else journal.read_cached()
        live = loops.live()
        if live and is_registered(loops.journal_id, context.gsd):
            start = os.fspath(context.directory)
            warn_of_missing_hook(os.path.dirname(context.gsd), live, start)


def warn_of_missing_hook(project: str, live: list[Loop], start: str = "") -> None:
    """Warn if no client runs the hook for these loops of a project.

    `start`: the current directory; without it, the command that fixes the problem names the project.
    """
    from gsd_fsm.install.presence import missing_hook, relies_on_settings

    loops = [loop for loop in live if relies_on_settings(loop)]
    problem, command = missing_hook(project, start or project) if loops else ("", "")
    if problem:
        which = f"loop {loops[0].id}" if len(loops) == 1 else f"{len(loops)} live loops"
        place = "" if start else f" --project {quote(project)}"
        warn(f"{which} will not continue: {problem}. Run: {program()}{place} {command}")
