"""Resume a loop after a pause, a question or an interruption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gsd_fsm.core.loop.events.lifecycle import used_up_tasks
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import running_tasks
from gsd_fsm.core.text.questions import may_decline
from gsd_fsm.core.usage.transcript import is_resting
from gsd_fsm.engine.answers import DECLINED
from gsd_fsm.engine.branches import Switch, branch_effects, take_branch
from gsd_fsm.engine.checkpoints import set_first_checkpoint
from gsd_fsm.engine.commit import task_effects
from gsd_fsm.engine.context import Context, Receipt, receipt, require_trust
from gsd_fsm.engine.follow_plan import (
    accept_plan_change,
    append_question,
    repository_of,
    require_human,
)
from gsd_fsm.replay import Replay


@dataclass(frozen=True)
class Running:
    """A task that was running: its reference, and its TDD phase."""

    task: str
    ref: str | None
    phase: str | None


@dataclass(frozen=True)
class Resumed:
    """A resumed loop; of a planned one, what was interrupted and which commits are on the branch."""

    receipt: Receipt
    switch: Switch | None
    running: list[Running]
    verified_commits: int
    missing_commits: list[str]


def resume(context: Context, add: Mapping[str, float]) -> Resumed:
    """Resume a loop in the calling session, with `add` added to its limits.

    The whole journal is verified and replayed by the state machine first. Effects that a killed
    command left unfinished are finished.
    """
    replay = Replay(context.journal())
    replay.run()
    require_trust(replay.loops, context.gsd)
    switches = any(branch_effects(context, context.loop(replay.loops)))
    with context.transaction() as tx:
        loop = context.loop(tx.loops)
        if loop.status == "paused" and (loop.pause_reason or "").startswith(DECLINED):
            require_human(loop, context.author, "continue against a no in")
        still_asked = _still_asked(loop)
        tx.append(loop, "resume", _data(context, loop, add))
        if not switches:
            accept_plan_change(tx, context.project, loop, context.author)
            if still_asked:
                tx.append(loop, "wait", still_asked, by="cli")
            append_question(tx, loop)
    switch = take_branch(context, loop) if switches else None
    proof = switch.receipt if switch else receipt(tx, loop)
    first = set_first_checkpoint(context, proof.loop).warning
    context.notices += [*([first] if first else []), *task_effects(context, proof.loop)]
    return Resumed(proof, switch, *_interrupted(context, proof.loop))


def _data(context: Context, loop: Loop, add: Mapping[str, float]) -> dict[str, Any]:
    data: dict[str, Any] = {"add": dict(add)} if add else {}
    if loop.kind == "goal":
        views = list(context.settings()["views"])
        data.update({"views": views} if views != loop.views else {})
    retried = used_up_tasks(loop) if "max_retries" in add else []
    data.update({"retry": retried} if retried else {})
    if is_resting(loop) or loop.owner != context.author.session:
        data["anew"] = True
    return data


def _still_asked(loop: Loop) -> dict[str, str] | None:
    """Return the wait for a decision that resuming does not make: it is more than yes or no."""
    if loop.status != "waiting" or loop.asked is None or may_decline(loop.asked):
        return None
    return {"for": "human", "question": loop.question or "", "about": loop.asked}


def _interrupted(context: Context, loop: Loop) -> tuple[list[Running], int, list[str]]:
    """Return the running tasks, the number of commits found, and the tasks whose commit is not."""
    if not loop.is_planned:
        return [], 0, []
    running = [
        Running(name, loop.tasks[name].ref, loop.tasks[name].phase) for name in running_tasks(loop)
    ]
    commits = {name: task.commit for name, task in loop.tasks.items() if task.commit}
    repository = repository_of(context.project) if commits else None
    if repository is None:
        return running, 0, []
    here = repository.contained(commits.values())
    missing = [name for name, commit in commits.items() if commit not in here]
    return running, len(commits) - len(missing), missing
