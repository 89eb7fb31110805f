"""The options that all commands share, and options whose default is a setting."""

from __future__ import annotations

from typing import Any

import click

from gsd_fsm.cli.help.candidates import live_loops


def _show_help(context: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from gsd_fsm.cli.help.screen import command_help

        click.echo(command_help(context))
        context.exit()


class SettingOption(click.Option):
    """An option whose help shows the value of a setting of this project in place of DEFAULT."""

    def __init__(self, *names: Any, setting: str, unset: str = "no limit", **declared: Any) -> None:
        super().__init__(*names, **declared)
        self.setting = setting
        self.unset = unset

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        value = _settings(ctx)[self.setting]
        return record[0], record[1].replace("DEFAULT", self.unset if value is None else f"{value}")


def _settings(context: click.Context) -> dict[str, Any]:
    """Return the settings in force here; all defaults if they cannot be read."""
    from gsd_fsm.config.in_force import in_force
    from gsd_fsm.config.keys import KEYS
    from gsd_fsm.core.errors import GsdError
    from gsd_fsm.engine.context import Context

    project = context.find_root().params.get("project") or "."
    try:
        found = in_force(Context(project).directory).settings
    except (GsdError, OSError):
        return {key.name: key.default for key in KEYS}
    return {name: setting.value for name, setting in found.items()}


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
