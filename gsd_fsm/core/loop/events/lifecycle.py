"""The life of a loop: start, iterations, waits, pauses, stops, completion, cancellation."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.completion import (
    completes_from_pause,
    first_missing,
    needs_clean_room,
)
from gsd_fsm.core.loop.events.sessions import (
    ALLOW,
    RELAYED,
    STOP_FIELDS,
    become_owner,
    consume_prompts,
    read_transcript,
    remember_answered,
    require_free_session,
    require_human,
    stop_waiting,
    with_reason,
)
from gsd_fsm.core.loop.events.tasks import TDD_PHASES, continue_task, refuse_cycle
from gsd_fsm.core.loop.limits import (
    LIMIT_CODES,
    require_room,
    used_up_limit,
    used_up_retries,
)
from gsd_fsm.core.loop.protection import FROZEN, PROGRAMS, WATCHED
from gsd_fsm.core.loop.records import (
    LIMITS,
    RULES,
    AllowedStop,
    Criterion,
    HookAnswer,
    Limits,
    Rules,
    Task,
)
from gsd_fsm.core.loop.schema import (
    AMOUNT,
    BACK,
    COUNT,
    COUNTS,
    ID,
    IDS,
    OBJECT,
    PHASE,
    SAME,
    TEXT_OR_NULL,
    TEXTS,
    TIME,
    Arrow,
    EventType,
    Trigger,
    duplicates,
    one_of,
    record,
    records,
)
from gsd_fsm.core.loop.state import ACTIVE, LIVE
from gsd_fsm.core.loop.waves import retry_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import (
        CompleteData,
        Event,
        IterationData,
        PauseData,
        ResumeData,
        StartData,
        StopData,
    )
    from gsd_fsm.core.loop.state import Loop

KINDS = ("execute", "verify", "goal")
MODES = ("interactive", "yolo")
PAUSE_CODES = (
    *LIMIT_CODES,
    "retries",
    "blocking",
    "unknown",
    "client",
    "manual",
    "plan",
    "altered",
)
CRITERIA = records(
    "criteria", {"name": str, "check": str, "directory": str, "met": bool}, ("name",)
)
TASKS = records(
    "tasks",
    {
        "id": ID, "title": str, "wave": COUNT, "depends": IDS, "step": bool, "tests": bool,
        "checks": COUNT, "modifies": bool, "retries": COUNT,
        "status": one_of("pending", "running", "reported", "complete", "skipped", "failed"),
        "ref": str, "commit": str, "phase": one_of(*TDD_PHASES),
    },
    ("id",),
)  # fmt: skip
# What a million tokens cost, in US dollars; `fast`: of fast replies; `above`: of longer prompts.
PRICES = records(
    "prices",
    {
        "model": str, "input": AMOUNT, "output": AMOUNT, "cache_read": AMOUNT, "cache_write": AMOUNT,
        "cache_write_1h": AMOUNT, "fast": bool, "above": COUNT,
    },
    ("model", "input", "output"),
)  # fmt: skip
# The counts of a loop of another tool, where that was imported.
IMPORTED = record(
    "imported",
    {
        "from": str, "file": str, "iteration": COUNT, "round": COUNT, "stuck": COUNT,
        "last_unmet": str, "started": TIME, "updated": TIME, "last_iteration": TIME,
        "last_error": str, "spent_usd": AMOUNT, "exit_signal": bool, "history": TEXTS,
        "promise": str,
    },
)  # fmt: skip


# start


def begin(loop: Loop, event: Event[StartData]) -> None:
    data = event["data"]
    loop.started = loop.first_ts = loop.owned_since = event["ts"]
    loop.owner = event.get("session")
    loop.client = event.get("client")
    loop.kind = data["kind"]
    loop.mode = data["mode"]
    loop.goal = data.get("goal")
    loop.phase = data.get("phase")
    loop.branch = data.get("branch")
    loop.must_not = dict.fromkeys(data.get("must_not", ()))
    loop.auto_loop = data.get("auto_loop", True)
    loop.counsel = data.get("counsel")
    loop.views = data.get("views", [])
    loop.viewed = dict.fromkeys(loop.views, event["ts"])
    loop.task_list = data.get("task_list")
    loop.session_only = data.get("session_only", False)
    loop.limits = Limits(data["limits"])
    if "rules" in data:
        loop.rules = Rules(data["rules"])
        # What the user wrote before the loop began is not about one of its decisions.
        loop.human_spoke = False
    loop.protection.freeze(data.get("frozen", {}))
    loop.usage.take_prices(data.get("prices", ()))
    loop.review_needed = data.get("review", False)
    if "plan" in data:
        loop.plan.update(data["plan"])
        loop.plan.task_count = data["plan"].get("tasks")
    loop.criteria = {spec["name"]: Criterion(spec) for spec in data.get("criteria", ())}
    specs = data.get("tasks", [])
    for spec in specs:
        loop.put_task(Task(spec["id"], spec))
    if "carried" in data:
        _continue_imported(loop, data)
    if loop.kind == "goal" and not any("wave" in spec for spec in specs):
        loop.waves_due = len(loop.tasks)
    # The tasks of an execute loop are its whole work; in other loops they only help.
    loop.accepts_tasks = loop.kind != "execute" or not loop.tasks


def _continue_imported(loop: Loop, data: StartData) -> None:
    """Continue the counts of the imported loop."""
    facts = loop.imported = data["carried"]
    loop.iteration = facts.get("iteration", 0)
    loop.round = facts.get("round", 0)
    loop.stalled = facts.get("stuck", 0)
    loop.started = facts.get("started", loop.started)
    loop.last_iteration = facts.get("last_iteration")
    loop.last_error = facts.get("last_error")
    loop.spent_usd = facts.get("spent_usd", 0)
    loop.exit_signal = facts.get("exit_signal", False)
    for spec in data.get("tasks", ()):
        continue_task(loop, spec)


def require_unique_names(loop: Loop, event: Event[StartData], loops: Loops) -> None:
    """Refuse a start that names a criterion or a task twice."""
    data = event["data"]
    names = duplicates(spec["name"] for spec in data.get("criteria", ()))
    ids = duplicates(spec["id"] for spec in data.get("tasks", ()))
    for what, repeated in (("criterion", names), ("task", ids)):
        if repeated:
            raise Refused("duplicate %s: %s" % (what, ", ".join(repeated)), "Name each once.")


def require_startable_tasks(loop: Loop, event: Event[StartData], loops: Loops) -> None:
    """Refuse a start whose tasks form a dependency cycle."""
    refuse_cycle({spec["id"]: spec.get("depends", []) for spec in event["data"].get("tasks", ())})


def require_unproven_start(loop: Loop, event: Event[StartData], loops: Loops) -> None:
    """Refuse a loop that begins with claims which nothing has proven."""
    data = event["data"]
    criteria = data.get("criteria", [])
    claimed = [spec for spec in criteria if spec.get("met")]
    if any("check" in spec for spec in claimed):
        raise Refused("a criterion with a check is met only when the check passes")
    if data.get("carried", {}).get("exit_signal") and len(claimed) < len(criteria):
        raise Refused("an exit signal needs every criterion met")


START = EventType(
    "start",
    Trigger(
        rules=(
            require_free_session, require_room, require_unique_names, require_startable_tasks,
            require_unproven_start,
        ),
        arrows=(Arrow(("idle",), "running", begin),),
    ),
    required={"kind": one_of(*KINDS), "mode": one_of(*MODES), "limits": LIMITS},
    optional={
        "goal": str, "phase": PHASE, "plan": OBJECT, "branch": str, "criteria": CRITERIA,
        "tasks": TASKS, "must_not": TEXTS, "auto_loop": bool, "review": bool, "carried": IMPORTED,
        "counsel": str, "views": TEXTS, "task_list": str, "session_only": bool, "rules": RULES,
        "prices": PRICES, "prices_of": str, "frozen": FROZEN,
    },
    text="{kind}, {mode}[: {goal}]",
    is_newer=lambda _loop, data: "rules" in data,
)  # fmt: skip


# iteration


def count_iteration(loop: Loop, event: Event[IterationData]) -> None:
    """Count the iteration, and whether anything progressed since the one before."""
    data = event["data"]
    loop.iteration += 1
    loop.last_iteration = event["ts"]
    loop.stalled = 0 if loop.has_progressed() else loop.stalled + 1
    loop.progressed = False
    if loop.changed:
        loop.changed = {}
    loop.advice_given += bool(loop.failed_verifications and loop.kind == "goal")
    consume_prompts(loop)
    loop.protection.record_block(data)
    if event["by"] == "hook":
        loop.idle = 1 if data.get("activity") else loop.idle + 1
        if not data.get("activity"):
            for task_id in loop.silent_stops:
                loop.silent_stops[task_id] += 1
        if data.get("code") == "review":
            loop.reviewer_asked = loop.round
        loop.commit = data.get("commit", loop.commit)
        loop.delivered_answer, loop.answer = loop.answer, None
        read_transcript(loop, event)
    loop.delivered_notes = []
    if "delivered" in data:
        loop.delivered_notes = [
            loop.notes.pop(seq) for seq in data["delivered"] if seq in loop.notes
        ]


def record_answer(loop: Loop, event: Event[Any]) -> None:
    """Remember what the hook answered to a stop, and to which one."""
    data = event["data"]
    answer = HookAnswer()
    answer.seq, answer.ts = event["seq"], event["ts"]
    answer.blocks = event["type"] == "iteration"
    answer.signal, answer.copy = data["signal"], data.get("copy", "")
    answer.hook = data.get("hook", 0)
    answer.text = data.get("reason" if answer.blocks else "said", "")
    loop.usage.stops += 1
    before = loop.last_answer
    answer.notified = event["seq"] if answer.text else before.notified if before else 0
    loop.last_answer = answer
    loop.unconfirmed = event["seq"] if answer.blocks else 0


ITERATION = EventType(
    "iteration",
    Trigger(verb="iterate", arrows=(Arrow(ACTIVE, SAME, count_iteration),)),
    optional={
        "activity": bool, "delivered": COUNTS, "reason": str, "code": str, "transcript": COUNT,
        "commit": str, "altered": TEXTS, **STOP_FIELDS,
    },
    text=lambda data: data.get("reason", "").split("\n", 1)[0],
)  # fmt: skip


# pause and resume


def pause(loop: Loop, event: Event[PauseData]) -> None:
    loop.pause_code = event["data"]["code"]
    loop.pause_reason = event["data"].get("reason", "")
    if event["data"].get("declined"):
        loop.answer = None  # the pause is its consequence
    if event["by"] == "hook":
        loop.unconfirmed = 0


PAUSE = EventType(
    "pause",
    Trigger(verb="pause", arrows=(Arrow((*ACTIVE, "waiting"), "paused", pause),)),
    required={"code": one_of(*PAUSE_CODES)},
    optional={"reason": str, "declined": bool, **ALLOW},
    text=lambda data: with_reason(data["code"], data.get("reason")),
)


def resume(loop: Loop, event: Event[ResumeData]) -> None:
    """Take over the loop for the calling session; reset the stuck, idle and repeated-error counts."""
    data = event["data"]
    loop.limits = loop.limits.plus(data.get("add", {}))
    loop.views = data.get("views", loop.views)
    loop.viewed = {view: loop.viewed.get(view, event["ts"]) for view in loop.views}
    if event.get("session") != loop.owner:
        loop.pid, loop.began = None, ""
    become_owner(loop, event, data.get("anew", False))
    loop.client = event.get("client", loop.client)
    loop.stalled = loop.idle = loop.repeated_errors = loop.transient = loop.usage.stops = 0
    for task_id in loop.transient_tasks:
        loop.tasks[task_id].transient = 0
    loop.transient_tasks = {}
    loop.protection.warned = False
    for gap_id in loop.returned_gaps:
        loop.gaps[gap_id].reopened_since_resume = 0
    loop.returned_gaps = {}
    for task_id in data.get("retry", ()):
        if task_id in loop.tasks:
            loop.tasks[task_id].retries += 1
    for task_id in loop.refused_retries:
        loop.tasks[task_id].retry_refused = False
    loop.refused_retries = {}
    if event["by"] == "human" or "max_retries" in data.get("add", {}):
        # A user who resumes after a failure, or grants a retry, wants it to be retried.
        answered = set(loop.answered)
        remember_answered(loop, [key for key in retry_keys(loop) if key not in answered])
    if loop.status == "paused":
        loop.pause_code = loop.pause_reason = None
    elif loop.status == "waiting":
        stop_waiting(loop)


def used_up_tasks(loop: Loop) -> list[str]:
    """Return the failed tasks without a retry left: one that `resume` grants is counted at once."""
    return [
        task_id
        for task_id in loop.failed
        if loop.tasks[task_id].retry_refused
        and loop.tasks[task_id].retries >= loop.limits.max_retries
    ]


def require_failed_tasks(loop: Loop, event: Event[ResumeData], loops: Loops) -> None:
    """Refuse to grant a retry to a task that has not failed."""
    for task_id in event["data"].get("retry", ()):
        if task_id not in loop.failed:
            raise Refused("task %s has not failed" % task_id, "Run: gsd-fsm status")


def require_limits_left(loop: Loop, event: Event[ResumeData], loops: Loops) -> None:
    """Refuse a resume that would pause again at once."""
    if loop.status != "paused":
        return
    limits = loop.limits.plus(event["data"].get("add", {}))
    used_up = used_up_limit(loop, limits, ms_of(event["ts"]))
    if used_up is None and loop.pause_code == "retries":
        used_up = used_up_retries(loop, limits)
    if used_up is not None:
        raise Refused(
            "loop %s is paused: %s" % (loop.id, used_up.reason), "Run: %s" % used_up.remedy
        )


RESUME = EventType(
    "resume",
    Trigger(
        verb="resume",
        rules=(require_free_session, require_human, require_failed_tasks, require_limits_left),
        arrows=(Arrow(ACTIVE, SAME, resume), Arrow(("waiting", "paused"), BACK, resume)),
    ),
    optional={
        "add": LIMITS, "retry": IDS, "reason": str, "views": TEXTS, "anew": bool, **RELAYED,
    },
    text=lambda data: ", ".join("+%s %s" % (v, k) for k, v in data.get("add", {}).items()),
)  # fmt: skip


# the end


def paused_by_limit(loop: Loop, event: Event[CompleteData]) -> bool:
    """Return whether the loop is paused by a limit that finished work need not raise."""
    return completes_from_pause(loop)


def complete(loop: Loop, event: Event[CompleteData]) -> None:
    loop.branch = event["data"].get("branch", loop.branch)
    loop.pause_code = loop.pause_reason = None
    loop.protection.drift = event["data"].get("watched", loop.protection.drift)


def require_conditions(loop: Loop, event: Event[CompleteData], loops: Loops) -> None:
    """Refuse completion while the completion rule does not hold."""
    left, count = first_missing(loop, event["data"].get("tree"), 20)
    if left:
        more = ["and %d more" % (count - len(left))] if count > len(left) else []
        raise Refused(
            "loop %s is %s and not done: %s" % (loop.id, loop.status, "; ".join(left + more)),
            "Run: gsd-fsm next",
        )


def require_clean_room(loop: Loop, event: Event[CompleteData], loops: Loops) -> None:
    """Refuse completion of a loop whose checks must pass in a clean room, and have not."""
    if needs_clean_room(loop) and not event["data"].get("clean"):
        raise Refused(
            "loop %s completes only after its checks passed in a clean room" % loop.id,
            "Run: gsd-fsm complete",
        )


COMPLETE = EventType(
    "complete",
    Trigger(
        verb="complete",
        rules=(require_conditions, require_clean_room),
        arrows=(
            Arrow(ACTIVE, "completed", complete),
            Arrow(("paused",), "completed", complete, when=paused_by_limit),
        ),
    ),
    optional={
        "tree": TEXT_OR_NULL, "summary": str, "branch": str, "clean": bool, "watched": WATCHED,
        "variables": TEXTS, "programs": PROGRAMS, **ALLOW,
    },
    text=lambda data: data.get("summary", "the completion rule held"),
    is_newer=lambda loop, _data: loop is not None and loop.status == "paused",
)  # fmt: skip


CANCEL = EventType(
    "cancel",
    Trigger(
        verb="cancel",
        rules=(require_human,),
        arrows=(Arrow(LIVE, "cancelled", lambda loop, event: None),),
    ),
    optional={"reason": str, **RELAYED},
    text="[{reason}]",
)


def record_stop(loop: Loop, event: Event[StopData]) -> None:
    """Record an allowed stop; if the agent did not get a block, deliver its notes again."""
    data = event["data"]
    loop.last_stop = AllowedStop(event["seq"], data["code"], data.get("reason", ""))
    loop.failed_at = data.get("at", loop.failed_at)
    loop.background = data.get("background", loop.background)
    answer = loop.last_answer
    is_lost = answer is not None and answer.signal == data.get("of")
    if answer is not None and is_lost:
        answer.notified = 0  # the hook ran out of time before it could print it
    if loop.unconfirmed and (is_lost or data["code"] == "client"):
        loop.notes.update({note.seq: note for note in loop.delivered_notes})
        loop.answer = loop.answer or loop.delivered_answer
    loop.delivered_notes, loop.delivered_answer = [], None
    loop.unconfirmed = 0


STOP = EventType(
    "stop",
    Trigger(arrows=(Arrow(LIVE, SAME, record_stop),)),
    required={"code": str},
    optional={"reason": str, "background": TEXTS, "at": TIME, "of": str, **ALLOW},
    text=lambda data: with_reason(data["code"], data.get("reason")),
)
