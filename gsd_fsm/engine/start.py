"""Start a loop: append its events, then check out its branch and create its files."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.config.prices import frozen_prices
from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.hook.memory import append_failures
from gsd_fsm.core.journal.journal import JOURNAL_NAME, Author, Journal, Transaction, create_journal
from gsd_fsm.core.loop.completion import NO_TREE, lacks_tree
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.records import LIMITS
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import make_gsd, register
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.journal_text import redact_or_reject
from gsd_fsm.engine.content import has_tree
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, one_at_a_time, require_trust
from gsd_fsm.engine.effects import carry_out
from gsd_fsm.engine.planned.branches import NeededSwitch, checkpoint_notes, needed_switch
from gsd_fsm.engine.planned.plan import (
    Unproven,
    append_question,
    append_wait,
    append_wave_files,
    frozen,
    named_plan,
    phase_of,
    plan_on_branch,
    plan_to_follow,
    portions,
    unproven_parts,
)
from gsd_fsm.engine.protection.freeze import Frozen, Wishes
from gsd_fsm.engine.protection.protect import (
    CLEAN_SETUP,
    commands_of,
    freeze_here,
    keep_originals,
    named_files,
    settings_commands,
)
from gsd_fsm.engine.start_notes import (
    budget_notes,
    current_hook,
    kept_state_notes,
    other_loop_notes,
)
from gsd_fsm.engine.work_specs import add_shape, criterion_specs, masked_checks, task_specs

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan

# limits whose setting, or member of a request, has another name
_SETTING_OF = {"max_retries": "execute_max_retries", "max_rounds": "verify_max_iterations"}
_REQUEST_OF = {"budget_usd": "budget"}
_ALPHABET = "abcdefghjkmnpqrstvwxyz0123456789"
LONG_JOURNAL = 16 << 20
LONGEST_DIRECTORY = 1_000


class StartRequest(NamedTuple):
    """The loop that a caller wants. None means that the settings decide."""

    kind: str
    goal: str | None = None
    phase: str | None = None
    plan: str | None = None
    mode: str | None = None
    max_iterations: int | None = None
    max_retries: int | None = None
    stuck_limit: int | None = None
    idle_limit: int | None = None
    budget: float | None = None
    max_minutes: float | None = None
    max_tokens: int | None = None
    criteria: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    shape_file: str | None = None
    task_list: str | None = None
    session_only: bool = False
    fresh: bool = False
    protect: tuple[str, ...] = ()
    may_change: tuple[str, ...] = ()
    strict_tests: bool = False
    clean: bool = False

    @property
    def has_own_work(self) -> bool:
        """Return whether the request names its work itself, so that no plan is looked for."""
        return self.kind == "goal" or bool(self.tasks or self.steps)


class Started(NamedTuple):
    """A started loop, and what else happened.

    The loop is paused if its branch could not be checked out.
    """

    receipt: Receipt
    new_journal: str | None  # the `.gsd` directory in which a journal was created
    cancelled: list[str]
    notes: list[str]
    lessons: list[str]  # of earlier loops with a similar goal
    warnings: list[str]  # about the plan, and about checks that cannot fail
    unproven: Unproven
    protected: list[str]  # the files that checks depend on


class _Draft:
    """A loop before its first event, with the settings of this place, and notes for the user."""

    def __init__(self, context: Context, request: StartRequest, data: dict[str, Any]) -> None:
        self.context, self.request, self.data = context, request, data
        self.id = new_id("lp", 6)
        self.plan: Plan | None = None
        self.settings = context.settings()
        self.notes: list[str] = []
        self.warnings: list[str] = []
        own_tasks = data.get("tasks", ()) if request.kind == "execute" else ()
        self.unproven = Unproven([], [task["id"] for task in own_tasks], [])
        self.question: NeededSwitch | None = None
        # Tasks in lists that fit into one event each.
        self.parts: list[list[dict[str, Any]]] = [data.get("tasks", [])]
        self.more_files: list[list[dict[str, Any]]] = []
        if not request.has_own_work:
            self._follow_plan()
        tasks = sum(map(len, self.parts)) if request.kind == "execute" else 0
        data.update(frozen_limits(self.settings, request, tasks, context))
        data.update(frozen_prices(self.settings, data["limits"]))
        self.notes += budget_notes(data)
        if request.kind == "goal":
            data.update(frozen_goal_settings(self.settings, request.task_list))
            if request.shape_file:
                self.notes += add_shape(data, Path(context.directory), request.shape_file)
        criteria = data.get("criteria", ())
        self.warnings += masked_checks(criteria)
        if any("check" in spec for spec in criteria):
            context.check_shell()  # or refuse what could not be run
        plain = [spec["name"] for spec in criteria if "check" not in spec]
        self.unproven = self.unproven._replace(criteria=plain)
        self.frozen = self._freeze()

    def _freeze(self) -> Frozen | None:
        """Freeze what the checks depend on; raise UsageError for a glob that matches no file."""
        kind, request, data = self.request.kind, self.request, self.data
        own = settings_commands(self.context, kind, self.plan, self.settings)
        commands = commands_of(kind, data.get("criteria", ()), self.plan, own)
        if data["rules"].get("clean") and self.settings["clean_setup"]:
            own[CLEAN_SETUP] = self.settings["clean_setup"]
        wishes = Wishes(request.protect, request.may_change, named_files(self.plan))
        keeps_values = bool(data["rules"].get("strict_env"))
        frozen = freeze_here(self.context, commands, wishes, keeps_values=keeps_values)
        if frozen is not None:
            data["frozen"], self.more_files = frozen.event(own)
        return frozen

    def _follow_plan(self) -> None:
        """Put plan, phase, tasks and branch of the plan into the data; raise NotFound without one."""
        from gsd_fsm.verify.run import runs_commands

        context, request, data = self.context, self.request, self.data
        directory, phase = Path(context.directory), data.get("phase")
        plan = plan_to_follow(request.kind, directory, request.plan, context.project, phase)
        phase = data.get("phase", plan.phase)
        if request.kind == "execute":
            needed = needed_switch(context, self.settings)
            if needed is not None and (request.mode or self.settings["mode"]) == "yolo":
                plan = plan_on_branch(needed.repository, plan, needed.branch)
                data["branch"] = needed.branch
            else:
                self.question = needed
            if phase is not None:
                self.notes += _phase_notes(plan, context.project, phase)
            self.parts = portions(plan)
            data["tasks"] = self.parts[0]
        self.plan = plan
        self.warnings += plan.warnings
        if runs_commands(plan):
            context.check_shell()
        self.unproven = unproven_parts(plan)
        if request.kind == "verify":
            self.unproven = self.unproven._replace(tasks=[])  # it completes none of them
        elif not self.settings["prove_tasks"]:
            self.warnings.append("prove_tasks is off: every task will be reported as claimed")
        if phase is not None:
            data["phase"] = phase
        data["plan"] = frozen(plan, context.project)

    def append(self, whole: Transaction) -> Loop:
        tx = LoopTransaction(whole, whole.start(self.id, self.data))
        for tasks in self.parts[1:]:
            tx.append("plan", {"tasks": tasks})
        for records in self.more_files:
            tx.append("plan", {"protected": records})
        if self.question is None:
            append_question(tx)
        else:
            append_wait(tx, f"branch:{self.question.branch}", self.question.question)
        return tx.loop


@one_at_a_time
def start(context: Context, request: StartRequest) -> Started:
    """Append the events of a new loop, then carry out their effects.

    Whatever is wrong is refused before the first event: then nothing has changed. If git refuses
    to check out the loop's branch, the loop is paused. Another effect that fails is only noted: the
    next command tries again.
    """
    data = described(request)
    place_checks(data, context)
    if request.has_own_work and request.plan is not None:
        data["plan"] = named_plan(Path(context.directory), request.plan)
    loops = known_loops(context)
    require_enabled(context)
    if loops is not None:
        require_trust(loops, context.gsd)
    draft = _Draft(context, request, data)
    notes = draft.notes
    notes += current_hook(context, loops)
    if request.kind == "goal":
        notes += other_loop_notes(context, loops)
    if loops is None:
        with rehearsal(context.author) as tx:
            draft.append(tx)  # create a journal only if the draft will not be refused
        create(context)
    live = [loop.id for loop in loops.live()] if loops is not None else []
    if draft.frozen is not None:
        keep_originals(context, draft.id, draft.frozen, live)
    cancelled: list[str] = []
    with context.transaction() as tx:
        if request.fresh:
            cancelled = cancel_conflicting(tx, context, "start --fresh")
        loop = draft.append(tx)
    outcome = carry_out(context, loop)
    if draft.question is None:  # the answer may check out another branch
        with context.writing(loop) as later:
            append_wave_files(later, context.project)
    proof = context.receipt(loop)
    notes += kept_state_notes(context, loop) + checkpoint_notes(context, proof.loop)
    notes += [NO_TREE] if lacks_tree(loop) else []
    if proof.loop.status != "paused":  # then its reason says that the branch was refused
        context.notices += [error.message for _, error in outcome.failed]
        if "branch" in data and (outcome.done or outcome.failed):
            notes.append(f"Switched to branch {data['branch']}.")
    lessons = _lessons(context, loop) if loops is not None else []
    created = context.gsd if loops is None else None
    protected = list(dict.fromkeys(file.path for file in proof.loop.protection.files))
    return Started(
        proof, created, cancelled, notes, lessons, draft.warnings, draft.unproven, protected
    )


def _phase_notes(plan: Plan, project: Path, phase: int | str) -> list[str]:
    from gsd_fsm.phase.roadmap import roadmap_warning

    warning = roadmap_warning(project, phase)
    other = plan.phase not in (None, phase)
    named = f"The plan names another phase: {plan.phase}." if other else None
    return [note for note in (warning, named) if note]


def _lessons(context: Context, loop: Loop) -> list[str]:
    """Return what earlier loops of this project learned about such a goal."""
    if loop.kind != "goal":
        return []
    if os.path.getsize(os.path.join(context.gsd, JOURNAL_NAME)) > LONG_JOURNAL:
        return []  # reading it takes about a second; `gsd-fsm recall` does it on request
    from gsd_fsm.engine.lessons import lessons

    return [it.text for it in lessons(context.gsd, loop.goal or "", except_loop=loop.id)]


# the wanted loop


def described(request: StartRequest) -> dict[str, Any]:
    """Return the part of the `start` event that depends on the request alone."""
    kind, goal = request.kind, (request.goal or "").strip()
    if kind != "goal" and (request.shape_file or request.task_list):
        raise UsageError(
            "--shape-file and --task-list are for goal loops", "Run: gsd-fsm start goal --help"
        )
    if kind == "goal" and not goal:
        raise UsageError("a goal loop needs a goal", 'Run: gsd-fsm start goal "All tests pass"')
    data: dict[str, Any] = {"kind": kind}
    if goal:
        data["goal"] = redact_or_reject(goal, "the goal")
    if request.criteria or request.checks:
        data["criteria"] = criterion_specs(request.criteria, request.checks)
    if request.tasks or request.steps or request.blocked_by:
        data["tasks"] = task_specs(request.tasks, request.steps, request.blocked_by)
    if request.phase is not None:
        data["phase"] = phase_of(request.phase)
    if request.must_not:
        data["must_not"] = [
            redact_or_reject(text, "a must-not", 2_000) for text in request.must_not
        ]
    if request.session_only:
        data["session_only"] = True
    return data


def frozen_limits(
    settings: Mapping[str, Any], request: StartRequest, tasks: int, context: Context
) -> dict[str, Any]:
    """Return mode, auto_loop, rules and limits of a loop: the request over the settings.

    `tasks` is the number of tasks that the default number of iterations depends on.
    """
    rules = {
        "prove": settings["prove_tasks"],
        "tree": has_tree(context),
        "report_grace": settings["report_grace"],
        **_strictness(settings, request, context),
    }
    limits: dict[str, Any] = {}
    for name in LIMITS.members or ():
        wanted = getattr(request, _REQUEST_OF.get(name, name), None)
        limits[name] = settings[_SETTING_OF.get(name, name)] if wanted is None else wanted
    if limits["max_iterations"] is None:
        limits["max_iterations"] = max(20, 3 * tasks)
    return {
        "mode": request.mode or settings["mode"],
        "auto_loop": settings["auto_loop"],
        "rules": rules,
        "limits": {name: value for name, value in limits.items() if value is not None},
    }


def _strictness(
    settings: Mapping[str, Any], request: StartRequest, context: Context
) -> dict[str, Any]:
    """Return the rules that a user asked for; raise Refused for a clean room without git."""
    clean = request.clean or settings["clean_checks"]
    if clean and not has_tree(context):
        raise Refused(
            "a clean room needs git, and this is not a git work tree",
            "Run: git init. Or omit --clean, and set clean_checks = false",
        )
    wanted = {
        "strict_tests": request.strict_tests,
        "strict_env": settings["strict_env"],
        "clean": clean,
    }
    return {name: value for name, value in wanted.items() if value}


def place_checks(data: dict[str, Any], context: Context) -> None:
    """Let the checks run in the directory of this call; raise UsageError for an odd name."""
    real, project = (os.path.realpath(path) for path in (context.directory, context.project))
    directory = Path(os.path.relpath(real, project)).as_posix()
    checks = [spec for spec in data.get("criteria", ()) if "check" in spec]
    if not checks or directory == ".":
        return
    if clean(directory) != directory or len(directory) > LONGEST_DIRECTORY:
        raise UsageError(
            f"the name of the directory {directory!r} cannot be recorded",
            "Start the loop in the project directory.",
        )
    for spec in checks:
        spec["directory"] = directory


def frozen_goal_settings(settings: Mapping[str, Any], task_list: str | None) -> dict[str, Any]:
    """Return counsel, views and task list of a goal loop, those of them that are set."""
    frozen: dict[str, Any] = {}
    if settings["counsel"]:
        frozen["counsel"] = settings["counsel"]
    if settings["views"]:
        frozen["views"] = list(settings["views"])
    mirrored = task_list or settings["task_list"]
    if mirrored:
        frozen["task_list"] = redact_or_reject(mirrored, "the name of a task list", 200)
    return frozen


# the place of the loop


def new_id(prefix: str, length: int) -> str:
    return prefix + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(length))


def known_loops(context: Context) -> Loops | None:
    """Return the loops of this project, trusted or not; None if there is no journal yet."""
    if not os.path.lexists(os.path.join(context.gsd_or_new, JOURNAL_NAME)):
        return None
    loops = context.journal.read_cached()
    return loops if loops.journal_id else None


def require_enabled(context: Context) -> None:
    """Raise Refused if `.gsd/STOP` disables all loops."""
    stop = os.path.join(context.gsd_or_new, "STOP")
    if os.path.lexists(stop):
        raise Refused(f"all loops are disabled by {stop}", f"Remove it: rm {shlex.quote(stop)}")


def create(context: Context) -> None:
    """Create and register a journal."""
    gsd = context.gsd_or_new
    make_gsd(gsd)
    journal_id = new_id("j", 12)
    register(journal_id, gsd, now_ms())
    create_journal(gsd, journal_id, now_ms())


@contextlib.contextmanager
def rehearsal(author: Author) -> Iterator[Transaction]:
    """Yield a dry run on an empty journal, so that a loop can be refused before one is created."""
    with Journal("").dry_run(author, empty=True) as tx:
        tx.append(None, "journal", {"id": "rehearsal", "incompat": [], "compat": []}, by="cli")
        yield tx


def cancel_conflicting(tx: Transaction, context: Context, reason: str) -> list[str]:
    """Cancel the live loops of this session; return their ids."""
    conflicting = [loop for loop in tx.loops.live() if loop.owner == context.session]
    for loop in conflicting:
        append_failures(tx, loop, "cli")
        LoopTransaction(tx, loop, context).append("cancel", {"reason": reason})
    return [loop.id for loop in conflicting]
