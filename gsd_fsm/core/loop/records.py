"""Hold the parts of a loop's state: limits, tasks, gaps, criteria, reviews and what the hook saw."""

from __future__ import annotations

from gsd_fsm.core.loop.schema import AMOUNT, COUNT, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Mapping

    from gsd_fsm.core.loop.payloads import CriterionSpec, FailureData, GapData

    TaskStatus = Literal["pending", "running", "complete", "failed", "checkpoint", "skipped"]

DONE: tuple[TaskStatus, ...] = ("complete", "skipped")
_PLANNED = ("title", "wave", "step", "mirrored", "named", "condition")


class Record:
    """A part of the state. Its class declares the fields with their first values.

    Each instance gets its own lists and dictionaries.
    """

    fields: dict[str, Any] = {}
    _collections: list[tuple[str, Any]] = []

    def __init_subclass__(cls) -> None:
        own = vars(cls).items()
        cls.fields = {
            name: value
            for name, value in own
            if name[0] != "_" and not hasattr(value, "__get__")  # a method or property
        }
        cls._collections = [it for it in cls.fields.items() if type(it[1]) in (dict, list)]

    def __init__(self, **values: Any) -> None:
        known = self.__dict__
        for name, value in self._collections:
            known[name] = value.copy()
        known.update(values)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join("%s=%r" % (name, getattr(self, name)) for name in self.fields)
        return "%s(%s)" % (type(self).__name__, values)


class Limits(Record):
    """What a loop may use up; 0 or None is unlimited. Set by `start`, raised by `resume`."""

    max_iterations: int = 20
    max_retries: int = 3
    max_rounds: int = 20
    tdd_max_attempts: int = 5
    stuck_limit: int = 5
    idle_limit: int = 3
    budget_usd: float | None = None
    max_minutes: float | None = None
    max_tokens: int | None = None

    @classmethod
    def given(cls, values: Mapping[str, Any]) -> Limits:
        """Return the defaults with these values; ignore names of a later version."""
        return cls(**{name: values[name] for name in cls.fields if name in values})

    def plus(self, add: Mapping[str, Any]) -> Limits:
        """Return these limits raised by `add`; an unlimited one stays unlimited."""
        now = {name: getattr(self, name) for name in self.fields}
        for name, value in now.items():
            if name in add and (value or name == "max_retries"):
                now[name] = value + add[name]
        return Limits(**now)


_AMOUNTS = ("budget_usd", "max_minutes")
LIMITS = record("limits", {name: AMOUNT if name in _AMOUNTS else COUNT for name in Limits.fields})


class FrozenPlan(Record):
    """What a loop keeps of its plan; `task_count` is None unless its tasks come from one."""

    file: str = ""
    digest: str = ""
    title: str = ""
    task_count: int | None = None
    wave_count: int = 0
    sequential: list[int] = []
    changed: bool = False

    def update(self, data: Mapping[str, Any]) -> None:
        """Take over what a `start` or `plan` event says of the file."""
        for name in ("file", "digest", "title", "sequential", "changed"):
            if name in data:
                setattr(self, name, data[name])
        self.wave_count = data.get("waves", self.wave_count)


class Failure(Record):
    """One recorded failure of a task or of the loop."""

    seq: int = 0
    text: str = ""
    error_class: str = ""
    signature: str = ""
    analysis: str | None = None
    fix: str | None = None
    # Runs of the tests in the GREEN phase of the attempt that failed.
    attempts: int = 0

    @classmethod
    def of(cls, seq: int, data: FailureData) -> Failure:
        return cls(
            seq=seq,
            text=data["error"],
            error_class=data["class"],
            signature=data.get("signature", data["error"]),
            analysis=data.get("analysis"),
            fix=data.get("fix"),
        )


