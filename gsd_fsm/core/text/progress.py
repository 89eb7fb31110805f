"""Compose what people read about a goal: PROGRESS.md, the closing report and the status block."""

from __future__ import annotations

from gsd_fsm.core.loop.completion import NO_TREE, lacks_tree
from gsd_fsm.core.loop.spending import spent
from gsd_fsm.core.loop.state import FINAL, open_gaps, open_tasks, unmet
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.text.next_step import retry_count
from gsd_fsm.core.text.questions import evidence_words, plural, review_words
from gsd_fsm.core.text.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from gsd_fsm.core.loop.records import Criterion, Task
    from gsd_fsm.core.loop.state import Loop

_MARKS = {"complete": "✓", "skipped": "–", "failed": "✗"}
_OPEN_MARK = "○"
_MARKDOWN = frozenset("\\`*[]<~")
# A report must fit into an event, so the rest of a longer list is only counted.
_MAX_LIST = 2_000
_MAX_CRITERIA = 5


# PROGRESS.md


def progress(loop: Loop) -> str:
    """Return the text of PROGRESS.md: completed, running and pending tasks, wave by wave."""
    lines = ["# Loop Progress: %s" % _escaped(loop.goal or loop.id), ""]
    lines.append("**Status:** %s" % " | ".join(_status(loop)))
    tasks = sorted(shown_tasks(loop), key=lambda task: task.wave or 0)
    done = [task for task in tasks if task.is_done]
    pending = [task for task in tasks if task.status == "pending"]
    begun = [task for task in tasks if not task.is_done and task.status != "pending"]
    for title, chosen in (("✅ Completed", done), ("🔄 In Progress", begun)):
        waves: dict[int, list[Task]] = {}
        for task in chosen:  # in the order of their waves
            waves.setdefault(task.wave or 0, []).append(task)
        for wave, of_wave in waves.items():
            lines += _section(loop, title, "%d" % wave if wave else "", of_wave)
    if pending:
        numbers = sorted({task.wave for task in pending if task.wave})
        first = "%d%s" % (numbers[0], "+" if len(numbers) > 1 else "") if numbers else ""
        lines += _section(loop, "⏳ Pending", first, pending)
    lines += ["", "## 📊 Metrics", *("- " + metric for metric in _metrics(loop))]
    return "\n".join(lines) + "\n"


def shown_tasks(loop: Loop) -> list[Task]:
    """Return the tasks to show; those that stand for a completion condition only while open."""
    live = loop.status not in FINAL
    return [task for task in loop.tasks.values() if task.is_work or (live and not task.is_done)]


def _section(loop: Loop, title: str, wave: str, tasks: list[Task]) -> list[str]:
    lines = ["", "## %s%s" % (title, " (Wave %s)" % wave if wave else "")]
    for task in tasks:
        named = "%s: %s" % (task.id, _escaped(task.title)) if task.title else task.id
        lines.append("- [%s] %s%s" % ("x" if task.is_done else " ", named, _remark(loop, task)))
    return lines


def _remark(loop: Loop, task: Task) -> str:
    status = task.status
    if status == "pending":
        known = [name for name in task.depends if name in loop.tasks]
        left = [name for name in known if not loop.tasks[name].is_done]
        return " (blocked by %s)" % ", ".join(left) if left else ""
    if status == "running":
        return " (assigned to subagent)" if task.ref else ""
    if status == "failed":
        return " (failed, %s)" % retry_count(loop, task)
    return {"skipped": " (skipped)", "checkpoint": " (needs a decision)"}.get(status, "")


def _escaped(text: str) -> str:
    """Return the text on one line, with the characters of Markdown escaped."""
    shown = one_line(text, 200).replace("<\\/", "</")
    return "".join(["\\" + c if c in _MARKDOWN else c for c in shown])


