"""Write the prompt of the subagent that does one task of a plan.

The same task, state and documents always give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.loop.records import Limits, Task
from gsd_fsm.core.text.sanitize import clean, display, fenced, one_line
from gsd_fsm.documents.elements import escape
from gsd_fsm.plans.plan import Plan, PlanTask
from gsd_fsm.plans.tdd_files import first_phase, rules_of
from gsd_fsm.subagents.context import Context, Document, shortened

SUBAGENT_TYPE = "gsd-fsm:executor"
MAX_PROMPT = 60_000
_SHORT_TITLE = 30
_OPENING = "You are a focused implementation agent. Complete ONLY this task."
ELEMENTS = (
    "context", "project", "conventions", "task", "files", "file", "test_required", "test_files",
    "action", "libraries", "verify", "check", "done", "tdd_cycle", "max_attempts", "test_command",
    "phase", "allowed_files", "locked_files", "goal", "success_condition", "on_failure",
    "on_complete", "skills", "skill", "context7", "known_issues", "mcps", "browser", "rules",
    "rule", "previous_attempt", "error", "tdd_attempts", "analysis", "suggested_fix", "attempt",
    "decision", "question", "answer", "left_out", "output",
)  # fmt: skip
_END = re.compile(rf"<(\s*)/(?=\s*(?:{'|'.join(ELEMENTS)})(?![\w:.-]))", re.IGNORECASE)
ESCAPED_END = "<\\/"
_EMOJI_STYLE = str.maketrans("", "", "\ufe0e\ufe0f")  # these only choose between two glyphs
_ERROR, _ANALYSIS, _QUESTION = 4_000, 1_500, 6_000
_FRAME = 200  # characters for the tags around a document
_SUCCESS = {
    "red": "Test FAILS (this is correct!)",
    "green": "Test PASSES",
    "refactor": "Test still PASSES",
}
_ON_FAILURE = {
    "red": "",
    "green": "Analyze the error, fix the implementation, retry (do NOT modify tests)",
    "refactor": "Undo the refactoring; the task is still complete",
}
_ON_COMPLETE = {
    "red": "Lock the test files, proceed to GREEN",
    "green": "Proceed to REFACTOR",
    "refactor": "",
}
_LISTED_ONLY = "Only modify files listed in files/test_files elements"
RULES = (
    "If test_required=true: Execute TDD Red-Green-Refactor cycle",
    "RED phase: Only modify test files, implementation files are LOCKED",
    "GREEN/REFACTOR phases: Only modify implementation files, test files are LOCKED",
    "NEVER modify test files to make them pass - fix the implementation instead",
    _LISTED_ONLY,
    "Follow skills exactly if provided",
    "If libraries listed and Context7 available, fetch current docs before implementing",
    "Complete ALL verification checks before reporting done",
    "Do not expand scope beyond this task",
    "Do not refactor unrelated code",
)
_OUTPUT = """\
Report exactly ONE of:
- TASK COMPLETE (with files modified, test status, and commit message)
- TASK FAILED: {{reason}} (with blocker details and attempts made)
- CHECKPOINT: {{decision needed}} (for architecture/manual steps)

If unrelated issues found:
- NEW ISSUE: [{{severity}}] {{description}}

If this task needed a small unrelated fix:
- AUTO-FIX: {{description}}

