"""The end of a phase: its last checkpoint, its documents, and what is told of it."""

from __future__ import annotations

from typing import Any

from gsd_fsm.cli.call import Call
from gsd_fsm.cli.checkpoints import set_checkpoint
from gsd_fsm.cli.planned import frozen_plan, project_of, values
from gsd_fsm.cli.voice import warn
from gsd_fsm.core.clock import now_ms, to_iso
from gsd_fsm.core.errors import GsdError
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop import Loop
from gsd_fsm.files import Change, carry_out


class PhaseEnd:
    """The phase of this loop, ended; every step can be taken again after an interruption."""

    def __init__(self, call: Call, journal: Journal, loop: Loop) -> None:
        self.project = project_of(journal)
        self.settings = values(journal)
        self.phase = loop.phase
        self.plan = frozen_plan(self.project, loop)
        self.commits = {name: task["commit"] for name, task in loop.tasks.items()}
        self._changes(loop)  # all that can be wrong is found before the first change
        self.tag = set_checkpoint(call, journal, loop, "post")
        changes = self._changes(loop)  # anew: the checkpoint has moved the view of the loop
        for change in changes:
            carry_out(change)
        self.written = [str(change.path) for change in changes]

    def _changes(self, loop: Loop) -> list[Change]:
        from gsd_fsm.phase.ending import plan_ending

        now = to_iso(now_ms())
        return plan_ending(self.project, self.plan, loop, self.phase, self.commits, now)

    def commit(self) -> None:
        """Commit the documents, where the engine may: once the loop is complete, and its view with it."""
        if not self.settings["commit"]:
            return
        from gsd_fsm.phase.ending import metadata_paths
        from gsd_fsm.repository.messages import metadata_message
        from gsd_fsm.repository.repo import Repository

        try:
            repository = Repository.around(self.project)
            if repository is not None:
                paths = metadata_paths(self.project, self.plan, self.phase)
                repository.commit(paths, metadata_message(self.phase))
        except GsdError as error:
            warn(f"the documents of the phase are not committed: {error.message}")

    def facts(self, loop: Loop) -> dict[str, Any]:
        return {"tag": self.tag, "written": self.written, "report": self.report(loop)}

    def report(self, loop: Loop) -> str:
        from gsd_fsm.phase.ending import ending_notes
        from gsd_fsm.phase.report import final_report

        notes = ending_notes(self.project)
        return final_report(loop, self.plan, self.commits, self.settings, notes=notes)
