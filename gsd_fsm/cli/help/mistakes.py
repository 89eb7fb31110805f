"""Turn each error in a command line into a message and a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable
from shlex import quote

import click

from gsd_fsm.cli.help.words import OTHER_WORDS, closest
from gsd_fsm.core.command_line import PROGRAM
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import one_line

HELP_HINT = f"Run: {PROGRAM} --help"
_LOOP_ID = re.compile(r"\blp-[0-9a-z]{6}\b")
_EXTRA = re.compile(r"Got unexpected extra arguments? \((\S+)")


def unknown_command(word: str, useful: Iterable[str]) -> UsageError:
    """Return the error for a word that is not a command; suggest one of the useful ones."""
    found = closest(word, useful)
    if any(map(str.isspace, word)):
        hint = f"To start a loop with this goal, run: {PROGRAM} start {quote(one_line(word))}"
    elif found in OTHER_WORDS:
        hint = f"Did you mean '{found}'? Run: {PROGRAM} {found}"
    else:
        hint = f"Did you mean '{found}'? Run: {PROGRAM} {found} --help" if found else HELP_HINT
    return UsageError(f"unknown command '{one_line(word)}'", hint)


def usage_error(error: click.UsageError) -> UsageError:
    """Return an error of click in our style: lower case, no final period, one instruction."""
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error)
    choice = error.param.type if isinstance(error, click.MissingParameter) and error.param else None
    if isinstance(choice, click.Choice):
        return UsageError(f"missing argument: one of {', '.join(choice.choices)}", _help(error))
    message = re.sub(r"^Invalid value for '[\[{].*?'", "invalid value", error.format_message())
    message = f"{message[:1].lower()}{message[1:]}".removesuffix(".")
    return UsageError(message, _option_hint(error) or _help(error))


def _help(error: click.UsageError) -> str:
    return f"Run: {error.ctx.command_path} --help" if error.ctx else HELP_HINT


def _option_hint(error: click.UsageError) -> str:
    """Return the hint for an id or a word that should be an option, else ""."""
    if error.ctx is None:
        return ""
    flags = _flags(error.ctx.command)
    loop, extra = _LOOP_ID.search(error.message), _EXTRA.match(error.message)
    if loop and "--loop" in flags:
        return f"Run: {error.ctx.command_path} --loop {loop[0]}"
    option = f"--{extra[1].rstrip(')')}" if extra else ""
    return f"Run: {error.ctx.command_path} {option}" if flags.get(option) else ""


def _unknown_option(error: click.NoSuchOption) -> UsageError:
    name, context = error.option_name, error.ctx
    message, hint = f"no such option '{name}'", _help(error)
    if context is None:
        return UsageError(message, hint)
    if context.parent is None and name == "--json":
        hint = f"Write it after the command: {PROGRAM} COMMAND --json"
    elif name == "--loop":
        message, hint = f"--loop has no effect on {context.info_name}", "Omit --loop."
    elif name == "--project":
        hint = f"Write it before the command: {PROGRAM} --project DIR {context.info_name}"
    elif name == "--goal" and context.info_name == "start":
        hint = f'Run: {PROGRAM} start goal "GOAL"'
    elif error.possibilities:
        hint = f"Did you mean '{error.possibilities[0]}'? {hint}"
    return UsageError(message, hint)


def _flags(command: click.Command) -> dict[str, bool]:
    """Return the options of a command, and whether each is a flag."""
    options = (it for it in command.params if isinstance(it, click.Option))
    return {name: it.is_flag for it in options for name in it.opts}
