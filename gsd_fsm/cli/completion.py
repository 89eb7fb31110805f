"""gsd-fsm completion: print the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete

from gsd_fsm.cli.call import Call, project_options
from gsd_fsm.cli.help.candidates import COMPLETE_VARIABLE
from gsd_fsm.cli.help.shells import SHELLS
from gsd_fsm.cli.output import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.command_line import PROGRAM


@click.command()
@click.argument("shell", type=click.Choice([*SHELLS]))
@project_options
def completion(call: Call, *, shell: str) -> None:
    """Print the completion script for a shell.

    It completes commands, options and ids. Add the line of your shell (see the examples) to ~/.bashrc, to ~/.zshrc below compinit, or to
    ~/.config/fish/config.fish.
    """
    root = click.get_current_context().find_root().command
    # Not BashComplete.source, which would run bash to read its version.
    script = ShellComplete.source(SHELLS[shell](root, {}, PROGRAM, COMPLETE_VARIABLE))
    say(dumps({"shell": shell, "script": script}) if call.json else script)
