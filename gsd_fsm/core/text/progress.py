"""A goal loop in words: PROGRESS.md, the report at its end, and the block for each iteration."""

from __future__ import annotations

from gsd_fsm.core.loop.state import FINAL, open_gaps, open_tasks, unmet
from gsd_fsm.core.loop.waves import current_wave
from gsd_fsm.core.text.quoting import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

    from gsd_fsm.core.loop.records import Criterion, Task
    from gsd_fsm.core.loop.state import Loop

_MARKS = {"complete": "✓", "skipped": "–", "failed": "✗"}
_OPEN_MARK = "○"
_MARKDOWN = frozenset("\\`*[]<~")
# Of a list in a report: what is beyond is counted. The report must fit into an event.
_MAX_LIST = 2_000
_MAX_CRITERIA = 5


# PROGRESS.md


def progress(loop: Loop) -> str:
    """The loop as people look at it: what is done, under way and to be done, wave by wave."""
    lines = ["# Loop Progress: %s" % _plain(loop.goal or loop.id), ""]
    lines.append("**Status:** %s" % " | ".join(_where_it_stands(loop)))
    tasks = sorted(loop.tasks.values(), key=lambda task: task.wave or 0)
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


def _section(loop: Loop, title: str, wave: str, tasks: list[Task]) -> list[str]:
    lines = ["", "## %s%s" % (title, " (Wave %s)" % wave if wave else "")]
    for task in tasks:
        named = "%s: %s" % (task.id, _plain(task.title)) if task.title else task.id
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
        return " (failed, retry %d of %d)" % (task.retries, loop.limits.max_retries)
    return {"skipped": " (skipped)", "checkpoint": " (needs a decision)"}.get(status, "")


def _plain(text: str, limit: int = 200) -> str:
    """The text on one line, with nothing in it that Markdown would obey."""
    shown = one_line(text, limit).replace("<\\/", "</")
    return "".join(["\\" + c if c in _MARKDOWN else c for c in shown])


def _where_it_stands(loop: Loop) -> list[str]:
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


def _costs(loop: Loop) -> list[str]:
    """Money, as far as it is known; where it is not, tokens."""
    costs = []
    budget, most = loop.limits.budget_usd, loop.limits.max_tokens
    if loop.spent_usd or budget:
        limit = "/$" + ("%d" if budget == int(budget) else "%.2f") % budget if budget else ""
        costs.append("Cost: $%.2f%s" % (loop.spent_usd, limit))
    if not loop.spent_usd and (loop.spent_tokens or most):
        costs.append("Tokens: %d%s" % (loop.spent_tokens, "/%d" % most if most else ""))
    return costs


def _metrics(loop: Loop) -> list[str]:
    times = loop.advice_given
    return [
        _tasks_done(loop),
        "Stuck count: %d" % loop.stuck,
        "Counsel consulted: %s" % ("Yes (%s)" % _many(times, "time") if times else "No"),
        "Criteria: %d/%d met" % (len(loop.criteria) - len(unmet(loop)), len(loop.criteria)),
        "Reviews: %s" % ("; ".join(_review_words(loop)) or "none"),
        _iterations(loop),
    ]


def _tasks_done(loop: Loop) -> str:
    done = len(loop.tasks) - len(open_tasks(loop))
    skipped = _count(loop, "skipped")
    return "Tasks: %d/%d complete%s" % (
        done,
        len(loop.tasks),
        " (%d of them skipped)" % skipped if skipped else "",
    )


def _count(loop: Loop, status: str) -> int:
    return sum([task.status == status for task in loop.tasks.values()])


def _iterations(loop: Loop) -> str:
    most = loop.limits.max_iterations
    return "Iterations: %d%s" % (loop.iteration, "/%d" % most if most else "")


def _review_words(loop: Loop) -> list[str]:
    shown = []
    for name, review in loop.reviews.items():
        facts = []
        if name == "thorough":
            under_way = loop.status == "reviewing" and not review.passed
            facts.append("passed" if review.passed else "under way" if under_way else "not passed")
        facts += ["score %s" % review.score] if review.score is not None else []
        blockers = review.blockers if review.passed is None else review.blockers_remaining
        counts = ((review.issues, "issue"), (blockers, "blocker"))
        facts += [_many(count, word) for count, word in counts if count is not None]
        shown.append("%s: %s" % (name.replace("_", " "), ", ".join(facts) or "done"))
    return shown


def _many(count: int, word: str) -> str:
    return "%d %s%s" % (count, word, "" if count == 1 else "s")


# the report


