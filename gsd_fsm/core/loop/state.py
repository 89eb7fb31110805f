"""Hold the state of a loop. The fold writes it, everyone else reads it."""

from __future__ import annotations

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.loop.protection import Protection
from gsd_fsm.core.loop.records import DONE, FrozenPlan, Limits, Record
from gsd_fsm.core.loop.spending import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Literal

    from gsd_fsm.core.loop.payloads import ImportedData
    from gsd_fsm.core.loop.records import (
        AllowedStop,
        Criterion,
        Failure,
        Gap,
        HookAnswer,
        Issue,
        Note,
        Prompt,
        Question,
        Review,
        Rollback,
        Rules,
        SeenSignal,
        Task,
        TaskStatus,
        Verdict,
    )

    Status = Literal[
        "idle", "running", "retrying", "fixing", "reviewing",
        "waiting", "paused", "completed", "cancelled",
    ]  # fmt: skip
    Change = list[Any]  # seq, time, from, to, event type, task, gap or pause code

ACTIVE: tuple[Status, ...] = ("running", "retrying", "fixing", "reviewing")
LIVE: tuple[Status, ...] = (*ACTIVE, "waiting", "paused")
FINAL: tuple[Status, ...] = ("completed", "cancelled")
STATUSES: tuple[Status, ...] = ("idle", *LIVE, *FINAL)

MAX_HISTORY = 200
# The last answers, issues and lessons that a loop keeps.
MAX_KEPT = 50
# A goal with a lower spec score is not understood yet.
LEAST_SPEC = 5
# The environment variable with which a user names the task list of their client.
TASK_LIST = "CLAUDE_CODE_TASK_LIST_ID"


# Fields of a loop that `index()` derives from the others.
INDEXES = frozenset((
    "awaited", "criterion_tasks", "dependency_count", "erring", "failed", "gate_tasks",
    "open_gap_count", "proven_by_tree", "proven_criteria", "refused_retries", "refuted",
    "returned_gaps", "transient_tasks",
))  # fmt: skip


