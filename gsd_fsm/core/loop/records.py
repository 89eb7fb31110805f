"""Hold the parts of a loop's state: limits, tasks, gaps, criteria, reviews and what the hook saw."""

from __future__ import annotations

from gsd_fsm.core.loop.schema import AMOUNT, COUNT, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Mapping

    from gsd_fsm.core.loop.payloads import CriterionSpec, FailureData, GapData

    TaskStatus = Literal["pending", "running", "complete", "failed", "checkpoint", "skipped"]

DONE: tuple[TaskStatus, ...] = ("complete", "skipped")


class Record:
    """A part of the state: slots with values, equal if all of them are equal."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join("%s=%r" % (name, getattr(self, name)) for name in self.__slots__)
        return "%s(%s)" % (type(self).__name__, values)


LIMITS = record(
    "limits",
    {
        "max_iterations": COUNT,
        "max_retries": COUNT,
        "max_rounds": COUNT,
        "tdd_max_attempts": COUNT,
        "stuck_limit": COUNT,
        "idle_limit": COUNT,
        "budget_usd": AMOUNT,
        "max_minutes": AMOUNT,
        "max_tokens": COUNT,
    },
)


class Limits(Record):
    """What a loop may use up; 0 or None is unlimited. Set by `start`, raised by `resume`."""

    __slots__ = (
        "budget_usd", "idle_limit", "max_iterations", "max_minutes", "max_retries", "max_rounds",
        "max_tokens", "stuck_limit", "tdd_max_attempts",
    )  # fmt: skip

    def __init__(
        self,
        max_iterations: int = 20,
        max_retries: int = 3,
        max_rounds: int = 20,
        tdd_max_attempts: int = 5,
        stuck_limit: int = 5,
        idle_limit: int = 3,
        budget_usd: float | None = None,
        max_minutes: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.max_iterations = max_iterations
        self.max_retries = max_retries
        self.max_rounds = max_rounds
        self.tdd_max_attempts = tdd_max_attempts
        self.stuck_limit = stuck_limit
        self.idle_limit = idle_limit
        self.budget_usd = budget_usd
        self.max_minutes = max_minutes
        self.max_tokens = max_tokens

    @classmethod
    def given(cls, values: Mapping[str, Any]) -> Limits:
        """Return the defaults with these values; ignore names of a later version."""
        return cls(**{name: values[name] for name in cls.__slots__ if name in values})

    def plus(self, add: Mapping[str, Any]) -> Limits:
        """Return these limits raised by `add`; an unlimited one stays unlimited."""
        raised = Limits(**{name: getattr(self, name) for name in self.__slots__})
        for name in self.__slots__:
            now = getattr(self, name)
            if name in add and (now or name == "max_retries"):
                setattr(raised, name, now + add[name])
        return raised


class FrozenPlan(Record):
    """What a loop keeps of its plan; `task_count` is None unless its tasks come from one."""

    __slots__ = ("changed", "digest", "file", "sequential", "task_count", "title", "wave_count")

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

    __slots__ = ("analysis", "attempts", "error_class", "fix", "seq", "signature", "text")

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


class Task(Record):
    """A unit of work."""

    __slots__ = (
        "answer", "asked", "attempts", "commit", "condition", "depends", "errors", "exit_code",
        "fixes", "id", "list", "locked", "mirrored", "named", "phase", "proven", "question", "ref",
        "retries", "retry_refused", "status", "step", "summary", "title", "transient", "wave",
    )  # fmt: skip

    def __init__(self, task_id: str = "", spec: Any = None) -> None:
        self.id = task_id
        self.title = ""
        self.wave: int | None = None
        self.depends: dict[str, None] = {}
        self.step = False
        # Whether it follows a task list of the client, which one, and whether the user named that.
        self.mirrored = False
        self.list: str | None = None
        self.named = False
        # The completion condition that this task stands for.
        self.condition: str | None = None
        if spec:
            self.title = spec.get("title", "")
            self.wave = spec.get("wave")
            self.depends = dict.fromkeys(spec.get("depends", ()))
            self.step = spec.get("step", False)
            self.mirrored = spec.get("mirrored", False)
            self.list = spec.get("list")
            self.named = spec.get("named", False)
            self.condition = spec.get("condition")
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
        self.proven: dict[str, str | None] | None = None
        self.exit_code: int | None = None
        # The open decision of a checkpoint: the question, its event and the answer.
        self.question: str | None = None
        self.asked = 0
        self.answer: str | None = None
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
        for name in ("title", "wave", "step", "mirrored", "list", "named", "condition"):
            setattr(blank, name, getattr(self, name))
        blank.depends = dict(self.depends)
        return blank


class Gap(Record):
    """Something that verification found missing or wrong."""

    __slots__ = (
        "check", "description", "evidence", "file", "id", "is_open", "kind",
        "reopened", "reopened_since_resume", "round",
    )  # fmt: skip

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


class Rollback(Record):
    """A recorded rollback: the branch that it moves back, and the commit and tag that it leaves."""

    __slots__ = ("branch", "head", "left")

    def __init__(self, left: str = "", head: str = "", branch: str = "") -> None:
        self.left = left
        self.head = head
        self.branch = branch


class Criterion(Record):
    """Something that must be true, with the last evidence of its check."""

    __slots__ = ("check", "evidence", "met", "name", "stale")

    def __init__(self, spec: CriterionSpec | None = None) -> None:
        given: CriterionSpec = spec or {"name": ""}
        self.name = given["name"]
        self.check = given.get("check")
        self.met = given.get("met", False)
        self.stale = False
        # As in the event, and `seq`.
        self.evidence: dict[str, Any] | None = None

    @property
    def tree(self) -> str | None:
        """Return the content that the evidence was taken from, if that is known."""
        return self.evidence.get("tree") if self.evidence else None

    @property
    def is_refuted(self) -> bool:
        """Return whether its check ran last and failed."""
        return bool(not self.met and self.evidence and self.evidence["exit_code"])

    @property
    def progress(self) -> str:
        """Return what an iteration with progress changes."""
        proof = self.evidence
        return "%s %s" % (
            self.met,
            "%s:%s" % (proof["exit_code"], proof.get("likeness")) if proof else "",
        )


class Review(Record):
    """What a review came to; `passed` is None for a light one."""

    __slots__ = ("blockers", "blockers_remaining", "issues", "passed", "score")

    def __init__(self) -> None:
        self.score: float | None = None
        self.issues: int | None = None
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

    __slots__ = ("by", "seq", "text")

    def __init__(self, seq: int = 0, text: str = "", by: str = "") -> None:
        self.seq = seq
        self.text = text
        self.by = by


class Issue(Record):
    """Something that was noticed beside the task."""

    __slots__ = ("seq", "severity", "task", "text")

    def __init__(
        self, seq: int = 0, text: str = "", severity: str | None = None, task: str | None = None
    ) -> None:
        self.seq = seq
        self.text = text
        self.severity = severity
        self.task = task


class HookAnswer(Record):
    """The hook's answer to a stop; `notified` is the last event about which the user read a text."""

    __slots__ = ("blocks", "copy", "notified", "seq", "signal", "text", "ts")

    def __init__(self) -> None:
        self.seq = 0
        self.ts = ""
        self.blocks = False
        self.copy = ""
        self.signal = ""
        self.text = ""
        self.notified = 0


class SeenSignal(Record):
    """The last signal that was not a stop, and the copy of the hook that recorded it."""

    __slots__ = ("copy", "signal", "ts")

    def __init__(self, ts: str = "", signal: str = "", copy: str = "") -> None:
        self.ts = ts
        self.signal = signal
        self.copy = copy


class AllowedStop(Record):
    """The last `stop` event."""

    __slots__ = ("code", "reason", "seq")

    def __init__(self, seq: int = 0, code: str = "", reason: str = "") -> None:
        self.seq = seq
        self.code = code
        self.reason = reason
