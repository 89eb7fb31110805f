"""`start`: make a loop, with its limits frozen into its first event."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
from pathlib import Path
from typing import Any

import click

from gsd_fsm import settings
from gsd_fsm.cli.call import COUNT, ID_RULE, MANY, Amount, Call, Event, require_trust, verb
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.codec import encode_event
from gsd_fsm.core.errors import NotFound, Refused, UsageError
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import JOURNAL_NAME, Journal, create_journal
from gsd_fsm.core.payloads import KINDS, MODES, is_id
from gsd_fsm.core.places import find_gsd, is_registered, make_gsd, new_gsd, register
from gsd_fsm.core.sanitize import clean
from gsd_fsm.texts import read_text, whole

LONGEST_CHECK = 8_000
_ALPHABET = "abcdefghjkmnpqrstvwxyz0123456789"


def new_id(prefix: str, length: int) -> str:
    return prefix + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(length))


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("goal", required=False)
@click.option("--goal-file", metavar="FILE|-", help="Read the goal from a file or stdin.")
@click.option("--phase", metavar="N", help="The phase this loop carries out.")
@click.option("--plan", metavar="FILE", help="The plan; its digest is frozen into the journal.")
@click.option("--mode", type=click.Choice(MODES), help="Ask a human at decisions, or go on.")
@click.option("--max-iterations", type=COUNT, metavar="N", help="0 is unlimited.")
@click.option("--max-retries", type=COUNT, metavar="N", help="Retries of each task.")
@click.option(
    "--stuck-limit", type=COUNT, metavar="N", help="Iterations without progress; 0 is off."
)
@click.option("--idle-limit", type=COUNT, metavar="N", help="Blocks without activity; 0 is off.")
@click.option("--budget", type=Amount(), metavar="USD", help="Pause when this much is spent.")
@click.option("--max-minutes", type=Amount(), metavar="N", help="Pause after this active time.")
@click.option(
    "--criterion", "criteria", multiple=True, metavar="TEXT", help="What must be true (repeatable)."
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="NAME=CMD",
    help="A criterion that a command proves (repeatable).",
)
@click.option("--task", "tasks", multiple=True, metavar="ID[:TITLE]", help="A task (repeatable).")
@click.option(
    "--step", "steps", multiple=True, metavar="TEXT", help="A step of the work (repeatable)."
)
@click.option(
    "--must-not",
    "must_not",
    multiple=True,
    metavar="TEXT",
    help="What must not happen (repeatable).",
)
@click.option("--fresh", is_flag=True, help="Cancel the live loop that stands in the way.")
@verb
def start(
    call: Call, *, kind: str, goal: str | None, goal_file: str | None, fresh: bool, **options: Any
) -> None:
    """Start a loop: execute tasks, verify until no gap is left, or pursue a goal.

    Example: gsd-fsm start goal "All tests pass" --check tests="pytest -q"
    """
    text = read_text(goal, goal_file, "the goal")
    if kind == "goal" and not (text or "").strip():
        raise UsageError("a goal loop needs a goal", 'gsd-fsm start goal "All tests pass"')
    data: dict[str, Any] = {"kind": kind}
    if text and text.strip():
        data["goal"] = whole(text, "the goal")
    data.update(_work(**{name: options[name] for name in ("criteria", "checks", "tasks", "steps")}))
    data.update(_frame(options, Path(call.start_directory)))
    gsd = _locate(call)
    if os.path.lexists(os.path.join(gsd, "STOP")):
        stop = os.path.join(gsd, "STOP")
        raise Refused(f"{stop} switches all loops off", f"remove it first: rm {shlex.quote(stop)}")
    known = _journal_id(gsd)
    # A project without a journal is new to this user, who starts the loop by hand: it is obeyed.
    trusted = not known or is_registered(known, gsd)
    tasks = len(data.get("tasks", ())) if kind == "execute" else 0
    data.update(_limits(gsd, trusted, options, tasks))
    loop_id = new_id("lp", 6)
    event = {**call.event("start", None, data), "loop": loop_id}
    _require_fit(event)
    if not known:
        _make_journal(gsd)
    journal = Journal(gsd)
    cancelled: list[str] = []

    def decide(world: World, _now: int) -> list[Event]:
        drafts = _cancellation(call, world) if fresh else []
        cancelled.extend(draft["loop"] for draft in drafts)
        return [*drafts, event]

    journal.transact(decide, lambda world: require_trust(world, gsd))
    loop = journal.world.loops[loop_id]
    owner = "" if loop.owner else " The next session that gets a prompt here will own it."
    if not loop.owner and not call.json and not _is_held(call.start_directory):
        owner = " No settings here name the hook: 'gsd-fsm init' lets it hold an agent."
    made = "" if known else f"Made {gsd}. "
    made += "".join(f"Cancelled loop {name}. " for name in cancelled)
    call.acknowledge(journal, loop, f"{made}Started {kind} loop {loop_id}.{owner}")


def _is_held(start: str) -> bool:
    """Whether the settings that Claude Code would read here start the hook."""
    from gsd_fsm.installer import survey
    from gsd_fsm.registration import ours

    return any(ours(place.document) for place in survey(start))


def _locate(call: Call) -> str:
    try:
        return find_gsd(call.start_directory)
    except NotFound:
        return new_gsd(call.start_directory)


def _journal_id(gsd: str) -> str:
    """The id of the journal there, "" when it must be made first."""
    path = os.path.join(gsd, JOURNAL_NAME)
    return Journal(gsd).glance().journal if os.path.lexists(path) else ""


def _make_journal(gsd: str) -> None:
    make_gsd(gsd)
    journal_id = new_id("j", 12)
    register(journal_id, gsd, now_ms())
    create_journal(gsd, journal_id, now_ms())


def _require_fit(event: Event) -> None:
    """UsageError, before anything is made, for what the journal could not hold."""
    try:
        encode_event({"v": 1, "seq": MANY, "ts": to_iso(0), **event}, "")
    except ValueError as error:
        raise UsageError(
            f"the loop cannot be journalled: {error}", "keep long texts in files that it names"
        ) from error


def _cancellation(call: Call, world: World) -> list[Event]:
    owner = call.caller.session
    return [
        call.event("cancel", loop, {"reason": "start --fresh"})
        for loop in world.live()
        if loop.owner == owner
    ]


def _work(
    criteria: tuple[str, ...],
    checks: tuple[str, ...],
    tasks: tuple[str, ...],
    steps: tuple[str, ...],
) -> dict[str, Any]:
    wanted: list[dict[str, Any]] = [
        {"name": whole(text, "a criterion", 2_000)} for text in criteria
    ]
    for check in checks:
        name, equals, command = check.partition("=")
        if not equals or not name.strip() or not command.strip():
            raise UsageError(f"--check {check!r} is not NAME=CMD", '--check tests="pytest -q"')
        if clean(command) != command or len(command) > LONGEST_CHECK:
            raise UsageError(
                f"the command of check {name!r} is no text, or longer than {LONGEST_CHECK} characters",
                "put it into a script and name that",
            )
        wanted.append({"name": whole(name, "a check's name", 200), "check": command.strip()})
    listed: list[dict[str, Any]] = []
    for spec in tasks:
        task_id, _, title = spec.partition(":")
        if not is_id(task_id):
            raise UsageError(f"--task {spec!r}: {task_id!r} is not an id", ID_RULE)
        listed.append(
            {"id": task_id, **({"title": whole(title, "a title", 500)} if title.strip() else {})}
        )
    for number, step in enumerate(steps, 1):
        listed.append({"id": f"S{number}", "title": whole(step, "a step", 500), "step": True})
    _refuse_twins("criterion", [spec["name"] for spec in wanted])
    _refuse_twins("task", [spec["id"] for spec in listed])
    work: dict[str, Any] = {}
    if wanted:
        work["criteria"] = wanted
    if listed:
        work["tasks"] = listed
    return work


def _refuse_twins(what: str, names: list[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise UsageError(f"{what} {', '.join(twins)} is named twice", "name each once")


def _frame(options: dict[str, Any], start: Path) -> dict[str, Any]:
    frame: dict[str, Any] = {}
    phase = options["phase"]
    if phase is not None:
        frame["phase"] = (
            int(phase) if phase.isdecimal() and len(phase) < 16 else whole(phase, "the phase", 100)
        )
    if options["plan"] is not None:
        plan = start / options["plan"]
        try:
            if plan.exists() and not plan.is_file():
                raise UsageError(f"{plan} cannot be read: not a file", "--plan names a file")
            content = plan.read_bytes()
        except OSError as error:
            raise UsageError(
                f"{plan} cannot be read: {error.strerror}", "--plan names a file"
            ) from error
        frame["plan"] = {
            "file": options["plan"],
            "digest": hashlib.sha256(content).hexdigest()[:16],
        }
    if options["must_not"]:
        frame["must_not"] = [whole(text, "a must-not", 2_000) for text in options["must_not"]]
    return frame


def _limits(gsd: str, trusted: bool, options: dict[str, Any], tasks: int) -> dict[str, Any]:
    """Options over settings over defaults, as they are frozen into the loop."""
    found = {name: s.value for name, s in settings.load(Path(gsd), trusted=trusted).items()}

    def pick(option: str, setting: str) -> Any:
        return found[setting] if options[option] is None else options[option]

    most = pick("max_iterations", "max_iterations")
    limits: dict[str, Any] = {
        "max_iterations": max(20, 3 * tasks) if most is None else most,
        "max_retries": pick("max_retries", "execute_max_retries"),
        "max_rounds": found["verify_max_iterations"],
        "tdd_max_attempts": found["tdd_max_attempts"],
        "stuck_limit": pick("stuck_limit", "stuck_limit"),
        "idle_limit": pick("idle_limit", "idle_limit"),
    }
    optional = {
        "budget_usd": pick("budget", "budget_usd"),
        "max_minutes": pick("max_minutes", "max_minutes"),
    }
    limits.update({name: value for name, value in optional.items() if value is not None})
    return {"mode": pick("mode", "mode"), "auto_loop": found["auto_loop"], "limits": limits}