A program reads this report. Begin a line with each of these, in capitals and outside of code
fences, and use the first three only once in all. Below the verdict, each on its own line:
- when complete, Files: a, b
- when complete, Tests: {{status}}
- when complete, Commit message: {commit}: {{description}}
- when failed, Blocker: {{details}}
- when failed, Attempts: {{what was tried}}
- when failed, Root cause: {{analysis}}
- when failed, Suggested fix: {{what to try next}}
- at a checkpoint, A) {{option}}
- at a checkpoint, Recommendation: {{choice}}"""


def description(phase: int | str | None, name: str, title: str) -> str:
    """Return a short title for a list of running tasks: `P1 T02: Create API endpoints`."""
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
    loop_id: str,
    nonce: str,
) -> str:
    """Return the complete prompt of a task.

    `nonce` is a text that the authors of quoted output cannot know. If the prompt is too long, cut
    the documents first, then the skills, but never the task, its checks and the form of the report.
    """
    documents = _documents(task, context)
    task_element = _task(task)

    def build(texts: Mapping[str, str]) -> str:
        parts = (
            _OPENING,
            block("context", [element(it, texts.get(it, "")) for it in ("project", "conventions")]),
            task_element,
            _cycle(task, limits.tdd_max_attempts, context.test_command),
            _skills(task, texts),
            _context7(task, context),
            element("known_issues", texts.get("known_issues", "")),
            _mcps(context),
            _browser(context),
            _rules(task, loop_id, ESCAPED_END in task_element),
            previous_attempt(loop_task, limits.max_retries, nonce),
            decision(loop_task, nonce),
            element("left_out", element_text("\n".join(context.notes))),
            output(plan, task),
        )
        return "\n\n".join(part for part in parts if part) + "\n"

    return build(_fitting(documents, MAX_PROMPT - len(build({}))))


def _documents(task: PlanTask, context: Context) -> dict[str, Document]:
    """Return everything that can be cut; the last is cut first."""
    named = {f"skill {name}": context.skill(name) for name in task.skills}
    named["project"] = context.project
    named["conventions"] = context.conventions
    named["known_issues"] = context.issues
    return {key: it._replace(text=element_text(it.text)) for key, it in named.items() if it}


def _fitting(documents: dict[str, Document], room: int) -> dict[str, str]:
    """Return the texts of the documents; each gets the room that those before it leave."""
    room -= _FRAME * (len(documents) + 1)
    texts = {}
    for key, document in documents.items():
        texts[key] = shortened(document, room)
        room -= len(texts[key])
    return texts


def _task(task: PlanTask) -> str:
    files = [element("file", element_text(file.path), action=file.action) for file in task.files]
    checks = [element("check", element_text(check.text), type=check.kind) for check in task.checks]
    parts = (
        block("files", files, mode="write"),
        element("test_required", element_text(task.test_required)),
        block("test_files", map(element_text, task.test_files), mode="dynamic"),
        element("action", element_text(task.action)),
        element("libraries", element_text(", ".join(task.libraries))),
        block("verify", checks),
        element("done", element_text(task.done)),
    )
    return block("task", parts, id=task.number, reqs=task.reqs)


def _skills(task: PlanTask, texts: Mapping[str, str]) -> str:
    unknown = "This project has no file for it. If you have a skill of this name, follow it."
    texts_of = ((name, texts.get(f"skill {name}") or unknown) for name in task.skills)
    return block("skills", [element("skill", text, name=name) for name, text in texts_of])


def _context7(task: PlanTask, context: Context) -> str:
    if not task.libraries:
        return ""
    if any(name.lower() == "context7" for name in context.mcps):
        named = element_text(", ".join(task.libraries))
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
    return f"<browser{_attributes({'enabled': enabled, 'base_url': context.base_url or ''})}/>"


def element_text(text: str) -> str:
    """Return text as the content of an element: visible, and without the end of our elements."""
    text = clean(text).replace("\r\n", "\n").translate(_EMOJI_STYLE)
    return _END.sub(r"<\1\\/", display(text.strip("\n"), lines=True))


def element(name: str, body: str, /, **attributes: str) -> str:
    """Return the element, "" if its body is empty."""
    if not body.strip():
        return ""
    newline = "\n" if "\n" in body else ""
    return f"<{name}{_attributes(attributes)}>{newline}{body}{newline}</{name}>"


def block(name: str, parts: Iterable[str], /, **attributes: str) -> str:
    """Return an element with each part on lines of its own; "" if all parts are empty."""
    body = "\n".join(part for part in parts if part)
    return f"<{name}{_attributes(attributes)}>\n{body}\n</{name}>" if body else ""


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(
        f' {key}="{escape(one_line(value, 500))}"' for key, value in attributes.items() if value
    )


def previous_attempt(task: Task, max_retries: int, nonce: str) -> str:
    """Return the last distinct errors, oldest first, quoted as data; "" if there are none."""
    if not task.errors:
        return ""
    parts = ["Do not repeat what failed."]
    for error in task.errors:
        what = f"Error at event {error.seq}"
        parts += [
            element("error", _data(what, error.text, nonce, _ERROR)),
            element("tdd_attempts", str(error.attempts or "")),
            element("analysis", one_line(error.analysis, _ANALYSIS)),
            element("suggested_fix", one_line(error.fix, _ANALYSIS)),
        ]
    parts.append(element("attempt", f"{task.retries} of {max_retries}"))
    return block("previous_attempt", parts)


def decision(task: Task, nonce: str) -> str:
    """Return the question of the task and the answer; "" without an answer."""
    if not task.answer:
        return ""
    question = task.question
    asked = _data("The question", question, nonce, _QUESTION) if question else ""
    note = "The user has decided this. Act on the answer; do not ask again."
    parts = [element("question", asked), element("answer", element_text(task.answer)), note]
    return block("decision", parts)


def _data(what: str, text: str, nonce: str, room: int) -> str:
    # Even an author who guesses the nonce cannot end the quotation.
    return fenced(what, text.replace(nonce, "[nonce]"), nonce, room)


def _is_test_driven(task: PlanTask) -> bool:
    return task.test_required in ("true", "existing")


def _cycle(task: PlanTask, max_attempts: int, test_command: str) -> str:
    """Return the TDD cycle, which begins at GREEN for existing tests; "" for a task without tests."""
    if not _is_test_driven(task):
        return ""
    names = list(_SUCCESS)
    phases = [_phase(task, name) for name in names[names.index(first_phase(task)) :]]
    most = element("max_attempts", str(max_attempts))
    command = element("test_command", element_text(test_command))
    return block("tdd_cycle", [most, command, *phases], enabled="true")


def _phase(task: PlanTask, name: str) -> str:
    rules = rules_of(task, name)
    tests_first = name == "red"
    unnamed = "the tests that you write for this task"
    body = [
        element("allowed_files", _paths(rules.allowed, unnamed if tests_first else "")),
        element("locked_files", _paths(rules.locked, "" if tests_first else unnamed)),
        element("goal", element_text(rules.goal)),
        element("success_condition", _SUCCESS[name]),
        element("on_failure", _ON_FAILURE[name]),
        element("on_complete", _ON_COMPLETE[name]),
    ]
    return block("phase", body, name=name.upper())


def _paths(paths: tuple[str, ...], unnamed: str) -> str:
    return "\n".join(element_text(path) for path in paths) or unnamed


def _rules(task: PlanTask, loop_id: str, escaped: bool) -> str:
    """Return the rules of this task; `escaped` if closing tags in its text were escaped."""
    found = [rule for rule in RULES if task.files or rule != _LISTED_ONLY]
    if not task.files:
        found.append("The plan lists no files: only modify what the action names")
    if _is_test_driven(task):
        begin, end = (
            element_text(command_line("tdd", loop_id, it)) for it in (task.id, f"{task.id} --run")
        )
        found.append(
            f"Run `{begin}` to begin the TDD cycle and to see which files may change now; "
            f"run `{end}` to end a phase: it runs the tests and decides"
        )
    paths = [file.path for file in task.files] + list(task.test_files)
    listed = any(path.removeprefix("./").startswith(".gsd/") for path in paths)
    found.append("Change no file in .gsd" + (" except those listed above" if listed else ""))
    if escaped:
        found.append(f"{ESCAPED_END} in the task means </: write </ into files")
    return block("rules", [element("rule", rule) for rule in found])


def output(plan: Plan, task: PlanTask) -> str:
    """Return the forms of the report of a task."""
    where = task.number if plan.phase is None else f"{plan.phase}-{task.number}"
    return output_for(f"{task.commit_type}({where})")


def output_for(commit: str) -> str:
    """Return the forms of a report, with this beginning of the commit message."""
    return element("output", _OUTPUT.format(commit=one_line(commit, 120)))
