"""From a file to a plan: read safely, the format sniffed, every problem named with its line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.read import read_bytes
from gsd_fsm.plans.plan import Plan, PlanDraft, PlanTask, Problem, TaskDraft, Wave, task_name
from gsd_fsm.plans.validate import problems_of, warnings_of
from gsd_fsm.plans.values import title_of

MOST_BYTES = 4 << 20
_SHOWN = 20


class BrokenPlan(UsageError):
    """A plan that no loop can follow; `problems` names each reason."""

    def __init__(self, path: Path, problems: list[Problem], shown: int = _SHOWN) -> None:
        told = [f"{path}:{problem.line}: {problem.what}" for problem in problems[:shown]]
        if len(problems) > shown:
            told.append(f"and {len(problems) - shown} more")
        super().__init__("\n".join(told), "mend the plan, then: gsd-fsm plan check --plan FILE")
        self.path = path
        self.problems = problems


def load_plan(path: Path, only: Collection[str] | None = None) -> Plan:
    """The plan in this file; UsageError with file and line if it is none, or a broken one.

    `only` names the tasks that are wanted of a plan that is known to hold together: of a long one,
    the others need not be read.
    """
    content = read_bytes(path, MOST_BYTES, "a plan is a text for one phase, named with --plan FILE")
    return read_plan(path, content, only)


def read_plan(path: Path, content: bytes, only: Collection[str] | None = None) -> Plan:
    """Return the plan in this content of a file, as `load_plan` does."""
    draft = _draft(_text(path, content), None if only is None else frozenset(only))
    problems = problems_of(draft) if only is None else draft.problems
    if problems:
        raise BrokenPlan(path, problems)
    numbers = sorted({task.wave for task in draft.tasks if task.wave})
    return Plan(
        path,
        hashlib.sha256(content).hexdigest()[:16],
        draft.format,
        draft.phase,
        draft.title,
        draft.must_haves,
        tuple(draft.waves.get(number, Wave(number, "", False)) for number in numbers),
        tuple(_task(task) for task in sorted(draft.tasks, key=lambda task: task.wave or 0)),
        draft.estimated_tokens,
        warnings_of(draft),
    )


def _text(path: Path, content: bytes) -> str:
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BrokenPlan(path, [Problem(line, "not valid UTF-8")]) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BrokenPlan(path, [Problem(line, "a NUL character: this is no text")])
    return text


def _draft(text: str, only: Collection[str] | None) -> PlanDraft:
    first = text.lstrip()[:1]
    # Markdown may begin with a link, and so with a bracket.
    if first == "{" or (first == "[" and not re.search(r"^[ \t]*<task\b", text, re.MULTILINE)):
        from gsd_fsm.plans.structured import read_json

        return read_json(text)
    from gsd_fsm.plans.markdown import read_markdown

    return read_markdown(text, only)


def _task(task: TaskDraft) -> PlanTask:
    return PlanTask(
        id=task_name(task.number),
        number=task.number,
        title=title_of(task.title, task.action),
        wave=task.wave or 1,
        depends=tuple(dict.fromkeys(task_name(number) for number in task.depends)),
        files=task.files,
        action=task.action,
        libraries=task.libraries,
        checks=task.checks,
        done=task.done,
        skills=task.skills,
        reqs=task.reqs,
        test_required=task.test_required,
        test_files=task.test_files,
        commit_type=task.commit_type,
        line=task.line,
    )
