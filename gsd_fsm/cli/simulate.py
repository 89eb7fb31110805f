"""gsd-fsm simulate, hook: run the decisions of the hook without an agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli import SIGNALLED, run
from gsd_fsm.cli.call import Call, project_options
from gsd_fsm.cli.display.page import Line, status_word
from gsd_fsm.cli.display.show import show
from gsd_fsm.cli.output import say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import CheckFailed, GsdError, UsageError
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import read_option
from gsd_fsm.engine.context import require_trust

if TYPE_CHECKING:
    from gsd_fsm.engine.simulation import Outcome


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option("--copy", "copied", is_flag=True, help="Use a copy of this project's journal.")
@click.option("--full", is_flag=True, help="Show every answer in full.")
@project_options
def simulate(call: Call, *, file: str, copied: bool, full: bool) -> None:
    """Run a script of stops and commands without an agent.

    The decisions are real; the project is temporary, with --copy a copy of this one's journal.
    One step per line: a command (start goal "…"), 'prompt TEXT', 'stop TEXT', 'stop --tool TEXT',
    'stop --background shell:ID TEXT', 'failure rate_limit', 'session resume', 'FILE <- TEXT',
    'git init'. 'x10 STEP' repeats a step; 'COMMAND => 4' expects an exit code; {1} is the id of the
    first loop.
    """
    from gsd_fsm.engine.simulation import read_script, simulation

    steps = read_script(read_option(None, file, "the script") or "")
    journal = _trusted(call) if copied else None
    rows: list[dict[str, Any]] = []
    with simulation(run, journal) as running:
        for outcome in running.play(steps):
            rows.append(_row(outcome))
            if not call.json:
                _print_row(rows[-1], full)
            _require_expected(outcome)
    stops = [row["decision"] for row in rows if row["decision"]]
    blocks, status = stops.count("block"), rows[-1]["status"]
    if call.json:
        say(dumps({"steps": rows, "stops": len(stops), "blocks": blocks, "status": status}))
    else:
        words = f"{plural(len(stops), 'stop')}, {blocks} blocked; the loop is "
        show([Line([words, status_word(status)])])


def _row(outcome: Outcome) -> dict[str, Any]:
    step = outcome.step
    written = f"{step.arguments[0]} " if step.verb == "<-" else ""
    is_stop = step.verb == "stop"
    return {
        "line": step.line,
        "step": f"{written}{step.verb} {step.text}".rstrip(),
        "decision": ("block" if outcome.blocks else "allow") if is_stop else "",
        "events": [_name(event) for event in outcome.events],
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "said": outcome.output,
    }


def _print_row(row: dict[str, Any], full: bool) -> None:
    changes = " · ".join(filter(None, (row["decision"], ", ".join(row["events"])))) or "nothing"
    status = status_word(row["status"] or "no loop")
    step = Line(f"{row['line']:>4}  {row['step'][:60]}")
    show([step, Line([f"      → {changes} · ", status])])
    output = row["said"] if full else row["said"].split("\n", 1)[0]
    if output:
        say("        " + display(output, lines=True).replace("\n", "\n        "))


def _trusted(call: Call) -> Path:
    """Return the path of the journal here; raise CannotWrite unless it is trusted."""
    journal = call.context.journal
    require_trust(journal.read(), journal.path)
    return Path(journal.journal_path())


def _require_expected(outcome: Outcome) -> None:
    """Raise unless the exit code is the expected one; by default anything but a mistake or bug."""
    code, expected, line = outcome.exit_code, outcome.step.expected, outcome.step.line
    if expected is not None:
        if code != expected:
            raise CheckFailed(
                f"line {line}: expected exit code {expected}, got {code}", "Run with --full."
            )
        return
    if code > SIGNALLED:
        raise click.exceptions.Exit(code)
    if code in (GsdError.exit_code, UsageError.exit_code):
        error = f"\n{outcome.output}".rpartition("\ngsd-fsm: ")[2]
        message, _, hint = error.partition("\n  → ")
        kind = UsageError if code == UsageError.exit_code else GsdError
        raise kind(f"line {line}: {message}", hint or "Fix the script.")


def _name(event: dict[str, Any]) -> str:
    data = event["data"]
    detail = data.get("code") or data.get("action") or data.get("for") or data.get("status") or ""
    return f"{event['type']} {detail}".rstrip()


@click.command()
@click.option("--path", "show_path", is_flag=True, help="Print the path of the hook file.")
@project_options
def hook(call: Call, *, show_path: bool) -> None:
    """Run the hook on stdin, as a client does.

    One signal in, at most one JSON object out. Always exits with 0; failures are reported on stderr
    and in .gsd/hook.log.
    """
    from gsd_fsm.core.hook.main import main
    from gsd_fsm.install.hook_file import packaged_hook

    if show_path:
        path = str(packaged_hook())
        call.answer({"path": path}, path)
        return
    os.chdir(call.context.directory)
    main("cli")
