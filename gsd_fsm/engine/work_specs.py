"""Read criteria and tasks from the texts that describe them, as `start` and `plan` events hold them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.events.tasks import refuse_cycle
from gsd_fsm.core.loop.schema import duplicates, is_id
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.journal_text import redact_or_reject
from gsd_fsm.engine.context import ID_RULE

if TYPE_CHECKING:
    from pathlib import Path

Spec = dict[str, Any]

LONGEST_CHECK = 8_000


def criterion_specs(criteria: Collection[str], checks: Collection[str]) -> list[Spec]:
    """Return the criteria; those of `checks` are written NAME=CMD."""
    specs: list[Spec] = [
        {"name": redact_or_reject(text, "a criterion", 2_000)} for text in criteria
    ]
    for check in checks:
        name, equals, command = check.partition("=")
        if not equals or not name.strip() or not command.strip():
            raise UsageError(
                f"--check {check!r} is not NAME=CMD", 'Example: --check tests="pytest -q"'
            )
        specs.append(_check(name, command))
    _refuse_duplicates("criterion", [spec["name"] for spec in specs])
    return specs


def task_specs(
    tasks: Collection[str], steps: Collection[str], blocked_by: Collection[str]
) -> list[Spec]:
    """Return tasks, written ID[:TITLE], and steps; `blocked_by` is written ID=ID,ID."""
    specs: list[Spec] = []
    for text in tasks:
        task_id, _, title = text.partition(":")
        if not is_id(task_id):
            raise UsageError(f"--task {text!r}: {task_id!r} is not an id", ID_RULE)
        named = {"title": redact_or_reject(title, "a title", 500)} if title.strip() else {}
        specs.append({"id": task_id, **named})
    for number, step in enumerate(steps, 1):
        specs.append(
            {"id": f"S{number}", "title": redact_or_reject(step, "a step", 500), "step": True}
        )
    _refuse_duplicates("task", [spec["id"] for spec in specs])
    _add_dependencies(specs, blocked_by)
    return specs


def _add_dependencies(specs: list[Spec], blocked_by: Collection[str]) -> None:
    known = {spec["id"]: spec for spec in specs}
    for text in blocked_by:
        name, equals, others = text.partition("=")
        depends = split_ids((others,))
        unknown = [one for one in (name.strip(), *depends) if one not in known]
        if not equals or not depends or unknown:
            what = f"no such task: {', '.join(unknown)}" if unknown and equals else "not ID=ID"
            raise UsageError(
                f"--blocked-by {text!r}: {what}", "Example: --task A --task B --blocked-by B=A"
            )
        spec = known[name.strip()]
        spec["depends"] = [*spec.get("depends", ()), *depends]
    refuse_cycle({spec["id"]: spec.get("depends", []) for spec in specs})


def split_ids(texts: Collection[str]) -> list[str]:
    """Return the task ids in these texts, each once; a text may hold several, with commas."""
    ids = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    for name in ids:
        if not is_id(name):
            raise UsageError(f"{name!r} is not a task id", ID_RULE)
    return list(dict.fromkeys(ids))


def _check(name: str, command: str) -> Spec:
    if clean(command) != command or len(command) > LONGEST_CHECK:
        raise UsageError(
            f"the command of check {name!r} is not plain text of at most {LONGEST_CHECK} characters",
            "Put it into a script and name the script.",
        )
    return {"name": redact_or_reject(name, "a check's name", 200), "check": command.strip()}


def masked_checks(criteria: Collection[Spec]) -> list[str]:
    """Return a warning for each check that exits with 0 whatever happens."""
    checks = {spec["name"]: spec["check"] for spec in criteria if "check" in spec}
    if not checks:
        return []
    from gsd_fsm.documents.shell import masking_part

    found = {name: masking_part(command) for name, command in checks.items()}
    return [
        f"check {name!r} cannot fail: {part!r} masks its exit code"
        for name, part in found.items()
        if part
    ]


def _refuse_duplicates(what: str, names: list[str]) -> None:
    repeated = duplicates(names)
    if repeated:
        raise UsageError(f"duplicate {what}: {', '.join(repeated)}", "Remove the duplicate.")


# SHAPE.md


def shape_specs(directory: Path, name: str) -> tuple[Spec, list[str]]:
    """Return criteria, must-nots, file and digest of a SHAPE.md, and a note for the user."""
    from gsd_fsm.documents.shape import read_shape

    shape = read_shape(directory / name)
    criteria = criterion_specs(shape.criteria, ())
    criteria += [_check(*check) for check in shape.checks]
    _refuse_duplicates("criterion", [spec["name"] for spec in criteria])
    specs: Spec = {"criteria": criteria}
    if shape.must_not:
        specs["must_not"] = [redact_or_reject(text, "a must-not", 2_000) for text in shape.must_not]
    specs.update(
        {"file": redact_or_reject(name, "the name of the file", 1_000), "digest": shape.digest}
    )
    checks = [f"{spec['name']} ({spec['check']})" for spec in criteria if "check" in spec]
    checked = f", checked: {', '.join(checks)}" if checks else ""
    many = "criterion" if len(criteria) == 1 else "criteria"
    return specs, [f"{name}: {len(criteria)} {many}{checked}."]


def add_shape(data: Spec, directory: Path, name: str) -> list[str]:
    """Add a SHAPE.md to the data of a start, whose own criteria prevail; return notes."""
    shape, notes = shape_specs(directory, name)
    added = shape.pop("criteria")
    criteria = {spec["name"]: spec for spec in data.get("criteria", ())}
    notes += kept_checks({name: spec.get("check") for name, spec in criteria.items()}, added)
    for spec in added:
        criteria[spec["name"]] = {**spec, **criteria.get(spec["name"], {})}
    data["criteria"] = list(criteria.values())
    must_not = [*data.get("must_not", ()), *shape.pop("must_not", ())]
    if must_not:
        data["must_not"] = list(dict.fromkeys(must_not))
    data.setdefault("plan", shape)
    return notes


def kept_checks(own: Mapping[str, str | None], added: list[Spec]) -> list[str]:
    """Return a note for each criterion that has a check and is given another one."""
    return [
        f"{spec['name']!r} keeps its own check: {own[spec['name']]}."
        for spec in added
        if "check" in spec and own.get(spec["name"]) not in (None, spec["check"])
    ]