def report(loop: Loop) -> str:
    """What a goal has come to, as it is told at its end: nothing but what is known."""
    lines = ["<loop-complete>"]
    claimed = [c for c in loop.criteria.values() if c.met and c.check is None]
    if loop.tasks:
        proven = loop.criteria and not claimed and not unmet(loop)
        every = "All tasks verified:" if proven else "All tasks complete:"
        lines.append("Tasks:" if open_tasks(loop) else every)
        lines += _listed([_task_row(task) for task in loop.tasks.values()])
    if loop.criteria:
        lines.append("Success criteria:" if unmet(loop) else "All success criteria satisfied:")
        lines += _listed([_criterion_row(c) for c in loop.criteria.values()])
    facts = [_verified(loop, len(claimed)), _tasks_done(loop), _iterations(loop), *_costs(loop)]
    facts += ["Review %s" % words for words in _review_words(loop)][-3:]
    return "\n".join(
        [*lines, "", *_box(facts, list(_doubts(loop, len(claimed)))), "</loop-complete>"]
    )


def _task_row(task: Task) -> tuple[str, str]:
    mark = _MARKS.get(task.status, _OPEN_MARK)
    return mark, ("- %s: %s %s" % (task.id, mark, one_line(task.title, 120))).rstrip()


def _criterion_row(criterion: Criterion) -> tuple[str, str]:
    mark = "✓" if criterion.met else "✗"
    return mark, "- %s: %s (%s)" % (one_line(criterion.name, 120), mark, _proof_kind(criterion))


def _proof_kind(criterion: Criterion) -> str:
    """Of what kind the evidence is."""
    if criterion.check is None:
        return "claim" if criterion.met else "open"
    proof = criterion.evidence
    if proof is None:
        return "check not run"
    return "check, stale" if criterion.stale else "check, exit %d" % proof["exit_code"]


def _listed(rows: list[tuple[str, str]]) -> list[str]:
    """As many of the rows as there is room for; the others are counted, mark by mark."""
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
        return "Verified: by the exit signal alone"
    checked = len(loop.criteria) - len(unmet(loop)) - claimed
    ways = (("by checks", checked), ("by claim", claimed))
    told = ["%s %d/%d" % (way, count, len(loop.criteria)) for way, count in ways if count]
    return "Verified: %s" % (", ".join(told) or "nothing")


def _doubts(loop: Loop, claimed: int) -> Iterable[str]:
    """What somebody should know before they rely on it; facts only."""
    if claimed:
        yield "Alt: Manual verification of what was met by claim"
    if not loop.criteria:
        yield "Risk: No criterion was set"
    warnings = len([i for i in loop.issues if (i.severity or "").upper() == "WARNING"])
    risks = (
        (warnings, "warning", "left open"),
        (_count(loop, "skipped"), "task", "skipped"),
        (len(open_tasks(loop)), "task", "not finished"),
        (len(open_gaps(loop)), "gap", "open"),
    )
    for count, what, how in risks:
        if count:
            yield "Risk: %s %s" % (_many(count, what), how)


def _box(facts: list[str], doubts: list[str]) -> list[str]:
    rows = [*facts, *("↳ " + doubt for doubt in doubts)]
    width = max([34, *map(len, rows)]) + 2
    framed = ["│ %s │" % row.ljust(width - 2) for row in rows]
    rule = ["├%s┤" % ("─" * width)] if doubts else []
    head = "─ 🟢 SHIP "  # the circle is two columns wide
    return [
        "╭%s%s╮" % (head, "─" * (width - len(head) - 1)),
        *framed[: len(facts)],
        *rule,
        *framed[len(facts) :],
        "╰%s╯" % ("─" * width),
    ]


# the block for each iteration


def status_block(loop: Loop) -> str:
    """How the loop stands, in at most nine lines."""
    most = loop.limits.stuck_limit
    stuck = "Stuck: %d%s" % (loop.stuck, "/%d" % most if most else "")
    lines = ["[LOOP STATUS] %s (%s)" % (loop.id, loop.status), *_criteria_lines(loop)]
    if loop.tasks:
        steps = all(task.step for task in loop.tasks.values())
        done = _tasks_done(loop)
        lines.append(done.replace("Tasks", "Steps", 1) if steps else done)
    lines.append(" | ".join([stuck, *_costs(loop)]))
    return "\n".join(lines)


def _criteria_lines(loop: Loop) -> list[str]:
    """Each criterion with its mark; of many, the unmet ones come first."""
    criteria = list(loop.criteria.values())
    if len(criteria) > _MAX_CRITERIA:
        criteria.sort(key=lambda criterion: bool(criterion.met))
    lines = []
    for criterion in criteria[:_MAX_CRITERIA]:
        mark = "✓" if criterion.met else "✗"
        lines.append("%s %s (%s)" % (mark, one_line(criterion.name, 120), _proof_kind(criterion)))
    rest = criteria[_MAX_CRITERIA:]
    if rest:
        left = len([criterion for criterion in rest if not criterion.met])
        lines.append("… and %s more, %d unmet" % (len(rest), left))
    return lines
