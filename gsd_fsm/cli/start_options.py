"""What the options of `start` say: criteria, tasks, and the limits that are frozen into a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gsd_fsm.cli.call import ID_RULE
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.payloads import is_id
from gsd_fsm.core.sanitize import clean
from gsd_fsm.core.waves import find_circle
from gsd_fsm.core.work import BREAK_CIRCLE
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
        wanted.append(_check(name, command))
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


def _check(name: str, command: str) -> dict[str, Any]:
    if clean(command) != command or len(command) > LONGEST_CHECK:
        raise UsageError(
            f"the command of check {name!r} is no text, or longer than {LONGEST_CHECK} characters",
            "put it into a script and name that",
        )
    return {"name": whole(name, "a check's name", 200), "check": command.strip()}


def split_ids(named: tuple[str, ...]) -> list[str]:
    """The ids of tasks in these texts, each once, separated by commas or given one by one."""
    ids = [name.strip() for text in named for name in text.split(",") if name.strip()]
    for name in ids:
        if not is_id(name):
            raise UsageError(f"{name!r} is not a task id", ID_RULE)
    return list(dict.fromkeys(ids))


def block(tasks: list[dict[str, Any]], blocked_by: tuple[str, ...]) -> None:
    """Let tasks wait for others, as `ID=ID,…` says."""
    known = {spec["id"]: spec for spec in tasks}
    for text in blocked_by:
        name, equals, others = text.partition("=")
        depends = split_ids((others,))
        unknown = [one for one in (name.strip(), *depends) if one not in known]
        if not equals or not depends or unknown:
            what = f"there is no task {', '.join(unknown)}" if unknown and equals else "not ID=ID"
            raise UsageError(f"--blocked-by {text!r}: {what}", "--task A --task B --blocked-by B=A")
        spec = known[name.strip()]
        spec["depends"] = [*spec.get("depends", ()), *depends]
    circle = find_circle({spec["id"]: spec.get("depends", ()) for spec in tasks})
    if circle:
        raise Refused(f"tasks depend on each other in a circle: {', '.join(circle)}", BREAK_CIRCLE)


def shape_work(start: Path, name: str) -> tuple[dict[str, Any], list[str]]:
    """What a SHAPE.md says of a goal, and where that stands; and what is to be told of it."""
    from gsd_fsm.shape_file import read_shape

    shape = read_shape(start / name)
    work: dict[str, Any] = work_of(shape.criteria, (), (), ())
    wanted = [*work.get("criteria", ()), *(_check(*check) for check in shape.checks)]
    _refuse_twins("criterion", [spec["name"] for spec in wanted])
    work["criteria"] = wanted
    if shape.must_not:
        work["must_not"] = [whole(text, "a must-not", 2_000) for text in shape.must_not]
    work.update({"file": whole(name, "the name of the file", 1_000), "digest": shape.digest})
    proofs = [f"{spec['name']} ({spec['check']})" for spec in wanted if "check" in spec]
    checks = f", checked: {', '.join(proofs)}" if proofs else ""
    many = "criterion" if len(wanted) == 1 else "criteria"
    told = [f"{name}: {len(wanted)} {many}{checks}", *shape.notes]
    return work, [note.rstrip(".") + "." for note in told]


def kept_checks(own: dict[str, str | None], wanted: list[dict[str, Any]]) -> list[str]:
    """What is told of criteria that have a check already, and are given another one."""
    return [
        f"{spec['name']!r} keeps its own check: {own[spec['name']]}."
        for spec in wanted
        if "check" in spec and own.get(spec["name"]) not in (None, spec["check"])
    ]


def _add_shape(data: dict[str, Any], start: Path, name: str) -> list[str]:
    """Put what a SHAPE.md says beside what the options say; the options win where both say it."""
    shape, notes = shape_work(start, name)
    wanted = shape.pop("criteria")
    said = {spec["name"]: spec for spec in data.get("criteria", ())}
    notes += kept_checks({name: spec.get("check") for name, spec in said.items()}, wanted)
    for spec in wanted:
        said[spec["name"]] = {**spec, **said.get(spec["name"], {})}
    data["criteria"] = list(said.values())
    must_not = [*data.get("must_not", ()), *shape.pop("must_not", ())]
    if must_not:
        data["must_not"] = list(dict.fromkeys(must_not))
    data.setdefault("plan", shape)
    return notes


def take_ways(
    data: dict[str, Any], found: dict[str, Any], options: dict[str, Any], start: Path
) -> list[str]:
    """Put into the data of a goal how it is pursued and shown; what is to be told of that."""
    data.update(ways_of(found, options["task_list"]))
    shape = options["shape_file"]
    return _add_shape(data, start, shape) if shape else []


def ways_of(found: dict[str, Any], task_list: str | None) -> dict[str, Any]:
    """How a goal is pursued and shown, as it is frozen into the loop."""
    ways: dict[str, Any] = {}
    if found["counsel"]:
        ways["counsel"] = found["counsel"]
    if found["views"]:
        ways["views"] = list(found["views"])
    mirrored = task_list or found["task_list"]
    if mirrored:
        ways["task_list"] = whole(mirrored, "the name of a task list", 200)
    return ways


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
        "max_tokens": pick("max_tokens", "max_tokens"),
    }
    limits.update({name: value for name, value in optional.items() if value is not None})
    return {"mode": pick("mode", "mode"), "auto_loop": found["auto_loop"], "limits": limits}
