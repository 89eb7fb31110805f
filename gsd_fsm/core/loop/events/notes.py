"""Facts that leave the status as it is: mode, plan, usage, notes, issues, checkpoints."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.events.lifecycle import CRITERIA, MODES, TASKS
from gsd_fsm.core.loop.events.sessions import RELAYED
from gsd_fsm.core.loop.events.tasks import continue_task
from gsd_fsm.core.loop.limits import require_room
from gsd_fsm.core.loop.protection import PROTECTION_FIELDS, protection_text
from gsd_fsm.core.loop.records import Criterion, Issue, Note, Rollback, Task
from gsd_fsm.core.loop.schema import (
    AMOUNT,
    COUNT,
    COUNTS,
    DIGESTS,
    ID,
    IDS,
    SAME,
    TEXTS,
    Arrow,
    EventType,
    Trigger,
    one_of,
    records,
)
from gsd_fsm.core.loop.spending import money, record_spending
from gsd_fsm.core.loop.state import LIVE, MAX_KEPT
from gsd_fsm.core.loop.waves import lay_waves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import (
        CheckpointData,
        Event,
        IssueData,
        ModeData,
        NoteData,
        PlanData,
    )
    from gsd_fsm.core.loop.state import Loop


def set_mode(loop: Loop, event: Event[ModeData]) -> None:
    loop.mode = event["data"]["mode"]


MODE = EventType(
    "mode",
    Trigger(verb="mode", arrows=(Arrow(LIVE, SAME, set_mode),)),
    required={"mode": one_of(*MODES)},
    optional=RELAYED,
    text="{mode}",
)


def change_plan(loop: Loop, event: Event[PlanData]) -> None:
    """Add new tasks and criteria; take over what the event says of the plan."""
    data = event["data"]
    if loop.waves_due and any(spec["id"] in loop.tasks for spec in data.get("tasks", ())):
        lay_waves(loop)  # a replaced task keeps the wave of its new specification
    for task_spec in data.get("tasks", ()):
        task = loop.tasks.get(task_spec["id"])
        if task is None or task.status == "pending":
            loop.put_task(Task(task_spec["id"], task_spec))
            if data.get("carried"):
                continue_task(loop, task_spec)
    for spec in data.get("criteria", ()):
        known = loop.criteria.get(spec["name"])
        joins = data.get("joins") and known is not None and known.check is None and "check" in spec
        if known is None or joins:
            loop.record_progress("criterion:" + spec["name"])
            if known is not None:
                loop.drop_proof(known)
            loop.criteria[spec["name"]] = Criterion(spec)
            loop.exit_signal = False
    loop.must_not.update(dict.fromkeys(data.get("must_not", ())))
    if "wave" in data:
        loop.wave_files.setdefault(str(data["wave"]), {}).update(data.get("modified", {}))
    for result in data.get("baseline", ()):
        loop.baseline[result["check"]] = result["passed"]
    if not data.keys().isdisjoint(PROTECTION_FIELDS):
        loop.protection.update(data)
    elif data.keys() - {"tasks", "criteria", "must_not", "joins", "baseline", "carried"}:
        loop.plan.update(data)
        loop.plan.task_count = data.get("count", loop.plan.task_count)


def require_human_to_accept(loop: Loop, event: Event[PlanData], loops: Loops) -> None:
    """Refuse an agent that accepts the change of a check."""
    accepts = "accepted" in event["data"] or "command" in event["data"]
    if accepts and event["by"] == "agent":
        raise Refused(
            "agents cannot accept a change of a check of loop %s" % loop.id,
            "Ask the user to run this in another terminal.",
        )


def _plan_text(data: Any) -> str:
    if not data.keys().isdisjoint(PROTECTION_FIELDS):
        return protection_text(data)
    named = ("digest", "file", "changed", "count", "title", "waves", "joins")
    words = [str(data[name]) for name in named if name in data]
    return " ".join(words) + ("wave %s began" % data["wave"] if "wave" in data else "")


# What the checks of the plan returned before any work.
RESULTS = records(
    "results",
    {"check": str, "passed": bool, "text": str, "evidence": str, "shell": str},
    ("check", "passed"),
)
PLAN = EventType(
    "plan",
    Trigger(
        rules=(require_room, require_human_to_accept),
        arrows=(Arrow(LIVE, SAME, change_plan),),
    ),
    optional={
        "digest": str, "file": str, "changed": bool, "tasks": TASKS, "count": COUNT, "title": str,
        "waves": COUNT, "sequential": COUNTS, "criteria": CRITERIA, "must_not": TEXTS, "joins": bool,
        "wave": COUNT, "modified": DIGESTS, "baseline": RESULTS, "carried": bool, **RELAYED,
        **PROTECTION_FIELDS,
    },
    text=_plan_text,
)  # fmt: skip


def _spend_text(data: Any) -> str:
    amounts = [money(data["usd"])] if "usd" in data else []
    mark = "~" if data.get("estimated") else ""
    amounts += [mark + money(data["replies_usd"])] if "replies_usd" in data else []
    amounts += ["%d tokens" % data["tokens"]] if "tokens" in data else []
    amounts += ["%s in total" % money(data["total_usd"])] if "total_usd" in data else []
    return "%s %s" % (", ".join(amounts), data.get("what", ""))


SPEND = EventType(
    "spend",
    Trigger(verb="spend", arrows=(Arrow(LIVE, SAME, record_spending),)),
    optional={
        "usd": AMOUNT, "tokens": COUNT, "what": str, "meter": str, "total_usd": AMOUNT,
        "source": str, "counted": COUNT, "messages": TEXTS, "replies_usd": AMOUNT,
        "estimated": bool, "whole": bool,
    },
    text=_spend_text,
)  # fmt: skip


def keep_note(loop: Loop, event: Event[NoteData]) -> None:
    data = event["data"]
    if data.get("kind") == "recall":
        kept = loop.dismissed if data.get("dismissed") else loop.recalled
        kept.append(data["text"])
        del kept[:-MAX_KEPT]
    else:  # never dropped: each was promised to be delivered
        loop.notes[event["seq"]] = Note(event["seq"], data["text"], event["by"])


NOTE = EventType(
    "note",
    Trigger(verb="note", rules=(require_room,), arrows=(Arrow(LIVE, SAME, keep_note),)),
    required={"text": str},
    optional={"kind": one_of("steer", "recall"), "dismissed": bool, "source": str},
    text="{text}[ {kind}][ {dismissed}][ {source}]",
)


def keep_issue(loop: Loop, event: Event[IssueData]) -> None:
    data = event["data"]
    loop.issues.append(Issue(event["seq"], data["text"], data.get("severity"), data.get("task")))
    del loop.issues[:-MAX_KEPT]


ISSUE = EventType(
    "issue",
    Trigger(arrows=(Arrow(LIVE, SAME, keep_issue),)),
    required={"text": str},
    optional={"severity": str, "task": ID},
    text="[{task} ][{severity} ]{text}",
)


def record_checkpoint(loop: Loop, event: Event[CheckpointData]) -> None:
    """Record the tag; `reset` names the tasks that a rollback to it has undone."""
    data = event["data"]
    name = data["name"]
    if "reset" in data:
        _drop_later_checkpoints(loop, name)
    for values in (loop.checkpoints, loop.snapshots):
        values.pop(name, None)  # the last one set is the last one listed
    loop.checkpoints[name] = data.get("commit")
    if "snapshot" in data:
        loop.snapshots[name] = data["snapshot"]
    loop.branch = data.get("branch", loop.branch)
    loop.rollback = None
    if "left" in data and "head" in data:  # without a head, the branch was moved before the event
        head, branch = data["head"], data.get("branch", "")
        loop.rollback = Rollback(data["left"], head, branch, data.get("kept", head))
    for task_id in data.get("reset", ()):
        if task_id in loop.tasks:
            loop.put_task(loop.tasks[task_id].blank())


def _drop_later_checkpoints(loop: Loop, name: str) -> None:
    names = list(loop.checkpoints)
    for later in names[names.index(name) + 1 :] if name in loop.checkpoints else ():
        del loop.checkpoints[later]
        loop.snapshots.pop(later, None)


CHECKPOINT = EventType(
    "checkpoint",
    Trigger(rules=(require_room,), arrows=(Arrow(LIVE, SAME, record_checkpoint),)),
    required={"name": str},
    optional={
        "commit": str, "snapshot": str, "task": ID, "branch": str, "left": str, "head": str,
        "kept": str, "reset": IDS, **RELAYED,
    },
    text="{name}[ {commit}][ {task}][ {left}]",
)  # fmt: skip