class Loop(Record):
    """One loop, as its events left it."""

    __slots__ = (
        "accepts_tasks", "active_ms", "active_since", "advice_given", "answer", "answered",
        "asked", "auto_loop", "awaited", "background", "baseline", "before_pause",
        "before_wait", "began", "branch", "changed", "checkpoints", "client", "commit",
        "counsel", "criteria", "criterion_tasks", "delivered_answer", "delivered_notes",
        "dependency_count", "dismissed", "erring", "errors", "exit_signal", "failed", "failed_at",
        "failed_verifications", "first_ts", "fit_score", "gaps", "gate_tasks", "goal",
        "history", "human_spoke", "human_spoke_since_score", "id", "idle", "imported", "issues",
        "iteration", "kind", "last_answer", "last_error", "last_event", "last_iteration",
        "last_seq", "last_signal", "last_stop", "limits", "milestones", "mode", "must_not",
        "notes", "open_gap_count", "owned_since", "owner", "pause_code", "pause_reason",
        "phase", "pid", "plan", "progressed", "prompted_elsewhere", "prompts", "proof_seconds",
        "protection", "proven_by_tree", "proven_criteria", "question", "questions", "recalled",
        "refused_retries", "refuted", "released", "repeated_errors", "returned_gaps",
        "review_needed", "review_outdated", "reviewer_asked", "reviews", "rollback", "round",
        "round_checks", "round_tree", "rules", "scored", "session_only", "shape",
        "silent_stops", "snapshots", "spec", "spec_score", "spent_tokens", "spent_usd", "stage",
        "stalled", "started", "status", "task_list", "tasks", "transcript", "transcripts",
        "transient", "transient_tasks", "unconfirmed", "until", "usage", "verdicts", "verified",
        "viewed", "views", "wait_for", "wave_files", "waves_due",
    )  # fmt: skip

    def __init__(self, loop_id: str = "") -> None:
        self.id = loop_id
        self.status: Status = "idle"
        self.kind = ""
        self.mode = "interactive"
        self.goal: str | None = None
        self.phase: str | int | None = None
        self.plan = FrozenPlan()
        # The branch to work on, or that the last checkpoint or `complete` was on.
        self.branch: str | None = None
        self.must_not: dict[str, None] = {}
        self.auto_loop = True
        self.limits = Limits()
        self.rules: Rules | None = None
        self.protection = Protection()
        self.counsel: str | None = None
        self.task_list: str | None = None
        self.session_only = False
        self.review_needed = False
        # Facts of the loop of another tool that this one continues.
        self.imported: ImportedData = {}
        # The views that show it, and since when.
        self.views: list[str] = []
        self.viewed: dict[str, str] = {}

        self.started: str | None = None
        self.first_ts = ""
        self.last_event = ""
        self.last_seq = 0
        self.history: list[Change] = []
        self.active_ms = 0
        self.active_since: str | None = None

        self.owner: str | None = None
        self.owned_since = ""
        self.client: str | None = None
        # The process of the owner's client, and when that began; sessions that the user released.
        self.pid: int | None = None
        self.began = ""
        self.released: list[str] = []
        # Whether the user sent a message since the last wait, pause or iteration; in which others.
        self.human_spoke = True
        self.prompted_elsewhere: list[str] = []
        # Of a loop with rules, these prompts one by one; and the transcripts of sessions.
        self.prompts: list[Prompt] = []
        self.transcripts: dict[str, str] = {}

        self.before_wait: Status = "running"
        self.before_pause: Status = "running"
        self.pause_code: str | None = None
        self.pause_reason: str | None = None
        self.wait_for: str | None = None
        self.until: str | None = None
        self.question: str | None = None
        # The key of the open question, the keys of answered ones, and an answer not yet delivered.
        self.asked: str | None = None
        self.answered: list[str] = []
        self.answer: str | None = None
        # The questions of a wait that has several, by their ids.
        self.questions: dict[str, Question] = {}

        # What the hook saw and answered. A block is unconfirmed until the next signal.
        self.transcript: tuple[str | None, int] | None = None
        self.commit: str | None = None
        self.background: list[str] = []
        self.last_answer: HookAnswer | None = None
        self.last_signal: SeenSignal | None = None
        self.last_stop: AllowedStop | None = None
        # The time of the last failed stop, which was recorded later.
        self.failed_at = ""
        self.unconfirmed = 0
        self.delivered_notes: list[Note] = []
        self.delivered_answer: str | None = None

        self.iteration = 0
        self.last_iteration: str | None = None
        self.round = 0
        self.idle = 0
        # Iterations without progress; since the last one: whether a task was finished or a
        # milestone reached, and the former values of criteria and gaps that changed.
        self.stalled = 0
        self.progressed = False
        self.changed: dict[str, str | bool | None] = {}
        self.milestones: dict[str, None] = {}

        self.spent_usd: float = 0
        self.spent_tokens = 0
        self.usage = Usage()

        self.tasks: dict[str, Task] = {}
        self.accepts_tasks = True
        self.errors: list[Failure] = []
        self.last_error: str | None = None
        self.repeated_errors = 0
        self.transient = 0
        self.issues: list[Issue] = []
        # By tag: the commit of the branch, and the commit with the files that the tag is set on.
        self.checkpoints: dict[str, str | None] = {}
        self.snapshots: dict[str, str] = {}
        # The rollback whose target is the last checkpoint.
        self.rollback: Rollback | None = None
        # The number of tasks whose waves must be laid again before they are read.
        self.waves_due = 0
        # By wave, the digests that the files to modify had when it first began.
        self.wave_files: dict[str, dict[str, str | None]] = {}
        # Running tasks whose subagents ended without a report, with the stops without activity since.
        self.silent_stops: dict[str, int] = {}
        # How long the longest run of the checks of tasks took.
        self.proof_seconds: float = 0

        self.gaps: dict[str, Gap] = {}
        self.verified = False
        # What the last round left to a human or a reviewer, its content, the number of checks that it
        # ran, and the round in which a reviewing subagent was asked for.
        self.verdicts: dict[str, Verdict] = {}
        self.round_tree: str | None = None
        self.round_checks = 0
        self.reviewer_asked = 0
        self.criteria: dict[str, Criterion] = {}
        # Whether each check passed before any work, by its criterion or its place in the plan.
        self.baseline: dict[str, bool] = {}
        self.exit_signal = False
        self.reviews: dict[str, Review] = {}
        # Whether work was done after the thorough review.
        self.review_outdated = False
        self.failed_verifications = 0
        self.advice_given = 0

        self.stage: str | None = None
        self.spec: dict[str, int] = {}
        self.spec_score: int | None = None
        self.fit_score: int | None = None
        self.shape: str | None = None
        self.scored = 0
        self.human_spoke_since_score = False

        # Undelivered notes by the seq of their event.
        self.notes: dict[int, Note] = {}
        self.recalled: list[str] = []
        self.dismissed: list[str] = []

        # Indexes of the above, so that an event costs the same in a loop with 10 tasks and with
        # 25,000. Rebuilt by `index()`.
        self.dependency_count = 0
        # By name, the number of tasks that depend on a task; it may not exist yet.
        self.awaited: dict[str, int] = {}
        self.failed: dict[str, None] = {}
        self.erring: dict[str, None] = {}
        self.refused_retries: dict[str, None] = {}
        self.transient_tasks: dict[str, None] = {}
        # Open tasks by the completion condition that they stand for: criteria, and all others.
        self.criterion_tasks: dict[str, dict[str, None]] = {}
        self.gate_tasks: dict[str, dict[str, None]] = {}
        self.open_gap_count = 0
        self.returned_gaps: dict[str, None] = {}
        self.refuted: dict[str, None] = {}
        # Met criteria whose evidence has a tree: the latest evidence last, and by their tree.
        self.proven_criteria: dict[str, None] = {}
        self.proven_by_tree: dict[str, dict[str, None]] = {}

    # questions

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE

    @property
    def is_planned(self) -> bool:
        """Return whether its tasks come from a plan that the engine has read."""
        return self.plan.task_count is not None

    @property
    def proves_tasks(self) -> bool:
        """Return whether a task with checks is complete only once the engine has run them."""
        return self.rules is not None and self.rules.prove

    @property
    def is_unclear(self) -> bool:
        """Return whether its goal was scored and is not clear enough to be worked on."""
        low = self.spec_score is not None and self.spec_score < LEAST_SPEC
        return bool(self.shape and (low or self.shape == "blocked"))

    @property
    def stuck(self) -> int:
        """Return the number of iterations without progress that the stuck limit is about."""
        return 0 if self.has_progressed() else self.stalled

    def has_progressed(self) -> bool:
        """Return whether anything progressed since the last iteration."""
        return self.progressed or any(
            self._progress(key) != before for key, before in self.changed.items()
        )

    @property
    def last_unmet(self) -> str | None:
        """Return the first criterion that was unmet at the last iteration."""
        counted = False
        for criterion in self.criteria.values():
            key = "criterion:" + criterion.name
            if key not in self.changed:
                met = criterion.met
            elif self.changed[key] is None:
                continue  # added since
            else:
                met = str(self.changed[key]).startswith("True")
            counted = self.iteration > self.imported.get("iteration", 0)
            if counted and not met:
                return criterion.name
        return None if counted else self.imported.get("last_unmet")

    def task(self, task_id: str) -> Task | None:
        """Return this task, None if it would be a new one; raise Refused if it cannot be added."""
        task = self.tasks.get(task_id)
        if task is None and not self.accepts_tasks:
            raise self._lacks("task %s" % task_id, "tasks", self.tasks)
        return task

    def gap(self, gap_id: str) -> Gap:
        """Return this gap; raise Refused if the loop has none with this id."""
        gap = self.gaps.get(gap_id)
        if gap is None:
            raise self._lacks("gap %s" % gap_id, "gaps", self.gaps)
        return gap

    def criterion(self, name: str) -> Criterion:
        """Return this criterion; raise Refused if the loop has none with this name."""
        criterion = self.criteria.get(name)
        if criterion is None:
            raise self._lacks("criterion %r" % name, "criteria", self.criteria)
        return criterion

    def _lacks(self, what: str, plural: str, names: Iterable[str]) -> Refused:
        hint = "Its %s: %s" % (plural, listed(names))
        return Refused("loop %s has no %s" % (self.id, what), hint)

    # changes, for the fold

    def put_task(self, task: Task) -> None:
        """Add a task, or replace the one with its id."""
        known = self.tasks.get(task.id)
        if known is not None:
            self._drop_from_indexes(known)
        self.tasks[task.id] = task
        self._index_task(task)

    def add_dependencies(self, task: Task, names: list[str]) -> None:
        new = [name for name in dict.fromkeys(names) if name not in task.depends]
        task.depends.update(dict.fromkeys(new))
        self._count_dependencies(new, 1)

    def set_task_status(self, task: Task, status: TaskStatus) -> None:
        if task.status == "failed":
            del self.failed[task.id]
        task.status = status
        if status == "failed":
            self.failed[task.id] = None
        if task.condition is not None:
            if status in DONE:
                self._drop_gate_task(task.condition, task.id)
            else:
                self._gates(task.condition).setdefault(task.condition, {})[task.id] = None

    def record_progress(self, key: str) -> None:
        """Keep the value that a criterion or gap had at the last iteration; call it before a change."""
        if key not in self.changed:
            self.changed[key] = self._progress(key)

    def reach(self, milestone: str) -> None:
        """Record something that was done for the first time: it counts as progress."""
        if milestone not in self.milestones:
            self.milestones[milestone] = None
            self.progressed = True

    def index(self) -> None:
        """Build the indexes anew from tasks, gaps and criteria."""
        for task in self.tasks.values():
            self._index_task(task)
        for gap in self.gaps.values():
            self.open_gap_count += gap.is_open
            if gap.reopened_since_resume:
                self.returned_gaps[gap.id] = None
        self.refuted = {c.name: None for c in self.criteria.values() if c.is_refuted}
        self.index_trees()

    def index_trees(self) -> None:
        """Index the met criteria with a tree in the order of their evidence."""
        proven = [c for c in self.criteria.values() if c.met and c.tree]
        proven.sort(key=lambda c: (c.evidence or {})["seq"])
        self.proven_criteria = {}
        self.proven_by_tree = {}
        for criterion in proven:
            self.add_proof(criterion)

    def add_proof(self, criterion: Criterion) -> None:
        """Index a criterion whose evidence is the latest."""
        if criterion.met and criterion.tree:
            self.proven_criteria[criterion.name] = None
            self.proven_by_tree.setdefault(criterion.tree, {})[criterion.name] = None

    def drop_proof(self, criterion: Criterion) -> None:
        """Take a criterion out of the indexes; call it before its evidence changes."""
        self.refuted.pop(criterion.name, None)
        if criterion.name in self.proven_criteria:
            del self.proven_criteria[criterion.name]
            tree = criterion.tree or ""
            del self.proven_by_tree[tree][criterion.name]
            if not self.proven_by_tree[tree]:
                del self.proven_by_tree[tree]

    def _progress(self, key: str) -> str | bool | None:
        kind, _, name = key.partition(":")
        if kind == "gap":
            return name in self.gaps and self.gaps[name].is_open
        criterion = self.criteria.get(name)
        return criterion.progress if criterion is not None else None

    def _count_dependencies(self, names: Iterable[str], step: int) -> None:
        for name in names:
            self.dependency_count += step
            self.awaited[name] = self.awaited.get(name, 0) + step
            if not self.awaited[name]:
                del self.awaited[name]

    def _index_task(self, task: Task) -> None:
        self._count_dependencies(task.depends, 1)
        if task.status == "failed":
            self.failed[task.id] = None
        if task.errors:
            self.erring[task.id] = None
        if task.retry_refused:
            self.refused_retries[task.id] = None
        if task.transient:
            self.transient_tasks[task.id] = None
        if task.condition is not None and not task.is_done:
            self._gates(task.condition).setdefault(task.condition, {})[task.id] = None

    def _drop_from_indexes(self, task: Task) -> None:
        self._count_dependencies(task.depends, -1)
        for index in (self.failed, self.erring, self.refused_retries, self.transient_tasks):
            index.pop(task.id, None)
        if task.condition is not None:
            self._drop_gate_task(task.condition, task.id)

    def _drop_gate_task(self, condition: str, task_id: str) -> None:
        gates = self._gates(condition)
        if condition in gates:
            gates[condition].pop(task_id, None)
            if not gates[condition]:
                del gates[condition]

    def _gates(self, condition: str) -> dict[str, dict[str, None]]:
        return self.criterion_tasks if condition.startswith("criterion:") else self.gate_tasks


