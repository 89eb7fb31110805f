"""Load a plan from a file in Markdown or JSON; its content decides which."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from gsd_fsm.documents.read import Malformed, Mistakes, decode, read_bytes
from gsd_fsm.plans.plan import Plan, PlanDraft, Problem, Wave
from gsd_fsm.plans.validate import give_waves, problems_of, warnings_of

MOST_BYTES = 4 << 20
_SHOWN = 20


class BrokenPlan(Mistakes):
    """A plan that no loop can follow; `problems` names each reason."""

    def __init__(self, path: Path, problems: list[Problem], shown: int = _SHOWN) -> None:
        lines = [f"{path}:{problem.line}: {problem.what}" for problem in problems[:shown]]
        if len(problems) > shown:
            lines.append(f"and {len(problems) - shown} more")
        hint = "Fix the plan, then run: gsd-fsm plan check --plan FILE"
        super().__init__(lines, hint)
        self.path = path
        self.problems = problems


def load_plan(path: Path, only: Collection[str] | None = None, frozen: str = "") -> Plan:
    """Return the plan in this file; raise BrokenPlan with file and lines, or Unreadable.

    `only` limits a plan that is known to be valid to the tasks of these ids, to save time. A plan
    with the digest `frozen` may have unknown words: its loop began when they were ignored.
    """
    hint = "Name the plan of one phase with --plan FILE."
    return read_plan(path, read_bytes(path, MOST_BYTES, hint), only, frozen)


def read_plan(
    path: Path, content: bytes, only: Collection[str] | None = None, frozen: str = ""
) -> Plan:
    """Return the plan in this content of a file, as `load_plan` does."""
    digest = hashlib.sha256(content).hexdigest()[:16]
    try:
        draft = _draft(decode(content, path), only)
    except Malformed as error:
        raise BrokenPlan(path, [Problem(error.line, error.problem)]) from error
    if digest != frozen:
        draft.problems += draft.unknown
    give_waves(draft)
    problems = problems_of(draft) if only is None else draft.problems
    if problems:
        raise BrokenPlan(path, problems)
    numbers = sorted({task.wave for task in draft.tasks})
    return Plan(
        path,
        digest,
        draft.format,
        draft.phase,
        draft.title,
        draft.must_haves,
        tuple(draft.waves.get(number, Wave(number, "", False)) for number in numbers),
        tuple(sorted(draft.tasks, key=lambda task: task.wave)),
        draft.estimated_tokens,
        warnings_of(draft),
    )


def _draft(text: str, only: Collection[str] | None) -> PlanDraft:
    first = text.lstrip()[:1]
    # Markdown may begin with a link, and so with a bracket.
    if first == "{" or (first == "[" and not re.search(r"^[ \t]*<task\b", text, re.MULTILINE)):
        from gsd_fsm.plans.from_json import read_json

        return read_json(text)
    from gsd_fsm.plans.from_markdown import read_markdown

    return read_markdown(text, None if only is None else frozenset(only))
