"""The options that all commands share: `--loop`, `--json` and `--help`."""

from __future__ import annotations

import click

from gsd_fsm.cli.help.candidates import live_loops


def _show_help(context: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from gsd_fsm.cli.help.screen import command_help

        click.echo(command_help(context))
        context.exit()


loop_option = click.option(
    "--loop",
    "loop_id",
    metavar="ID",
    shell_complete=live_loops,
    help="Act on this loop (default: this session's, or the only live one).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
help_option = click.option(
    "-h",
    "--help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_help,
    help="Show this message and exit.",
)