def _status(loop: Loop) -> list[str]:
    parts = []
    if loop.status in FINAL:
        parts.append(loop.status.capitalize())
    elif loop.status in ("paused", "waiting"):
        why = loop.pause_code if loop.status == "paused" else loop.wait_for
        parts.append("%s (%s)" % (loop.status.capitalize(), why))
    wave = current_wave(loop)
    if wave:
        parts.append("Wave %d of %d" % (wave, max(t.wave or 0 for t in loop.tasks.values())))
    return [*parts, "Iteration %d" % loop.iteration, *_costs(loop)]


def _metrics(loop: Loop) -> list[str]:
    times = loop.advice_given
    return [
        _tasks_done(loop),
        "Stuck count: %d" % loop.stuck,
        "Counsel consulted: %s" % ("Yes (%s)" % plural(times, "time") if times else "No"),
        "Criteria: %d/%d met" % (len(loop.criteria) - len(unmet(loop)), len(loop.criteria)),
        "Reviews: %s" % ("; ".join(_reviews(loop)) or "none"),
        _iterations(loop),
    ]


# facts of several texts


def _costs(loop: Loop) -> list[str]:
    """Return the money spent if it is known, else the tokens."""
    costs = []
    budget, most = loop.limits.budget_usd, loop.limits.max_tokens
    if loop.spent_usd or budget:
        limit = "/$" + ("%d" if budget == int(budget) else "%.2f") % budget if budget else ""
        costs.append("Cost: %s%s" % (spent(loop), limit))
    if not loop.spent_usd and (loop.spent_tokens or most):
        costs.append("Tokens: %d%s" % (loop.spent_tokens, "/%d" % most if most else ""))
    return costs


def _tasks_done(loop: Loop, noun: str = "Tasks") -> str:
    tasks = shown_tasks(loop)
    done = len([task for task in tasks if task.is_done])
    skipped = _count(loop, "skipped")
    more = " (%d of them skipped)" % skipped if skipped else ""
    return "%s: %d/%d complete%s" % (noun, done, len(tasks), more)


def _count(loop: Loop, status: str) -> int:
    return len([task for task in loop.tasks.values() if task.status == status])


def _iterations(loop: Loop) -> str:
    most = loop.limits.max_iterations
    return "Iterations: %d%s" % (loop.iteration, "/%d" % most if most else "")


def _reviews(loop: Loop) -> list[str]:
    return ["%s: %s" % (name.replace("_", " "), review_words(loop, name)) for name in loop.reviews]


# the closing report


def report(loop: Loop) -> str:
    """Return the report of a completed goal; it states only recorded facts."""
    lines = ["<loop-complete>"]
    claimed = len([c for c in loop.criteria.values() if c.met and c.check is None])
    tasks = shown_tasks(loop)
    if tasks:
        proven = loop.criteria and not claimed and not unmet(loop)
        every = "All tasks verified:" if proven else "All tasks complete:"
        lines.append(every if all(task.is_done for task in tasks) else "Tasks:")
        lines += _listed([_task_row(task) for task in tasks])
    if loop.criteria:
        lines.append("Success criteria:" if unmet(loop) else "All success criteria satisfied:")
        lines += _listed([_criterion_row(c) for c in loop.criteria.values()])
    facts = [_verified(loop, claimed), _tasks_done(loop), _iterations(loop), *_costs(loop)]
    facts += ["Review %s" % words for words in _reviews(loop)][-3:]
    return "\n".join([*lines, "", *_box(facts, list(_doubts(loop, claimed))), "</loop-complete>"])


def _task_row(task: Task) -> tuple[str, str]:
    mark = _MARKS.get(task.status, _OPEN_MARK)
    return mark, ("- %s: %s %s" % (task.id, mark, one_line(task.title, 120))).rstrip()


def _criterion_row(criterion: Criterion) -> tuple[str, str]:
    mark = "✓" if criterion.met else "✗"
    return mark, "- %s: %s (%s)" % (one_line(criterion.name, 120), mark, _proof(criterion))


