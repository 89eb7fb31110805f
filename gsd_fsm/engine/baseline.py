"""Run the checks of a new loop once, to know what passes and what fails before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.documents.journal_text import redact_and_truncate
from gsd_fsm.engine.context import Context, Receipt
from gsd_fsm.engine.criteria import LoopChecks, Proof, checked_criteria
from gsd_fsm.engine.planned.plan import MOST_BYTES, frozen_plan
from gsd_fsm.engine.protection.protect import ci_commands
from gsd_fsm.engine.protection.witness import variables_of
from gsd_fsm.evidence.interruption import Output, Watch, in_silence

if TYPE_CHECKING:
    from gsd_fsm.verify.gaps import Result

_MAX_TEXT = 500


class Baseline(NamedTuple):
    """The checks that passed and those that failed, by criterion or by their place in the plan."""

    passed: list[str]
    failed: list[str]
    manual: list[str]
    receipt: Receipt


def take_baseline(context: Context, loop: Loop, *, watch: Watch = in_silence) -> Baseline:
    """Run each check of a loop once and record what it returned; no criterion is met by this.

    If the output raises to end the commands, the loop stays, with the evidence recorded so far.
    """
    passed: list[str] = []
    failed: list[str] = []
    with watch() as output:
        output.say(f"Loop {loop.id} has started. Running its checks once, before any work.")
        for name, has_passed in _run_criteria(context, loop, output):
            (passed if has_passed else failed).append(name)
        results = _run_plan(context, loop, output)
    passed += [result.key for result in results if result.passed]
    failed += [result.key for result in results if result.passed is False]
    manual = [result.key for result in results if result.passed is None]
    return Baseline(passed, failed, manual, context.receipt(loop))


def _run_criteria(context: Context, loop: Loop, output: Output) -> list[tuple[str, bool]]:
    """Run the checks of criteria, record each as it ends, and return whether each passed."""
    checks = LoopChecks(context, loop, output)
    names = checked_criteria(loop)
    content = checks.content() if names else None
    tree = content.tree if content else None
    found = []
    for name, outcome in checks.run(names):
        with context.writing(loop) as tx:
            criterion = tx.loop.criterion(name)
            about = checks.witness.facts(name, outcome, criterion.directory)
            evidence = {**Proof(outcome, tree, tree).facts(criterion), **about}
            data = {"criterion": name, "met": False, "baseline": True, "evidence": evidence}
            tx.append("criterion", data)
        found.append((name, not outcome.exit_code))
    return found


def _run_plan(context: Context, loop: Loop, output: Output) -> list[Result]:
    """Run the checks that `verify` would run, and record their results."""
    from gsd_fsm.verify.run import run_plan_checks

    if not loop.is_planned:
        return []
    settings = context.settings()
    results = run_plan_checks(
        frozen_plan(context.project, loop),
        context.project,
        ci_commands(loop, settings) if loop.kind == "verify" else {},
        float(settings["check_timeout_seconds"]),
        output,
        find_shell=context.check_shell,
        reruns=settings["check_reruns"],
        variables=variables_of(context, loop),
    )
    with context.writing(loop) as tx:
        for portion in _portions(results):
            tx.append("plan", {"baseline": portion})
    return results


def _portions(results: list[Result]) -> list[list[dict[str, Any]]]:
    """Return the results of checks that a machine can decide, in lists that fit into one event."""
    lists: list[list[dict[str, Any]]] = []
    size = MOST_BYTES
    for result in results:
        if result.passed is None:
            continue
        facts = {
            "check": result.key,
            "passed": result.passed,
            "text": redact_and_truncate(result.text, _MAX_TEXT),
            "evidence": redact_and_truncate(result.evidence, _MAX_TEXT),
            **({"shell": result.shell} if result.shell else {}),
        }
        size += len(dumps(facts)) + 1
        if size > MOST_BYTES:
            lists.append([])
            size = len(dumps(facts)) + 1
        lists[-1].append(facts)
    return lists
