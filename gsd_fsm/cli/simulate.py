"""gsd-fsm simulate, hook: run the decisions of the hook without an agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.output import counted, say, status_word
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import GsdError, UsageError
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.journal_text import read_option
from gsd_fsm.engine.context import require_trust


@click.command()
@click.argument("file", metavar="FILE|-")
@click.option(
    "--copy", "copied", is_flag=True, help="Run the script on a copy of this project's journal."
)
@click.option("--full", is_flag=True, help="Show every answer in full.")
@command_options
def simulate(call: Call, *, file: str, copied: bool, full: bool) -> None:
    """Run a script of stops, prompts and commands against the real decisions, without an agent.

    It runs in a scratch project, or on a copy of the journal; nothing of yours is changed.
    One step per line: a command (start goal "…"), 'prompt TEXT', 'stop TEXT', 'stop --tool TEXT',
    'stop --background shell:ID TEXT', 'failure rate_limit', 'session resume', 'x10 stop TEXT'.
    """
    from gsd_fsm.cli import run
    from gsd_fsm.engine.simulation import Outcome, read_script, rehearsal

    steps = read_script(read_option(None, file, "the script") or "")
    journal = _trusted(call) if copied else None
    rows: list[dict[str, Any]] = []
    blocks = 0

    def show(outcome: Outcome) -> None:
        step = outcome.step
        kinds = [_name(event) for event in outcome.events]
        rows.append(
            {
                "line": step.line,
                "step": f"{step.verb} {step.words}".rstrip(),
                "decision": _decision(outcome),
                "events": kinds,
                "status": outcome.status,
                "exit_code": outcome.exit_code,
                "said": outcome.said,
            }
        )
        if call.json:
            return
        said = outcome.said if full else outcome.said.split("\n", 1)[0]
        say(f"{step.line:>4}  {display(rows[-1]['step'][:60])}")
        verdict = " · ".join(filter(None, (_decision(outcome), ", ".join(kinds))))
        say(f"      → {display(verdict) or 'nothing'} · {status_word(outcome.status or 'no loop')}")
        if said:
            say("        " + display(said, lines=True).replace("\n", "\n        "))

    with rehearsal(run, journal) as stage:
        for outcome in stage.play(steps):
            show(outcome)
            blocks += outcome.blocks
            _insist(outcome)
    stops = [row for row in rows if row["step"].startswith("stop")]
    if call.json:
        say(
            dumps(
                {"steps": rows, "stops": len(stops), "blocks": blocks, "status": rows[-1]["status"]}
            )
        )
        return
    say(
        f"{counted(len(stops), 'stop')}, {blocks} blocked; the loop is {status_word(rows[-1]['status'])}"
    )


def _trusted(call: Call) -> Path:
    """Return the path of the journal here; raise CannotWrite unless it is trusted."""
    journal = call.context.journal()
    require_trust(journal.read(), journal.path)
    return Path(journal.journal_path())


def _insist(outcome: Any) -> None:
    """End the run at a usage error, a bug or a signal; a refusal is an outcome like others."""
    if outcome.exit_code > 128:
        raise click.exceptions.Exit(outcome.exit_code)
    if outcome.exit_code not in (GsdError.exit_code, UsageError.exit_code):
        return
    told = f"\n{outcome.said}".rpartition("\ngsd-fsm: ")[2]
    message, _, hint = told.partition("\n  → ")
    kind = UsageError if outcome.exit_code == UsageError.exit_code else GsdError
    raise kind(f"line {outcome.step.line}: {message}", hint or "Fix the script.")


def _decision(outcome: Any) -> str:
    if outcome.step.verb != "stop":
        return ""
    return "block" if outcome.blocks else "allow"


def _name(event: dict[str, Any]) -> str:
    data = event["data"]
    detail = data.get("code") or data.get("action") or data.get("for") or data.get("status") or ""
    return f"{event['type']} {detail}".rstrip()


@click.command()
@click.option("--path", "show_path", is_flag=True, help="Print where the hook file is.")
@command_options
def hook(call: Call, *, show_path: bool) -> None:
    """Run the hook on stdin as a client would: one signal in, at most one JSON object out.

    Always exits with 0; failures are reported on stderr and in .gsd/hook.log.
    """
    from gsd_fsm.core.hook.main import main
    from gsd_fsm.install.installer import packaged_hook

    if show_path:
        path = str(packaged_hook())
        call.answer({"path": path}, path)
        return
    os.chdir(call.context.directory)
    main("cli")