class Task(Record):
    """A unit of work."""

    id: str = ""
    title: str = ""
    wave: int | None = None
    depends: dict[str, None] = {}
    step: bool = False
    # Whether it follows a task list of the client, which one, and whether the user named that.
    mirrored: bool = False
    list_name: str | None = None
    named: bool = False
    # The completion condition that this task stands for.
    condition: str | None = None

    status: TaskStatus = "pending"
    retries: int = 0
    # Whether its last failure paused the loop, so that no retry is counted for it.
    retry_refused: bool = False
    transient: int = 0
    errors: list[Failure] = []
    # The TDD phase, runs of the tests in GREEN, the files locked in this attempt, and the test
    # files that were seen to fail.
    phase: str | None = None
    attempts: int = 0
    locked: dict[str, str | None] | None = None
    proven: dict[str, str | None] | None = None
    exit_code: int | None = None
    # The open decision of a checkpoint: the question, its event and the answer.
    question: str | None = None
    asked: int = 0
    answer: str | None = None
    ref: str | None = None
    commit: str | None = None
    summary: str | None = None
    fixes: list[str] = []

    @classmethod
    def of(cls, task_id: str, spec: Any) -> Task:
        """Return a new task as a payload describes it."""
        known = {name: spec[name] for name in _PLANNED if name in spec}
        depends = dict.fromkeys(spec.get("depends", ()))
        return cls(id=task_id, depends=depends, list_name=spec.get("list"), **known)

    def blank(self) -> Task:
        """Return the same task before anything was done about it."""
        known = {name: getattr(self, name) for name in _PLANNED}
        return Task(id=self.id, depends=dict(self.depends), list_name=self.list_name, **known)

    @property
    def is_done(self) -> bool:
        return self.status in DONE

    @property
    def is_work(self) -> bool:
        """Return whether it is more than a restated completion condition."""
        return self.condition is None or self.condition == "blocker"


class Gap(Record):
    """Something that verification found missing or wrong."""

    id: str = ""
    kind: str = "other"
    file: str | None = None
    description: str = ""
    evidence: str | None = None
    check: str | None = None
    round: int = 0
    is_open: bool = False
    reopened: int = 0
    reopened_since_resume: int = 0

    @classmethod
    def of(cls, data: GapData, found_in_round: int) -> Gap:
        return cls(
            id=data["gap"],
            kind=data.get("kind", "other"),
            file=data.get("file"),
            description=data.get("description", ""),
            evidence=data.get("evidence"),
            check=data.get("check"),
            round=found_in_round,
        )

    @property
    def status(self) -> str:
        return "open" if self.is_open else "closed"


class Criterion(Record):
    """Something that must be true, with the last evidence of its check."""

    name: str = ""
    check: str | None = None
    met: bool = False
    stale: bool = False
    # As in the event, and `seq`.
    evidence: dict[str, Any] | None = None

    @classmethod
    def of(cls, spec: CriterionSpec) -> Criterion:
        return cls(name=spec["name"], check=spec.get("check"), met=spec.get("met", False))

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
        shown = "%s:%s" % (proof["exit_code"], proof.get("likeness")) if proof else ""
        return "%s %s" % (self.met, shown)


class Review(Record):
    """What a review came to; `passed` is None for a light one."""

    passed: bool | None = None
    blockers_remaining: int | None = None
    score: float | None = None
    issues: int | None = None
    blockers: int | None = None

    def facts(self) -> dict[str, Any]:
        """Return its known figures by name."""
        figures = {name: getattr(self, name) for name in ("score", "issues", "blockers")}
        known = {name: value for name, value in figures.items() if value is not None}
        if self.passed is None:
            return known
        return {"passed": self.passed, "blockers_remaining": self.blockers_remaining, **known}


class Rollback(Record):
    """A recorded rollback: the branch that it moves back, and the commit and tag that it leaves."""

    left: str = ""
    head: str = ""
    branch: str = ""


class Note(Record):
    """A note that the agent has not seen yet."""

    seq: int = 0
    text: str = ""
    by: str = ""


class Issue(Record):
    """Something that was noticed beside the task."""

    seq: int = 0
    text: str = ""
    severity: str | None = None
    task: str | None = None


class HookAnswer(Record):
    """The hook's answer to a stop; `notified` is the last event about which the user read a text."""

    seq: int = 0
    ts: str = ""
    blocks: bool = False
    copy: str = ""
    signal: str = ""
    text: str = ""
    notified: int = 0


class SeenSignal(Record):
    """The last signal that was not a stop, and the copy of the hook that recorded it."""

    ts: str = ""
    signal: str = ""
    copy: str = ""


class AllowedStop(Record):
    """The last `stop` event."""

    seq: int = 0
    code: str = ""
    reason: str = ""
