"""Facts about the course of a loop: start, iteration, wait, pause, resume, end, owner."""

from __future__ import annotations

from gsd_fsm.core.clock import ms_of
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.guards import spent_limit, spent_retries
from gsd_fsm.core.loop import progress_of, unmet
from gsd_fsm.core.payloads import LIMITS
from gsd_fsm.core.proof import new_criterion
from gsd_fsm.core.waves import find_circle, lay_waves, retry_key
from gsd_fsm.core.work import BREAK_CIRCLE, new_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gsd_fsm.core.loop import Loop

DEFAULT_LIMITS = {
    "max_iterations": 20,
    "max_retries": 3,
    "max_rounds": 20,
    "tdd_max_attempts": 5,
    "stuck_limit": 5,
    "idle_limit": 3,
}
MAX_TALK = 50
_FROZEN = (
    "kind", "mode", "goal", "phase", "plan", "must_not", "auto_loop", "counsel", "views",
    "task_list", "session_only",
)  # fmt: skip
_COUNTED = (
    "iteration", "round", "stuck", "last_unmet", "started", "last_iteration", "last_error",
    "spent_usd", "exit_signal",
)  # fmt: skip


def check_start(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    names = [spec["name"] for spec in data.get("criteria", ())]
    ids = [spec["id"] for spec in data.get("tasks", ())]
    for what, found in (("criterion", names), ("task", ids)):
        if len(set(found)) < len(found):
            twice = sorted({name for name in found if found.count(name) > 1})
            raise Refused("%s %s is named twice" % (what, ", ".join(twice)))
    depends = {spec["id"]: spec["depends"] for spec in data.get("tasks", ()) if "depends" in spec}
    circle = find_circle(depends)
    if circle:
        raise Refused(
            "tasks depend on each other in a circle: %s" % ", ".join(circle), BREAK_CIRCLE
        )
    claimed = [spec for spec in data.get("criteria", ()) if spec.get("met")]
    if any("check" in spec for spec in claimed):
        raise Refused("a criterion that has a check is met only by its passing")
    if data.get("carried", {}).get("exit_signal") and len(claimed) < len(names):
        raise Refused("an exit signal needs every criterion met")


def fact_start(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    loop.id = event["loop"]
    loop.started = loop.begun = loop.owned = event["ts"]
    loop.owner = event.get("session")
    loop.client = event.get("client")
    for name in _FROZEN:
        if name in data:
            setattr(loop, name, data[name])
    loop.viewed = dict.fromkeys(loop.views, event["ts"])
    loop.limits = {**DEFAULT_LIMITS, **data["limits"]}
    loop.review_needed = data.get("review", False)
    loop.criteria = {spec["name"]: new_criterion(spec) for spec in data.get("criteria", ())}
    loop.tasks = {spec["id"]: new_task(spec["id"], spec) for spec in data.get("tasks", ())}
    if "carried" in data:
        _carry(loop, data)
    if loop.kind == "goal" and not any("wave" in spec for spec in data.get("tasks", ())):
        lay_waves(loop.tasks)
    # The tasks of an execute loop are what it must do; in other loops they are a help.
    loop.accepts_tasks = loop.kind != "execute" or not loop.tasks
    loop.progress = progress_of(loop)


def _carry(loop: Loop, data: dict[str, Any]) -> None:
    """Go on counting where the loop that this one takes over has stopped."""
    loop.carried = data["carried"]
    for name in _COUNTED:
        if name in loop.carried:
            setattr(loop, name, loop.carried[name])
    loop.still = loop.stuck
    for spec in data.get("tasks", ()):
        task = loop.tasks[spec["id"]]
        task["status"] = spec.get("status", "pending")
        task["retries"] = spec.get("retries", 0)
        loop.failed += task["status"] == "failed"


def fact_iteration(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    loop.iteration += 1
    loop.last_iteration = event["ts"]
    fall_silent(loop)
    if loop.moved:
        progress = progress_of(loop)
        loop.advanced = loop.advanced or progress != loop.progress
        loop.progress = progress
        loop.moved = False
    loop.stuck = 0 if loop.advanced else loop.stuck + 1
    loop.still = 0 if loop.advanced or loop.arrived else loop.still + 1
    loop.advanced = loop.arrived = False
    loop.counsels += bool(loop.setbacks and loop.kind == "goal")
    if loop.criteria:
        loop.last_unmet = next(iter(unmet(loop)), None)
    if event["by"] == "hook":
        loop.idle = 1 if data.get("activity") else loop.idle + 1
        loop.commit = data.get("commit", loop.commit)
        loop.told_answer, loop.answer = loop.answer, None
        _fact_transcript(loop, event)
    delivered = data.get("delivered", ())
    loop.told_notes = [note for note in loop.notes if note["seq"] in delivered]
    if delivered:
        loop.notes = [note for note in loop.notes if note["seq"] not in delivered]


def _fact_transcript(loop: Loop, event: dict[str, Any]) -> None:
    """How far the transcript of this session was read."""
    if "transcript" in event["data"]:
        loop.transcript = [event.get("session"), event["data"]["transcript"]]


def fact_said(loop: Loop, event: dict[str, Any]) -> None:
    """What the hook has answered to a stop, and to which."""
    data = event["data"]
    blocks = event["type"] == "iteration"
    text = data.get("reason" if blocks else "said", "")
    loop.said = {
        "seq": event["seq"],
        "ts": event["ts"],
        "blocks": blocks,
        "copy": data.get("copy", ""),
        "signal": data["signal"],
        "text": text,
        "told": event["seq"] if text else (loop.said or {}).get("told", 0),
    }
    loop.unconfirmed = event["seq"] if blocks else 0


def fact_wait(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    loop.before_wait = loop.status
    loop.wait_for = data["for"]
    loop.question = data.get("question", data.get("reason"))
    loop.until = data.get("until")
    loop.asked = data.get("about")
    loop.answer = None
    fall_silent(loop)
    if event["by"] == "hook":
        loop.unconfirmed = 0


def fall_silent(loop: Loop) -> None:
    """From here on no human has spoken."""
    loop.prompted = False
    loop.visitors = []


def may_decide(loop: Loop, by: str, session: str | None) -> bool:
    """Whether somebody may do what is a human's to do: an agent only once one has spoken to it.

    That counts until the loop next moves or comes to stand still.
    """
    return bool(by != "agent" or loop.prompted or session in loop.visitors)


def needs_human(loop: Loop, event: dict[str, Any], what: str) -> None:
    """Refuse this to an agent unless a human has spoken."""
    if not may_decide(loop, event["by"], event.get("session")):
        raise Refused(
            "an agent may not %s loop %s before a human has spoken" % (what, loop.id),
            "ask the user, and go on once they have said so",
        )


def check_answer(loop: Loop, event: dict[str, Any]) -> None:
    needs_human(loop, event, "answer for")


def fact_answer(loop: Loop, event: dict[str, Any]) -> None:
    loop.answer = event["data"]["text"]
    about, _, task_id = (loop.asked or "").partition(":")
    if about == "checkpoint":
        task = loop.tasks.get(task_id.partition(":")[0])
        if task is not None:
            task["answer"] = loop.answer
    _stop_waiting(loop)


def _stop_waiting(loop: Loop) -> None:
    if loop.asked:
        loop.decided = [*loop.decided, loop.asked][-MAX_TALK:]
    loop.wait_for = loop.question = loop.until = loop.asked = None


def check_resume(loop: Loop, event: dict[str, Any]) -> None:
    add = event["data"].get("add", {})
    if add or (loop.status == "waiting" and loop.wait_for == "human"):
        needs_human(loop, event, "raise the limits of" if add else "answer for")
    if loop.status != "paused":
        return
    limits = more_limits(loop.limits, add)
    spent = spent_limit(loop, limits, ms_of(event["ts"]))
    if spent is None and loop.pause_code == "retries":
        spent = spent_retries(loop, limits)
    if spent is not None:
        raise Refused("loop %s is paused: %s" % (loop.id, spent.reason), spent.remedy)


def more_limits(limits: dict[str, Any], add: dict[str, Any]) -> dict[str, Any]:
    """The limits after an extension; what is unlimited stays so."""
    more = dict(limits)
    for name, extra in add.items():
        if name not in LIMITS:
            continue  # of a later version; what it means is not known here
        unlimited = name != "max_retries" and not more.get(name)
        if not unlimited:
            more[name] += extra
    return more


def fact_resume(loop: Loop, event: dict[str, Any]) -> None:
    loop.limits = more_limits(loop.limits, event["data"].get("add", {}))
    loop.views = event["data"].get("views", loop.views)
    loop.viewed = {view: loop.viewed.get(view, event["ts"]) for view in loop.views}
    _fact_owner(loop, event)
    loop.client = event.get("client", loop.client)
    loop.pid = None
    loop.stuck = loop.still = loop.idle = loop.repeats = loop.transient = 0
    for task in loop.tasks.values():
        task["transient"] = 0
    for gap in loop.gaps.values():
        gap["returns"] = 0
    if event["by"] == "human" and loop.failed:
        # Whoever goes on after a failure wants it to be tried again.
        failed = [task for task in loop.tasks.values() if task["status"] == "failed"]
        keys = [retry_key(task) for task in failed if task["errors"]]
        loop.decided = [*loop.decided, *keys][-MAX_TALK:]
    if loop.status == "paused":
        loop.pause_code = loop.pause_reason = None
    elif loop.status == "waiting":
        _stop_waiting(loop)


def _fact_owner(loop: Loop, event: dict[str, Any]) -> None:
    """Whose it is, and since when: what a session did before is not the loop's."""
    session, anew = event.get("session"), event["data"].get("anew", False)
    if session != loop.owner or anew:
        loop.owner, loop.owned = session, event["ts"]
    if anew and session in loop.meters:
        loop.anew = [*loop.anew, session]


def fact_pause(loop: Loop, event: dict[str, Any]) -> None:
    loop.pause_code = event["data"]["code"]
    loop.pause_reason = event["data"].get("reason", "")
    if event["data"].get("declined"):
        loop.answer = None  # the pause is what came of it
    if event["by"] == "hook":
        loop.unconfirmed = 0


def check_cancel(loop: Loop, event: dict[str, Any]) -> None:
    needs_human(loop, event, "cancel")


def fact_session(loop: Loop, event: dict[str, Any]) -> None:
    data = event["data"]
    action = data["action"]
    left = action == "end" and data.get("reason") != "clear"
    loop.pid = None if left else data.get("pid", loop.pid)
    if "signal" in data:
        loop.heard = {"ts": event["ts"], "signal": data["signal"], "copy": data.get("copy", "")}
    _fact_transcript(loop, event)
    if action == "bind":
        _fact_owner(loop, event)
        loop.client = event.get("client")
    elif action == "release":
        loop.owner = None
    elif action == "prompt" and loop.owner and event.get("session") not in (None, loop.owner):
        # A human has spoken in another session, which may set going what stands still.
        loop.visitors = [*loop.visitors, event["session"]][-MAX_TALK:]
    elif action == "prompt":
        loop.prompted = loop.spoken = True
        loop.idle = 0
