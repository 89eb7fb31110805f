"""The complete prompt of the subagent that is to do one task of a plan.

The same task, state and documents always give the same text.
"""

from __future__ import annotations

from collections.abc import Mapping

from gsd_fsm.core.loop.records import Limits, Task
from gsd_fsm.core.text.quoting import one_line
from gsd_fsm.plans.plan import Plan, PlanTask
from gsd_fsm.subagents.attempt import decision, previous_attempt
from gsd_fsm.subagents.context import Context
from gsd_fsm.subagents.cycle import cycle
from gsd_fsm.subagents.document import Document, shortened
from gsd_fsm.subagents.frame import BLUNTED, block, element, empty_element, framed
from gsd_fsm.subagents.rules import output, rules

SUBAGENT_TYPE = "gsd-fsm:executor"
MAX_PROMPT = 60_000
_SHORT_TITLE = 30
_OPENING = "You are a focused implementation agent. Complete ONLY this task."


def description(phase: int | str | None, name: str, title: str) -> str:
    """A few words for a list of running tasks: `P1 T02: Create API endpoints`."""
    title = one_line(title, 1_000)
    if len(title) > _SHORT_TITLE:
        kept = title[:_SHORT_TITLE]
        kept = kept[: kept.rfind(" ")] if " " in kept[1:] else kept[:-1]
        title = kept.rstrip(" ,;:.-") + "…"
    where = "" if phase is None else f"P{one_line(str(phase), 20)} "
    return f"{where}{name}: {title}" if title else f"{where}{name}"


def task_prompt(
    plan: Plan,
    task: PlanTask,
    loop_task: Task,
    limits: Limits,
    context: Context,
    *,
    command: str,
    nonce: str,
) -> str:
    """Everything that a subagent must know for this task.

    `command`: how the loop is named on a command line. `nonce`: what the author of quoted output
    cannot know. Of a text that is too long the documents are cut first, then the skills; never what
    is to be done, what proves it, and how it is reported.
    """
    documents = _documents(task, context)
    task_element = _task(task)

    def build(texts: Mapping[str, str]) -> str:
        parts = (
            _OPENING,
            _about_project(texts),
            task_element,
            cycle(task, limits.tdd_max_attempts, context.test_command),
            _skills(task, texts),
            _context7(task, context),
            element("known_issues", texts.get("known_issues", "")),
            _mcps(context),
            _browser(context),
            rules(task, command, BLUNTED in task_element),
            previous_attempt(loop_task, limits.max_retries, nonce),
            decision(loop_task, nonce),
            element("left_out", framed("\n".join(context.notes))),
            output(plan, task),
        )
        return "\n\n".join(part for part in parts if part) + "\n"

    return build(_fitting(documents, MAX_PROMPT - len(build({}))))


def _documents(task: PlanTask, context: Context) -> dict[str, Document]:
    """Everything that can be cut, what is cut last first."""
    named = {f"skill {name}": context.skill(name) for name in task.skills}
    named["project"] = context.project
    named["conventions"] = context.conventions
    named["known_issues"] = context.issues
    return {key: it._replace(text=framed(it.text)) for key, it in named.items() if it}


def _fitting(documents: dict[str, Document], room: int) -> dict[str, str]:
    """Each document in what those before it leave; the frame of each has its own share."""
    frame = 200
    room -= frame * (len(documents) + 1)
    texts = {}
    for key, document in documents.items():
        texts[key] = shortened(document, room)
        room -= len(texts[key])
    return texts


def _about_project(texts: Mapping[str, str]) -> str:
    named = ("project", "conventions")
    return block("context", [element(name, texts.get(name, "")) for name in named])


def _task(task: PlanTask) -> str:
    files = [element("file", framed(file.path), action=file.action) for file in task.files]
    checks = [element("check", framed(check.text), type=check.kind) for check in task.checks]
    parts = (
        block("files", files, mode="write"),
        element("test_required", framed(task.test_required)),
        block("test_files", map(framed, task.test_files), mode="dynamic"),
        element("action", framed(task.action)),
        element("libraries", framed(", ".join(task.libraries))),
        block("verify", checks),
        element("done", framed(task.done)),
    )
    return block("task", parts, id=task.number, reqs=task.reqs)


def _skills(task: PlanTask, texts: Mapping[str, str]) -> str:
    unknown = "This project has no file about it. If you have a skill of this name, follow it."
    texts_of = ((name, texts.get(f"skill {name}") or unknown) for name in task.skills)
    return block("skills", [element("skill", text, name=name) for name, text in texts_of])


def _context7(task: PlanTask, context: Context) -> str:
    if not task.libraries:
        return ""
    if any(name.lower() == "context7" for name in context.mcps):
        named = framed(", ".join(task.libraries))
        return element(
            "context7",
            f"Before implementing, use Context7 to fetch current documentation for: {named}\n"
            "This ensures you use up-to-date APIs and avoid deprecated patterns.",
        )
    return element("context7", "Context7 not configured. Proceed with built-in knowledge.")


def _mcps(context: Context) -> str:
    if not context.mcps:
        return ""
    named = ", ".join(one_line(name, 200) for name in context.mcps)
    return element("mcps", f"{named}\nUse these MCP tools when they would help complete the task.")


def _browser(context: Context) -> str:
    if not context.browser and not context.base_url:
        return ""
    enabled = "true" if context.browser else "false"
    return empty_element("browser", enabled=enabled, base_url=context.base_url or "")