def listed(names: Iterable[str]) -> str:
    """Return a list of names that fits into a message."""
    known = list(names)
    more = ["and %d more" % (len(known) - 20)] if len(known) > 20 else []
    return ", ".join([*known[:20], *more]) or "none"


def kept_name(name: str, loop_id: str) -> str:
    """Return the name under which a file is saved before it first shows this loop."""
    return "%s.before-%s" % (name, loop_id)


def undelivered_notes(loop: Loop) -> list[Note]:
    """Return the notes that the agent has not seen yet, the oldest first."""
    return [note for _, note in sorted(loop.notes.items())]


def unmet(loop: Loop) -> list[str]:
    """Return the criteria that are not met, in their order."""
    return [name for name, criterion in loop.criteria.items() if not criterion.met]


def open_gaps(loop: Loop) -> list[str]:
    return [gap_id for gap_id, gap in loop.gaps.items() if gap.is_open]


def open_tasks(loop: Loop) -> list[str]:
    """Return the tasks that are neither complete nor skipped, in their order."""
    return [task_id for task_id, task in loop.tasks.items() if task.status not in DONE]


def open_work(loop: Loop) -> list[str]:
    """Return the open tasks that somebody can work on."""
    return [name for name, task in loop.tasks.items() if task.status not in DONE and task.is_work]


def failed_tasks(loop: Loop) -> list[str]:
    """Return the failed tasks, in their order."""
    if len(loop.failed) < 2:
        return list(loop.failed)
    return [task_id for task_id in loop.tasks if task_id in loop.failed]


def mirrored_list(loop: Loop, named: str) -> str:
    """Return the client's task list that this loop mirrors, "" for none.

    `named`: the name that the user has given to the list of their client.
    """
    if loop.task_list:
        return "" if loop.task_list == "none" else loop.task_list
    return "auto" if named and loop.kind == "goal" else ""


def is_in_reach(loop: Loop, task: Task) -> bool:
    """Return whether a task is settled in the client's list: not one of another session's list."""
    return task.mirrored and (task.named or task.list_name in (None, loop.owner))
