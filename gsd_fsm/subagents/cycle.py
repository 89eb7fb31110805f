"""The TDD cycle as a subagent is told of it: which files each phase may touch, and when it is over."""

from __future__ import annotations

from gsd_fsm.plans.plan import PlanTask
from gsd_fsm.subagents.frame import block, element, framed
from gsd_fsm.tdd import first_phase, rules_of

_SUCCESS = {
    "red": "Test FAILS (this is correct!)",
    "green": "Test PASSES",
    "refactor": "Test still PASSES",
}
_ON_FAILURE = {
    "red": "",
    "green": "Analyze the error, fix the implementation, retry (do NOT modify tests)",
    "refactor": "Undo the refactoring; the task is still complete",
}
_ON_COMPLETE = {
    "red": "Lock the test files, proceed to GREEN",
    "green": "Proceed to REFACTOR",
    "refactor": "",
}


def is_test_driven(task: PlanTask) -> bool:
    return task.test_required in ("true", "existing")


def cycle(task: PlanTask, max_attempts: int, test_command: str) -> str:
    """The element of the cycle, "" for a task without tests; existing tests begin it at GREEN."""
    if not is_test_driven(task):
        return ""
    names = list(_SUCCESS)
    phases = [_phase(task, name) for name in names[names.index(first_phase(task)) :]]
    most = element("max_attempts", str(max_attempts))
    command = element("test_command", framed(test_command))
    return block("tdd_cycle", [most, command, *phases], enabled="true")


def _phase(task: PlanTask, name: str) -> str:
    rules = rules_of(task, name)
    tests_first = name == "red"
    unnamed = "the tests that you write for this task"
    body = [
        element("allowed_files", _paths(rules.allowed, unnamed if tests_first else "")),
        element("locked_files", _paths(rules.locked, "" if tests_first else unnamed)),
        element("goal", framed(rules.goal)),
        element("success_condition", _SUCCESS[name]),
        element("on_failure", _ON_FAILURE[name]),
        element("on_complete", _ON_COMPLETE[name]),
    ]
    return block("phase", body, name=name.upper())


def _paths(paths: tuple[str, ...], unnamed: str) -> str:
    return "\n".join(framed(path) for path in paths) or unnamed
