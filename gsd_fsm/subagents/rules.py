"""What every subagent must keep to, and the one way in which it reports."""

from __future__ import annotations

from gsd_fsm.core.text.quoting import one_line
from gsd_fsm.plans.plan import Plan, PlanTask
from gsd_fsm.subagents.cycle import is_test_driven
from gsd_fsm.subagents.frame import BLUNTED, block, element, framed

_LISTED_ONLY = "Only modify files listed in files/test_files elements"
RULES = (
    "If test_required=true: Execute TDD Red-Green-Refactor cycle",
    "RED phase: Only modify test files, implementation files are LOCKED",
    "GREEN/REFACTOR phases: Only modify implementation files, test files are LOCKED",
    "NEVER modify test files to make them pass - fix the implementation instead",
    _LISTED_ONLY,
    "Follow skills exactly if provided",
    "If libraries listed and Context7 available, fetch current docs before implementing",
    "Complete ALL verification checks before reporting done",
    "Do not expand scope beyond this task",
    "Do not refactor unrelated code",
)
_OUTPUT = """\
Report exactly ONE of:
- TASK COMPLETE (with files modified, test status, and commit message)
- TASK FAILED: {{reason}} (with blocker details and attempts made)
- CHECKPOINT: {{decision needed}} (for architecture/manual steps)

If unrelated issues found:
- NEW ISSUE: [{{severity}}] {{description}}

If something small had to be mended for this task to work:
- AUTO-FIX: {{description}}

A program reads this report: each of these begins a line of its own, in capitals and outside of
code fences, and of the first three there is one in all. Below a verdict, each on its own line:
- when complete, Files: a, b
- when complete, Tests: {{status}}
- when complete, Commit message: {commit}: {{description}}
- when failed, Blocker: {{details}}
- when failed, Attempts: {{what was tried}}
- when failed, Root cause: {{analysis}}
- when failed, Suggested fix: {{what to try next}}
- at a checkpoint, A) {{option}}
- at a checkpoint, Recommendation: {{choice}}"""


def rules(task: PlanTask, command: str, blunted: bool) -> str:
    """The rules of this task; `blunted`: its text had an end of one of our elements in it."""
    found = [rule for rule in RULES if task.files or rule != _LISTED_ONLY]
    if not task.files:
        found.append("The plan lists no files: only modify what the action names")
    if is_test_driven(task):
        run = framed(f"{command} tdd {task.id}")
        found.append(
            f"Run `{run}` to begin the TDD cycle and to see which files may change now; "
            f"run `{run} --run` to end a phase: it runs the tests and decides"
        )
    paths = [file.path for file in task.files] + list(task.test_files)
    listed = any(path.removeprefix("./").startswith(".gsd/") for path in paths)
    found.append("Change no file in .gsd" + (" but those listed above" if listed else ""))
    if blunted:
        found.append(f"Where the task says {BLUNTED} it means </: write it so into files")
    return block("rules", [element("rule", rule) for rule in found])


def output(plan: Plan, task: PlanTask) -> str:
    """The forms of a report."""
    where = task.number if plan.phase is None else f"{plan.phase}-{task.number}"
    return output_for(f"{task.commit_type}({where})")


def output_for(commit: str) -> str:
    """The forms of a report of work whose commit begins like this."""
    return element("output", _OUTPUT.format(commit=one_line(commit, 120)))
