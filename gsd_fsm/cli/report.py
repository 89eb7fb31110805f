"""`report`: what a subagent said of its task, turned into events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from gsd_fsm.cli.call import Call, Event, require_trust, verb
from gsd_fsm.cli.checkpoints import set_checkpoint
from gsd_fsm.cli.failing import failure_data
from gsd_fsm.cli.planned import follows, project_of, repository_of, require_turn
from gsd_fsm.cli.work_record import commit_work, forget_copies, late_checkpoint
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.flow import MAX_TALK
from gsd_fsm.core.fold import World
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop, open_tasks
from gsd_fsm.core.payloads import is_id
from gsd_fsm.core.sanitize import display
from gsd_fsm.texts import keep, read_text, whole

if TYPE_CHECKING:
    from gsd_fsm.results import Issue, Result

MOST_FIXES = 20


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--file", "file", metavar="FILE|-", default="-", help="The output; default: stdin.")
@click.option("--commit", metavar="SHA", help="The commit that holds the result, if you made it.")
@verb
def report(call: Call, *, task_id: str, file: str, commit: str | None) -> None:
    """Record the output of the subagent that did a task, or fixed a gap.

    It must hold exactly one verdict: TASK COMPLETE, TASK FAILED: reason, or CHECKPOINT: decision;
    NEW ISSUE: [severity] text may stand beside it.
    """
    from gsd_fsm.results import read_result

    result = _kept(read_result(read_text(None, file, "the output") or ""))
    journal, world = call.glance()
    require_trust(world, journal.path)
    loop = call.choose(world)
    call.loop_id = loop.id
    name = _known(loop, task_id)
    if result.verdict == "complete" and _is_done(loop, name):
        _repeat(call, name, result)
        return
    result = _held_to_its_locks(journal, loop, name, result)
    sha = _resolved(journal, commit) if commit else None
    _rehearse(world, _drafts(call, loop, name, result, sha))
    if result.verdict == "complete" and sha is None:
        sha = commit_work(call, journal, loop, name, result)

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        yield from _drafts(call, loop, name, result, sha)
        yield from follows(call, loop)

    journal, loop = call.append(build)
    tag = None
    if result.verdict == "complete" and name in loop.tasks and loop.kind == "execute":
        tag = set_checkpoint(call, journal, loop, name, name)
        forget_copies(journal, loop, name)
    facts = {"task": name, "verdict": result.verdict, "commit": sha, "tag": tag}
    call.acknowledge(journal, loop, _words(loop, name, result, sha), **facts)
    _tell_more(call, loop, name, result)


def _held_to_its_locks(journal: Journal, loop: Loop, name: str, result: Result) -> Result:
    """The result; a claim of success with a changed locked file is a failure."""
    locked = loop.tasks[name]["locked"] if name in loop.tasks else None
    if result.verdict != "complete" or not locked:
        return result
    from gsd_fsm.tdd import changed

    touched = changed(project_of(journal), locked)
    if not touched:
        return result
    reason = f"locked files were changed: {', '.join(touched)}"
    return result._replace(verdict="failed", reason=reason)


def _resolved(journal: Journal, given: str) -> str:
    """The commit that is meant, by its own name; without git it is taken as it is."""
    repository = repository_of(journal)
    if repository is None:
        return whole(given, "the commit", 100)
    found = repository.resolved(given)
    if found is None:
        raise UsageError(f"{display(given)[:80]} is no commit here", "git log names them")
    return found


def _known(loop: Loop, given: str) -> str:
    """The task or gap that is meant: 'T01' may be called '01' as in its plan."""
    for name in (given, f"T{given}"):
        if name in loop.tasks or name in loop.gaps:
            return name
    if loop.accepts_tasks and loop.kind != "verify" and is_id(given):
        return given
    known = [*open_tasks(loop), *(g for g, gap in loop.gaps.items() if gap["status"] == "open")]
    raise UsageError(
        f"loop {loop.id} has no task or gap {display(given)}",
        f"open: {', '.join(known[:20]) or 'none'}",
    )


def _kept(result: Result) -> Result:
    """The result as it may go into the journal, into a commit and onto the screen: without secrets."""
    kept: dict[str, Any] = {
        name: keep(it) for name, it in result._asdict().items() if isinstance(it, str)
    }
    return result._replace(
        **kept,
        issues=_few(list(dict.fromkeys(result.issues))),
        files=tuple(keep(path, 1_000) for path in result.files),
        fixes=tuple(keep(text, 1_000) for text in result.fixes[:MOST_FIXES]),
        options=tuple(keep(text) for text in result.options),
    )


def _few(issues: list[Issue]) -> tuple[Issue, ...]:
    """So many issues as a loop keeps; the others are only counted, for each is an event."""
    if len(issues) > MAX_TALK:
        left = len(issues) - MAX_TALK + 1
        more = f"{left} more issues were reported and are not kept"
        issues = [*issues[:-left], issues[0]._replace(text=more)]
    return tuple(it._replace(severity=keep(it.severity, 100), text=keep(it.text)) for it in issues)


def _is_done(loop: Loop, name: str) -> bool:
    """Whether this task is complete; one that closed a gap is so until the gap comes back."""
    is_open = name in loop.gaps and loop.gaps[name]["status"] == "open"
    return not is_open and name in loop.tasks and loop.tasks[name]["status"] == "complete"


def _issues(call: Call, loop: Loop, name: str, result: Result) -> Iterator[Event]:
    """What was found on the way, once each: a report that was interrupted is given again."""
    known = [(it.get("task"), it.get("severity"), it["text"]) for it in loop.issues]
    for issue in result.issues:
        if (name, *issue) not in known:
            yield call.event("issue", loop, {"task": name, **issue._asdict()})


def _drafts(
    call: Call, loop: Loop, name: str, result: Result, commit: str | None
) -> Iterator[Event]:
    task = loop.tasks.get(name)
    is_gap = name in loop.gaps
    if is_gap and loop.gaps[name]["status"] != "open":
        raise Refused(f"gap {name} is closed already", "gsd-fsm verify")
    if is_gap:
        require_turn(loop, name)
    yield from _issues(call, loop, name, result)
    # A fix that succeeds at once only closes its gap; one that failed before is a task that is open.
    is_task = not is_gap or result.verdict != "complete" or name in open_tasks(loop)
    if is_task and (task is None or task["status"] != "running"):
        require_turn(loop, name)
        yield call.event("task", loop, {"task": name, "status": "running"})
    if result.verdict == "failed":
        error = f"{result.reason}\n\n{result.details}".strip()
        yield call.event(
            "failure",
            loop,
            failure_data(
                name, error, None, result.analysis, result.suggested_fix, alike=result.reason
            ),
        )
    elif result.verdict == "checkpoint":
        question = keep("\n".join((result.reason, *result.options)), 4_000)
        if result.recommendation:
            question += f"\nRecommendation: {keep(result.recommendation, 1_000)}"
        yield call.event("task", loop, {"task": name, "status": "checkpoint", "question": question})
    else:
        done: dict[str, Any] = {"task": name, "status": "complete"}
        if commit:
            done["commit"] = commit
        if result.details:
            done["summary"] = keep(result.details, 2_000)
        if result.fixes:
            done["fixes"] = list(result.fixes)
        if is_task:
            yield call.event("task", loop, done)
        if is_gap:
            yield call.event("gap", loop, {"action": "closed", "gap": name})


def _rehearse(world: World, drafts: Iterator[Event]) -> None:
    """Refuse what the journal would refuse, before git is asked to commit anything."""
    ts = to_iso(now_ms())
    for draft in drafts:
        world.apply({"v": 1, "seq": world.seq + 1, "ts": ts, **draft})


def _repeat(call: Call, name: str, result: Result) -> None:
    """A task that is complete already: only what is new in the report is kept."""
    journal, loop = call.append(lambda loop, _world, _now: _issues(call, loop, name, result))
    facts = {"task": name, "verdict": "complete", "commit": loop.tasks[name]["commit"]}
    facts["tag"] = late_checkpoint(call, journal, loop)
    call.acknowledge(journal, loop, f"Task {name} was complete already.", **facts)


def _words(loop: Loop, name: str, result: Result, commit: str | None) -> str:
    what = f"Gap {name}" if name in loop.gaps else f"Task {name}"
    if result.verdict == "failed":
        task = loop.tasks[name]
        said = f"{what} failed ({task['errors'][-1]['class']})."
        if loop.status == "retrying":
            said += f" Retry {task['retries']} of {loop.limits['max_retries']}."
    elif result.verdict == "checkpoint":
        said = f"{what} needs a decision."
    else:
        said = f"{what} is {'closed' if name in loop.gaps else 'complete'}."
        if commit:
            said += f" Commit {commit[:12]}."
    if loop.status == "paused":
        said += f" {(loop.pause_reason or '').rstrip('.')}."
    elif loop.status == "waiting":
        said += f" {' '.join((loop.question or '').split())}"
    return said


def _tell_more(call: Call, loop: Loop, name: str, result: Result) -> None:
    """The full context where a human is needed, the next step otherwise."""
    if call.json:
        return
    from gsd_fsm.cli.voice import say
    from gsd_fsm.core.advice import next_step

    if result.verdict == "checkpoint" and loop.status == "waiting":
        from gsd_fsm.subagents.failure_report import checkpoint_report

        say(checkpoint_report(loop, name, result))
    elif result.verdict == "failed" and loop.status == "paused":
        from gsd_fsm.subagents.failure_report import failure_report

        say(failure_report(loop, name))
    else:
        words, command = next_step(loop)
        say(display(f"Next: {words}"))
        say(display(f"Run: {command.replace('gsd-fsm', call.command, 1)}"))