def _proof(criterion: Criterion) -> str:
    """Return the kind of evidence for a criterion."""
    if criterion.check is None:
        return "claim" if criterion.met else "open"
    if criterion.evidence is None:
        return "check not run"
    return "check, %s" % evidence_words(criterion, "exit")


def _listed(rows: list[tuple[str, str]]) -> list[str]:
    """Return as many rows as there is room for; count the others by their mark."""
    lines: list[str] = []
    room = _MAX_LIST
    for number, (_, line) in enumerate(rows):
        room -= len(line)
        if room < 0:
            marks = [mark for mark, _ in rows[number:]]
            counts = ["%d %s" % (marks.count(mark), mark) for mark in dict.fromkeys(marks)]
            return [*lines, "- … and %d more: %s" % (len(marks), ", ".join(counts))]
        lines.append(line)
    return lines


def _verified(loop: Loop, claimed: int) -> str:
    if not loop.criteria:
        return "Verified: exit signal only"
    checked = len(loop.criteria) - len(unmet(loop)) - claimed
    ways = (("by checks", checked), ("by claim", claimed))
    shown = ["%s %d/%d" % (way, count, len(loop.criteria)) for way, count in ways if count]
    return "Verified: %s" % (", ".join(shown) or "nothing")


def _doubts(loop: Loop, claimed: int) -> Iterator[str]:
    """Yield what a reader should know before relying on the result."""
    if claimed:
        yield "Alt: Manual verification of criteria met by claim"
    if not loop.criteria:
        yield "Risk: No criteria were set"
    if lacks_tree(loop):
        yield "Risk: " + NO_TREE.rstrip(".")
    warnings = len([i for i in loop.issues if (i.severity or "").upper() == "WARNING"])
    risks = (
        (warnings, "warning", "left open"),
        (_count(loop, "skipped"), "task", "skipped"),
        (len(open_tasks(loop)), "task", "not finished"),
        (len(open_gaps(loop)), "gap", "open"),
    )
    for count, what, how in risks:
        if count:
            yield "Risk: %s %s" % (plural(count, what), how)


def _box(facts: list[str], doubts: list[str]) -> list[str]:
    rows = [*facts, *("↳ " + doubt for doubt in doubts)]
    width = max([34, *map(len, rows)]) + 2
    framed = ["│ %s │" % row.ljust(width - 2) for row in rows]
    rule = ["├%s┤" % ("─" * width)] if doubts else []
    head = "─ 🟢 SHIP "  # the circle is two columns wide
    top = "╭%s%s╮" % (head, "─" * (width - len(head) - 1))
    return [top, *framed[: len(facts)], *rule, *framed[len(facts) :], "╰%s╯" % ("─" * width)]


# the status block of an iteration


def status_block(loop: Loop) -> str:
    """Return criteria, tasks and limits in at most nine lines; of many criteria the unmet first."""
    lines = ["[LOOP STATUS] %s (%s)" % (loop.id, loop.status)]
    criteria = list(loop.criteria.values())
    if len(criteria) > _MAX_CRITERIA:
        criteria.sort(key=lambda criterion: bool(criterion.met))
    for criterion in criteria[:_MAX_CRITERIA]:
        mark = "✓" if criterion.met else "✗"
        lines.append("%s %s (%s)" % (mark, one_line(criterion.name, 120), _proof(criterion)))
    rest = criteria[_MAX_CRITERIA:]
    if rest:
        left = len([criterion for criterion in rest if not criterion.met])
        lines.append("… and %d more, %d unmet" % (len(rest), left))
    if loop.tasks:
        steps = all(task.step for task in loop.tasks.values())
        lines.append(_tasks_done(loop, "Steps" if steps else "Tasks"))
    most = loop.limits.stuck_limit
    stuck = "Stuck: %d%s" % (loop.stuck, "/%d" % most if most else "")
    lines.append(" | ".join([stuck, *_costs(loop)]))
    return "\n".join(lines)
