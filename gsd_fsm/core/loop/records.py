"""Hold the parts of a loop's state: limits, tasks, gaps, criteria, reviews and what the hook saw."""

from __future__ import annotations

from gsd_fsm.core.loop.schema import AMOUNT, COUNT, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Literal, Mapping

    from gsd_fsm.core.loop.payloads import (
        CriterionSpec,
        Event,
        FailureData,
        GapData,
        ProofData,
        QuestionSpec,
        ReviewData,
        SessionData,
        VerdictSpec,
    )

    TaskStatus = Literal[
        "pending", "running", "reported", "complete", "failed", "checkpoint", "skipped"
    ]

DONE: tuple[TaskStatus, ...] = ("complete", "skipped")
# What a check did on one content: it failed, it passed, or both.
_FAILED, _PASSED = 1, 2
_FLAKY = _FAILED | _PASSED
# The contents whose outcomes a criterion remembers.
_MOST_TREES = 20


class Record:
    """A part of the state; two are equal if all of their fields are."""

    __slots__: tuple[str, ...] = ()

    def fields(self) -> Iterable[str]:
        return self.__slots__ or vars(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.fields()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join("%s=%r" % (name, getattr(self, name)) for name in self.fields())
        return "%s(%s)" % (type(self).__name__, values)


class Limits(Record):
    """What a loop may use up; 0 or None is unlimited. Set by `start`, raised by `resume`."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        given = values or {}  # names of a later version are ignored
        self.max_iterations: int = given.get("max_iterations", 20)
        self.max_retries: int = given.get("max_retries", 3)
        self.max_rounds: int = given.get("max_rounds", 20)
        self.tdd_max_attempts: int = given.get("tdd_max_attempts", 5)
        self.stuck_limit: int = given.get("stuck_limit", 5)
        self.idle_limit: int = given.get("idle_limit", 3)
        self.budget_usd: float | None = given.get("budget_usd")
        self.max_minutes: float | None = given.get("max_minutes")
        self.max_tokens: int | None = given.get("max_tokens")

    def plus(self, add: Mapping[str, Any]) -> Limits:
        """Return these limits raised by `add`; an unlimited one stays unlimited."""
        values = dict(vars(self))
        for name, now in values.items():
            if name in add and (now or name == "max_retries"):
                values[name] = now + add[name]
        return Limits(values)


_AMOUNTS = ("budget_usd", "max_minutes")
LIMITS = record("limits", {name: AMOUNT if name in _AMOUNTS else COUNT for name in vars(Limits())})


class Rules(Record):
    """The rules that `start` froze into a loop; a loop of version 1 has none.

    `prove`: the engine runs the checks of a task before it is complete. `tree`: evidence is bound
    to the content of the git work tree. `report_grace`: stops without activity after which a task
    has failed whose subagent ended without a report. `commands`: identifies the commands of the
    settings, "" if they were not frozen. `strict_tests`: a check fails if it ran fewer tests than
    before. `strict_env`: checks run with the variables of `start`. `clean`: they run again in a clean
    room before the loop completes.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        given = values or {}  # names of a later version are ignored
        self.prove: bool = given.get("prove", True)
        self.tree: bool = given.get("tree", False)
        self.report_grace: int = given.get("report_grace", 2)
        self.commands: str = given.get("commands", "")
        self.strict_tests: bool = given.get("strict_tests", False)
        self.strict_env: bool = given.get("strict_env", False)
        self.clean: bool = given.get("clean", False)


RULES = record(
    "rules",
    {
        "prove": bool, "tree": bool, "report_grace": COUNT, "commands": str, "strict_tests": bool,
        "strict_env": bool, "clean": bool,
    },
)  # fmt: skip


class FrozenPlan(Record):
    """What a loop keeps of its plan; `task_count` is None unless its tasks come from one."""

    def __init__(self) -> None:
        self.file = ""
        self.digest = ""
        self.title = ""
        self.task_count: int | None = None
        self.wave_count = 0
        self.sequential: list[int] = []
        self.changed = False

    def update(self, data: Mapping[str, Any]) -> None:
        """Take over what a `start` or `plan` event says of the file."""
        self.file = data.get("file", self.file)
        self.digest = data.get("digest", self.digest)
        self.title = data.get("title", self.title)
        self.wave_count = data.get("waves", self.wave_count)
        self.sequential = data.get("sequential", self.sequential)
        self.changed = data.get("changed", self.changed)


class Failure(Record):
    """One recorded failure of a task or of the loop."""

    def __init__(self, seq: int = 0, data: FailureData | None = None) -> None:
        self.seq = seq
        self.text = ""
        self.error_class = ""
        self.signature = ""
        self.analysis: str | None = None
        self.fix: str | None = None
        # Runs of the tests in the GREEN phase of the attempt that failed.
        self.attempts = 0
        if data is not None:
            self.text = data["error"]
            self.error_class = data["class"]
            self.signature = data.get("signature", data["error"])
            self.analysis = data.get("analysis")
            self.fix = data.get("fix")


# What a task keeps when a rollback undoes it.
_OF_THE_PLAN = (
    "title", "wave", "step", "mirrored", "list_name", "named", "condition", "checks", "modifies",
)  # fmt: skip


class Task(Record):
    """A unit of work."""

    # A loop may have 25,000 tasks; slots make each a fifth cheaper to create and to read.
    __slots__ = (
        "answer", "asked", "attempts", "checks", "commit", "condition", "depends", "error",
        "errors", "exit_code", "fixes", "id", "is_proving", "list_name", "locked", "message",
        "mirrored", "modifies", "named", "phase", "proof", "proofs", "question", "red_files", "ref", "retries",
        "retry_refused", "skip", "skip_reason", "skips", "status", "step",
        "summary", "title", "transient", "verdict", "wave",
    )  # fmt: skip

    def __init__(self, task_id: str = "", spec: Any = None) -> None:
        self.id = task_id
        self.title = ""
        self.wave: int | None = None
        self.depends: dict[str, None] = {}
        self.step = False
        # Whether it follows a task list of the client, which one, and whether the user named that.
        self.mirrored = False
        self.list_name: str | None = None
        self.named = False
        # The completion condition that this task stands for.
        self.condition: str | None = None
        # The number of its checks that a machine decides, and whether it is to modify a file.
        self.checks = 0
        self.modifies = False
        if spec:
            self.title = spec.get("title", "")
            self.wave = spec.get("wave")
            self.depends = dict.fromkeys(spec.get("depends", ()))
            self.step = spec.get("step", False)
            self.mirrored = spec.get("mirrored", False)
            self.list_name = spec.get("list")
            self.named = spec.get("named", False)
            self.condition = spec.get("condition")
            self.checks = spec.get("checks", 0)
            self.modifies = spec.get("modifies", False)
        self.status: TaskStatus = "pending"
        self.retries = 0
        # Whether its last failure paused the loop, so that no retry is counted for it.
        self.retry_refused = False
        self.transient = 0
        self.errors: list[Failure] = []
        # The TDD phase, runs of the tests in GREEN, the files locked in this attempt, and the test
        # files that were seen to fail.
        self.phase: str | None = None
        self.attempts = 0
        self.locked: dict[str, str | None] | None = None
        self.red_files: dict[str, str | None] | None = None
        self.exit_code: int | None = None
        # The open decision of a checkpoint: the question, its event and the answer.
        self.question: str | None = None
        self.asked = 0
        self.answer: str | None = None
        # What was reported: the verdict, the error of a failed task, and the commit message.
        self.verdict: str | None = None
        self.error: str | None = None
        self.message: str | None = None
        # The last proof of each check since then, and whether a run of its checks has not ended.
        self.proofs: dict[str, ProofData] = {}
        self.is_proving = False
        # How it was completed: "proven" or "claimed".
        self.proof: str | None = None
        # The event of an open request to skip it, the reason, and the user's decision.
        self.skip = 0
        self.skip_reason: str | None = None
        self.skips: bool | None = None
        self.ref: str | None = None
        self.commit: str | None = None
        self.summary: str | None = None
        self.fixes: list[str] = []

    @property
    def is_done(self) -> bool:
        return self.status in DONE

    @property
    def is_work(self) -> bool:
        """Return whether it is more than a restated completion condition."""
        return self.condition is None or self.condition == "blocker"

    def blank(self) -> Task:
        """Return the same task before anything was done about it."""
        blank = Task(self.id)
        for name in _OF_THE_PLAN:
            setattr(blank, name, getattr(self, name))
        blank.depends = dict(self.depends)
        return blank


class Gap(Record):
    """Something that verification found missing or wrong."""

    def __init__(self, data: GapData | None = None, found_in_round: int = 0) -> None:
        found: GapData = data or {"gap": "", "action": "found"}
        self.id = found["gap"]
        self.kind = found.get("kind", "other")
        self.file = found.get("file")
        self.description = found.get("description", "")
        self.evidence = found.get("evidence")
        self.check = found.get("check")
        self.round = found_in_round
        self.is_open = False
        self.reopened = 0
        self.reopened_since_resume = 0

    @property
    def status(self) -> str:
        return "open" if self.is_open else "closed"


class Verdict(Record):
    """The decision on something that only a human or a reviewer can judge; `passed` is None before.

    `kind` is check, must-have or gap; `agent` the reviewing subagent, None if a human decided.
    """

    def __init__(self, spec: VerdictSpec | None = None) -> None:
        given: VerdictSpec = spec or {"id": "", "kind": "check"}
        self.id = given["id"]
        self.kind = given["kind"]
        self.text = given.get("text", "")
        self.passed: bool | None = None
        self.evidence: str | None = None
        self.agent: str | None = None


class Question(Record):
    """One of several questions of a wait; `answer` is None while it is open."""

    def __init__(self, spec: QuestionSpec | None = None) -> None:
        given: QuestionSpec = spec or {"id": "", "about": "", "question": ""}
        self.id = given["id"]
        self.about = given["about"]
        self.question = given["question"]
        self.answer: str | None = None


class Rollback(Record):
    """A recorded rollback: the branch that it moves back, and the commit that it leaves.

    The tag `left` is set on `kept`: that commit, or a snapshot with the uncommitted changes.
    """

    def __init__(self, left: str = "", head: str = "", branch: str = "", kept: str = "") -> None:
        self.left = left
        self.head = head
        self.branch = branch
        self.kept = kept


class Criterion(Record):
    """Something that must be true, with the last evidence of its check."""

    def __init__(self, spec: CriterionSpec | None = None) -> None:
        given: CriterionSpec = spec or {"name": ""}
        self.name = given["name"]
        self.check = given.get("check")
        # Where the check runs, relative to the project; "" for the project itself.
        self.directory = given.get("directory", "")
        self.met = given.get("met", False)
        self.stale = False
        # As in the event, with `seq`, and with `baseline` if it was taken before any work.
        self.evidence: dict[str, Any] | None = None
        # What the check did, by tree, the latest last.
        self.outcomes: dict[str, int] = {}

    @property
    def tree(self) -> str | None:
        """Return the content that the evidence was taken from, if that is known."""
        return self.evidence.get("tree") if self.evidence else None

    @property
    def is_refuted(self) -> bool:
        """Return whether its check ran last and failed; a baseline is not a failed attempt."""
        proof = self.evidence
        return bool(not self.met and proof and proof["exit_code"] and not proof.get("baseline"))

    def record_outcome(self, proof: Mapping[str, Any]) -> None:
        """Remember what this evidence says about its content."""
        tree = proof.get("tree")
        if tree:
            self.outcomes[tree] = self.outcomes.pop(tree, 0) | _outcome(proof)
            if len(self.outcomes) > _MOST_TREES:
                del self.outcomes[next(iter(self.outcomes))]

    def is_flaky(self, proof: Mapping[str, Any]) -> bool:
        """Return whether, with this evidence, its check has passed and failed on one content."""
        known = self.outcomes.get(proof.get("tree") or "", 0)
        return known | _outcome(proof) == _FLAKY

    @property
    def progress(self) -> str:
        """Return what an iteration with progress changes."""
        proof = self.evidence
        return "%s %s" % (
            self.met,
            "%s:%s" % (proof["exit_code"], proof.get("likeness")) if proof else "",
        )


def _outcome(proof: Mapping[str, Any]) -> int:
    if proof["exit_code"]:
        return _FAILED
    return _FLAKY if proof.get("reruns") else _PASSED


class Review(Record):
    """What a review came to; `passed` is None for a light one."""

    def __init__(self, data: ReviewData | None = None) -> None:
        self.score = data.get("score") if data else None
        self.issues = data.get("issues") if data else None
        self.blockers: int | None = None
        self.passed: bool | None = None
        self.blockers_remaining: int | None = None

    def facts(self) -> dict[str, Any]:
        """Return its known figures by name."""
        light = {"score": self.score, "issues": self.issues, "blockers": self.blockers}
        known = {name: value for name, value in light.items() if value is not None}
        if self.passed is None:
            return known
        return {"passed": self.passed, "blockers_remaining": self.blockers_remaining, **known}


class Note(Record):
    """A note that the agent has not seen yet."""

    def __init__(self, seq: int = 0, text: str = "", by: str = "") -> None:
        self.seq = seq
        self.text = text
        self.by = by


class Issue(Record):
    """Something that was noticed beside the task."""

    def __init__(
        self, seq: int = 0, text: str = "", severity: str | None = None, task: str | None = None
    ) -> None:
        self.seq = seq
        self.text = text
        self.severity = severity
        self.task = task


class HookAnswer(Record):
    """The hook's answer to a stop; `notified` is the last event about which the user read a text.

    `hook` is the version of the hook that answered, 0 for one that does not name it.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.ts = ""
        self.blocks = False
        self.copy = ""
        self.hook = 0
        self.signal = ""
        self.text = ""
        self.notified = 0


class SeenSignal(Record):
    """The last signal that was not a stop, and the copy of the hook that recorded it."""

    def __init__(self, ts: str = "", signal: str = "", copy: str = "") -> None:
        self.ts = ts
        self.signal = signal
        self.copy = copy


class Prompt(Record):
    """A human prompt since the last decision was due, and where its client recorded it.

    `digest` and `id` identify it in the transcript `file`, from `offset` on. Without them, it stands
    for all prompts of that session since then.
    """

    def __init__(self, event: Event[SessionData] | None = None, file: str | None = None) -> None:
        self.session = event.get("session") if event else None
        self.client = event.get("client") if event else None
        data: SessionData = event["data"] if event else {"action": "prompt"}
        self.pid = data.get("pid")
        self.file = data.get("file", file)
        self.offset = data.get("transcript", 0)
        self.digest = data.get("digest")
        self.id = data.get("prompt")


class AllowedStop(Record):
    """The last `stop` event."""

    def __init__(self, seq: int = 0, code: str = "", reason: str = "") -> None:
        self.seq = seq
        self.code = code
        self.reason = reason
