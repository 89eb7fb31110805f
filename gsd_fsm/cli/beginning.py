"""How a planned loop begins: on the right branch, with its plan frozen, its view made, its gate open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_fsm.cli.call import Call, Event
from gsd_fsm.cli.checkpoints import open_gate
from gsd_fsm.cli.planned import asks, waits
from gsd_fsm.cli.planning import Phase, frozen, portions, wanted_plan
from gsd_fsm.cli.voice import counted
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop

if TYPE_CHECKING:
    from gsd_fsm.plans.plan import Plan
    from gsd_fsm.repository.branches import Switch

VIEW = "STATE.md"


class Beginning:
    """A loop that is about to start, with or without a plan."""

    def __init__(self, kind: str, project: Path, found: dict[str, Any], mode: str) -> None:
        self.kind = kind
        self.project = project
        self.found = found
        self.mode = mode
        self.phase: Phase = None
        self.plan: Plan | None = None
        self.switch: Switch | None = None
        self.notes: list[str] = []

    def choose(self, start: Path, name: str | None, phase: Phase) -> None:
        """Find the plan and the branch for it; whatever is missing is told before anything is made."""
        self.plan = wanted_plan(self.kind, start, name, self.project, phase)
        self.phase = phase
        if self.plan is None or self.kind != "execute":
            return
        self.phase = self.plan.phase if phase is None else phase
        self.switch = self._branch()
        if self.phase is not None:
            from gsd_fsm.phase.roadmap import roadmap_warning

            warning = roadmap_warning(self.project, self.phase)
            self.notes += [warning] if warning else []
            if self.plan.phase not in (None, self.phase):
                self.notes.append(f"The plan says that it is of phase {self.plan.phase}.")
        self.notes += self.plan.warnings

    def _branch(self) -> Switch | None:
        if self.found["branching"] != "milestone":
            return None
        from gsd_fsm.plans.find import project_state
        from gsd_fsm.repository.branches import branch_switch
        from gsd_fsm.repository.repo import Repository

        repository = Repository.around(self.project)
        if repository is None:
            return None
        state = project_state(self.project) if (self.project / ".opti-gsd").is_dir() else {}
        return branch_switch(repository, self.found, state.get("milestone"))

    def change_branch(self, start: Path, name: str | None) -> None:
        """In yolo mode go to the milestone's branch at once, and take the plan from there."""
        if self.switch is None or self.mode != "yolo":
            return
        from gsd_fsm.repository.repo import Repository

        repository = Repository.around(self.project)
        branch, self.switch = self.switch, None
        if repository is None:
            return
        before = repository.branch()
        repository.switch(branch.branch, create=not branch.exists)
        try:
            self.plan = wanted_plan(self.kind, start, name, self.project, self.phase)
        except GsdError:
            if before:
                repository.switch(before, create=False)
            raise
        self.notes.append(f"Switched to branch {branch.branch}.")

    def data(self) -> dict[str, Any]:
        """What the start event says of the plan."""
        if self.plan is None:
            return {}
        phase = self.plan.phase if self.phase is None else self.phase
        data: dict[str, Any] = {} if phase is None else {"phase": phase}
        data["plan"] = frozen(self.plan, self.project)
        if self.kind == "execute":
            data["tasks"] = portions(self.plan)[0]
        return data

    def events(self, call: Call, loop: Loop) -> Iterator[Event]:
        """What follows the start: tasks that one line cannot hold, and the first question."""
        specs = portions(self.plan)[1:] if self.plan and self.kind == "execute" else []
        for more in specs:
            yield call.event("plan", loop, {"tasks": more})
        if self.switch is None:
            yield from asks(call, loop)
        else:
            yield waits(call, loop, f"branch:{self.switch.branch}", self.switch.question)

    def finish(self, call: Call, journal: Journal, loop: Loop) -> None:
        """Make the view of a planned loop, and set the checkpoint before its first task."""
        if self.plan is None:
            return
        if self.found["state_md"]:
            path = os.path.join(journal.path, VIEW)
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            with contextlib.suppress(OSError):
                os.close(os.open(path, flags, 0o600))
                journal.transact(lambda _world, _now: [])
        open_gate(call, journal, loop)

    def said(self, loop: Loop) -> str:
        words = [""]
        if self.plan is not None:
            tasks = counted(len(self.plan.tasks), "task")
            words.append(f"Plan: {loop.plan['file']}, {tasks}.")
        words += self.notes
        if loop.question:
            words.append(f"{loop.question} (gsd-fsm --loop {loop.id} answer y)")
        return " ".join(words)

    def facts(self, loop: Loop) -> dict[str, Any]:
        if self.plan is None:
            return {}
        return {"plan": loop.plan["file"], "question": loop.question, "notes": self.notes}
