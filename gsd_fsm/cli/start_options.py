"""What the options of `start` say: criteria, tasks, and the limits that are frozen into a loop."""

from __future__ import annotations

from typing import Any

from gsd_fsm.cli.call import ID_RULE
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.payloads import is_id
from gsd_fsm.core.sanitize import clean
from gsd_fsm.texts import whole

LONGEST_CHECK = 8_000


def work_of(
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


def limits_of(found: dict[str, Any], options: dict[str, Any], tasks: int) -> dict[str, Any]:
    """Options over settings over defaults, as they are frozen into the loop."""

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
