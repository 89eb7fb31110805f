"""Help: the list of commands, and options, aliases and examples of each command."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from gsd_fsm.cli import COMMANDS, GROUPS, REDUNDANT, cli
from gsd_fsm.cli.help.examples import EXAMPLES
from gsd_fsm.cli.help.words import ALIASES, SUGGESTED, closest
from gsd_fsm.core.loop.records import Limits
from tests.support.command_line import Here

# Commands that are not about one loop.
WITHOUT_LOOP = {
    *("start", "import", "init", "doctor", "uninstall", "trust", "completion", "ps", "config"),
    *("fsck", "simulate", "graph", "schema", "hook", "history"),
}
COLUMNS = 80


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("words", ["--help", "start --help", "replay --help"])
def test_help_fits_a_narrow_terminal(here: Here, words: str) -> None:
    for columns in (40, 100):
        lines = here.ok(*words.split(), env={"COLUMNS": str(columns)}).out.splitlines()
        text = lines[: lines.index("Examples:")] if "Examples:" in lines else lines
        assert max(map(len, text)) <= min(columns, 78)
    here.ok(*words.split(), env={"COLUMNS": "10"})


def test_help_lists_every_command_below_its_heading_with_an_uncut_summary(here: Here) -> None:
    shown = here.ok("--help").out
    assert here.ok("-h").out == here.ok("help").out == shown
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert "..." not in shown.partition("\n")[2]
    found: dict[str, list[str]] = {}
    for line in shown[shown.index("Everyday:") :].splitlines():
        if heading := re.fullmatch(r"(\S.*):", line):
            found[heading[1]] = names = []
        elif line:
            name, text = line.split(maxsplit=1)
            assert text == (command(name).help or "").splitlines()[0].removesuffix("."), name
            names.append(name)
    assert found == {heading: list(group) for heading, group in GROUPS.items()}
    assert list(found) == ["Everyday", "For agents", "Set-up", "Inspection", "Rarely needed"]
    assert found[REDUNDANT] == ["exit-signal", "verified", "iterate"]
    assert all(words in shown for words in ("4 refused", "7 a check", "--project DIR"))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_command_has_options_and_examples_within_80_columns(here: Here, name: str) -> None:
    shown = here.ok(name, "--help").out
    assert here.ok("help", name).out == here.ok(name, "-h").out == shown
    assert shown.startswith(f"Usage: gsd-fsm {name} ")
    usage, _, options = shown.partition("Options:")
    assert len(usage.split("\n\n")[1].strip()) > 20
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert ("--loop ID" in options) == (name not in WITHOUT_LOOP)
    assert "--json" in options
    assert options.count("--help") == 1
    assert not re.search(r"RANGE|x>=|<=x|INTEGER|FLOAT", shown), "a number range"
    assert list(EXAMPLES[name]) == re.findall(
        "^  (.*)$", options.partition("Examples:\n")[2], re.MULTILINE
    )
    assert not here.gsd.exists()


def test_every_example_is_parsed_by_its_command() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys()
    for name, lines in EXAMPLES.items():
        assert 1 <= len(lines) <= 3, name
        for line in lines:
            words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", line))
            end = next((at for at, word in enumerate(words) if word in "<>|"), len(words))
            assert words[:2] == ["gsd-fsm", name], line
            with command(name).make_context(name, words[2:end]) as context:
                given = {it: value for it, value in context.params.items() if value}
            assert len(given) >= (end > 2), line


def test_options_with_a_default_show_it() -> None:
    for name in COMMANDS:
        context = click.Context(command(name))
        for option in command(name).params:
            if not isinstance(option, click.Option) or option.is_flag or option.multiple:
                continue
            if isinstance(option.get_default(context), (str, int, float)):
                text = (option.get_help_record(context) or ("", ""))[1]
                assert "default" in text, (name, option.name)


def test_limits_of_start_show_the_defaults_that_loops_get(here: Here) -> None:
    here.ok("start", "goal", "g")
    limits = vars(Limits(here.lines()[1]["data"]["limits"]))
    shown = " ".join(here.ok("start", "--help").out.split())
    options = [it for it in command("start").params if it.name in limits]
    assert len(options) == 6
    for option in options:
        text = shown.partition(f" {option.opts[0]} ")[2].partition(")")[0]
        value = limits[str(option.name)]
        assert f"default: {'no limit' if value is None else value}" in text


def test_defaults_in_help_are_those_of_the_settings_here(here: Here) -> None:
    def shown(name: str) -> str:
        return " ".join(here.ok(name, "--help").out.split())

    assert "default: 20, or 3 per task if more)" in shown("start")
    assert "asking (default: interactive)" in shown("start")
    assert "seconds (default: 600)" in shown("check")
    here.gsd.mkdir()
    here.configure(max_iterations=50, mode="yolo", budget_usd=2.5, check_timeout_seconds=30)
    for words in ("default: 50)", "asking (default: yolo)", "default: 2.5)", "default: 5)"):
        assert words in shown("start")
    assert "mode (default: yolo)" in shown("import")
    assert "seconds (default: 30)" in shown("verify")
    here.configure(unknown=1)
    assert "seconds (default: 600)" in shown("check")
    assert not here.journal.exists()


@pytest.mark.parametrize("name", sorted(WITHOUT_LOOP))
def test_loop_option_is_refused_where_it_has_no_effect(here: Here, name: str) -> None:
    example = shlex.split(EXAMPLES[name][0].removeprefix('eval "$(').removesuffix(')"'))[1:]
    end = next((at for at, word in enumerate(example) if word in "<>|"), len(example))
    error = f"gsd-fsm: --loop has no effect on {name}\n  → Omit --loop.\n"
    assert here.refused(2, *example[:end], "--loop", "lp-1").err == error
    assert here.refused(2, "--loop", "lp-1", *example[:end]).err == error
    assert not here.gsd.exists()


def test_help_of_alias_names_its_command(here: Here) -> None:
    for alias, name in ALIASES.items():
        shown = here.ok(name, "--help").out
        assert f"Aliases: {alias}" in shown or f", {alias}\n" in shown
        assert here.ok(alias, "--help").out == shown
        said = here.ok("help", alias).out
        assert said == f"{alias} is an alias of {name}.\n\n{shown}"
    shown = here.ok("help").out
    assert not any(f"\n  {alias} " in shown for alias in ALIASES)
    assert here.ok("help", "--json").out == shown


def test_aliases_and_suggestions_name_useful_commands() -> None:
    words = {**ALIASES, **SUGGESTED}
    assert len(words) == len(ALIASES) + len(SUGGESTED)
    assert not words.keys() & COMMANDS.keys()
    assert {*words.values()} <= COMMANDS.keys() - GROUPS[REDUNDANT].keys()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("strat", "start"), ("stauts", "status"), ("stat", "status"), ("Status", "status"),
        ("done", "complete"), ("finish", "complete"), ("finsh", "complete"), ("run", "start"),
        ("undo", "rollback"), ("info", "status"), ("delete", "cancel"), ("rm", "cancel"),
        ("test", "check"), ("approve", "answer"), ("show", "status"), ("logs", "replay"),
        ("exit", "pause"), ("instll", "init"), ("verifed", "verify"), ("instal", "init"),
        ("stats", "status"), ("reume", "resume"), ("tail", "replay"), ("retry", "resume"),
        ("stop-all", "pause"), ("puase", "pause"), ("cancelled", "cancel"), ("set", "config"),
        ("hel", "help"), ("vers", "version"), ("login", ""),
        ("exit-signl", ""), ("iterat", ""), ("xyzzy", ""), ("", ""), ("-", ""),
    ],
)  # fmt: skip
def test_suggestion_is_the_closest_useful_command(typed: str, meant: str) -> None:
    useful = [name for name in COMMANDS if name not in GROUPS[REDUNDANT]]
    found = closest(typed, useful)
    assert found == meant or (not meant and found not in GROUPS[REDUNDANT])
