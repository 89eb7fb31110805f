"""See what the checks of one run depend on: files before and after, programs, variables, tests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.core.loop.protection import Protection
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.protection.compare import Comparison, Finding
from gsd_fsm.engine.protection.freeze import GIT
from gsd_fsm.evidence.test_counts import COUNTED, doubts
from gsd_fsm.protection import environment
from gsd_fsm.protection.commands import simple_commands
from gsd_fsm.protection.originals import Originals
from gsd_fsm.protection.programs.named import program_words
from gsd_fsm.protection.runners import runner_of

if TYPE_CHECKING:
    from gsd_fsm.evidence.checks import Outcome
    from gsd_fsm.git.tree import Content
    from gsd_fsm.verify.gaps import Result

_LONGEST_PATH = 300
MAX_COMMAND = 3_000


class Witness:
    """What is known about one run of checks, besides their outcomes.

    `variables` are those that the commands run with. A file that was altered before the first check
    or after the last one is altered.
    """

    def __init__(self, context: Context, loop: Loop) -> None:
        self.context, self.protection = context, loop.protection
        self.is_strict = loop.rules is not None and loop.rules.strict_tests
        self.comparison = Comparison(context, loop)
        self.finding = Finding([], {})
        self.first: Finding | None = None
        self.tree: str | None = None
        self.variables = variables_of(context, loop)

    @property
    def is_needed(self) -> bool:
        """Return whether anything is to be compared."""
        return self.comparison.is_needed

    def look(self, content: Content | None) -> None:
        """Compare the files now; `content` is that of the work tree, if it was read."""
        now = self.comparison.find(content)
        known = {it["path"] for it in now.altered}
        before = [it for it in self.finding.altered if it["path"] not in known]
        self.finding = now._replace(altered=[*before, *now.altered])
        self.first = self.first or now
        self.tree = content.tree if content else None

    def counts(self, name: str, outcome: Outcome) -> bool:
        """Return whether this outcome of a check that passed counts."""
        return not self.finding.of_check(name) and not self.is_refused(name, outcome)

    def is_refused(self, name: str, outcome: Outcome) -> bool:
        """Return whether the loop refuses a check that passed, because its tests are doubtful."""
        return self.is_strict and bool(self._doubts(name, outcome))

    def judged(self, result: Result) -> Result:
        """Return the result of a check, failed if it passed with tests that the loop refuses."""
        outcome = result.outcome
        if outcome is None or not result.passed or not self.is_refused(result.key, outcome):
            return result
        evidence = f"{result.evidence}; {'; '.join(self._doubts(result.key, outcome))}"
        return result._replace(passed=False, evidence=evidence)

    def marked(self, result: Result) -> Result:
        """Return the result of a check, marked if it passed and depends on an altered file."""
        is_altered = result.passed and bool(self.finding.of_check(result.key))
        return result._replace(altered=True) if is_altered else result

    def ran(self, result: Result) -> dict[str, Any]:
        """Return what the journal holds of a check that ran a command."""
        outcome = result.outcome
        tree = {"tree": self.tree} if self.tree else {}
        if outcome is None:
            return {"check": result.key, "passed": bool(result.passed), **tree}
        data: dict[str, Any] = {
            "check": result.key,
            "passed": bool(result.passed),
            "command": redact_and_truncate(outcome.command, MAX_COMMAND),
            "exit_code": outcome.exit_code,
            "digest": outcome.digest,
            "seconds": result.seconds,
            "timed_out": outcome.timed_out,
            "shell": outcome.shell,
            **tree,
        }
        if outcome.reruns:
            data["reruns"] = outcome.reruns
        return {**data, **self.facts(result.key, outcome)}

    def facts(self, name: str, outcome: Outcome, directory: str = "") -> dict[str, Any]:
        """Return what evidence of a check records about the run."""
        project = self.context.project
        started = simple_commands(outcome.command, directory, str(project))
        names = program_words(started)
        found = environment.resolve(names, project / directory, self.variables)
        own_git = changed_git(self.context, self.protection, self.variables)
        facts = {
            "altered": self.finding.of_check(name),
            "watched": self.finding.watched,
            "outside": self._outside(name),
            "rewritten": self._rewritten(name),
            "variables": environment.differing(self.protection.environment, self.variables),
            "programs": [*map(_known_as, found), *(it for it in own_git if "git" not in names)],
            "tests": outcome.tests._asdict() if outcome.tests is not None else None,
            "doubts": self._doubts(name, outcome),
        }
        return {name: value for name, value in facts.items() if value}

    def _doubts(self, name: str, outcome: Outcome) -> list[str]:
        runner = (
            "" if outcome.exit_code or outcome.tail.strip() else _silent_runner(outcome.command)
        )
        silent = [f"{runner} printed no result"] if runner else []
        return silent or doubts(outcome.tests, self.protection.most_tests.get(name))

    def _outside(self, name: str) -> list[dict[str, Any]]:
        """Return the files that a check names and that are not part of the tree.

        One that changed while the checks ran has no digest: only its existence counts.
        """
        before = self.first.outside if self.first else {}
        found: list[dict[str, Any]] = []
        for path in self.comparison.named(name):
            if path in self.finding.outside:
                now = self.finding.outside[path]
                is_stable = now is None or before.get(path, now) == now
                found.append({"path": path, **({"digest": now} if is_stable else {})})
        return found

    def _rewritten(self, name: str) -> list[str]:
        """Return what was written or moved while the checks ran, and is as it was before."""
        first, last = self.first or self.finding, self.finding
        known = {it["path"] for it in last.altered}
        return [
            path
            for path in self.comparison.depends(name)
            if first.stamps.get(path) != last.stamps.get(path)
            and path not in known
            and first.outside.get(path) == last.outside.get(path)
        ]


def _silent_runner(command: str) -> str:
    """Return the test runner that a command starts, "" if its output goes to a file."""
    started = [it for it in simple_commands(command) if not it.outputs]
    found = (runner.name for it in started if (runner := runner_of(it)) is not None)
    return next((name for name in found if name in COUNTED), "")


def changed_git(
    context: Context, protection: Protection, variables: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return the git that these variables lead to, if it is not the one of the start."""
    frozen = [it for it in protection.programs if it["name"] == GIT]
    now = [*map(_known_as, environment.resolve([GIT], context.project, variables))]
    return now if frozen and now != frozen else []


def _known_as(program: environment.Program) -> dict[str, str]:
    return {
        name: redact_and_truncate(text, _LONGEST_PATH) for name, text in program._asdict().items()
    }


def variables_of(context: Context, loop: Loop) -> Mapping[str, str]:
    """Return the variables that checks run with: our own, or with those of `start` in their place."""
    if loop.rules is None or not loop.rules.strict_env:
        return os.environ
    kept = Originals(context.gsd, loop.id).read(loop.protection.values)
    if kept is None:
        raise CheckFailed(
            f"the variables of the start of loop {loop.id} are missing (strict_env)",
            f"Set strict_env = false, then run: {command_line('start --fresh')}",
        )
    named = loop.protection.environment
    return environment.as_frozen(os.environ, json.loads(kept), named)
