"""The files in `.loop/`: each is exactly what other programs expect, of the one loop it shows."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.events import draft
from gsd_fsm.core.journal import Journal
from gsd_fsm.core.loop_views import LOOP_FILES, sheets, state, workflow_state
from gsd_fsm.core.progress_md import progress
from gsd_fsm.tree import content_tree
from tests import git_rig
from tests.cli.conftest import A, B, Here, here
from tests.conftest import new_journal, start_draft
from tests.git_rig import git
from tests.hook_rig import HOOK, HookProject, run_hook
from tests.story import Story

__all__ = ["here"]
_isolated_git, repo = git_rig._isolated_git, git_rig.repo  # fixtures
VIEWS = list(LOOP_FILES)
WORKFLOW_STATE = {
    "version": 1,
    "stage": "executing",
    "task": "original user request",
    "spec_score": 7,
    "fit_score": 35,
    "shape_chosen": "tool-review",
    "started_at": "2026-02-05T10:00:00Z",
    "last_updated": "2026-02-05T10:15:00Z",
    "recall_surfaced": ["auth edge cases", "validation patterns"],
    "reviews": {
        "wave_1": {"score": 8, "issues": 2, "blockers": 0},
        "wave_2": {"score": 7, "issues": 3, "blockers": 1},
        "thorough": {"passed": False, "blockers_remaining": 1},
    },
}
STATE = {
    "spec": "original user request verbatim",
    "criteria": ["tests pass", "lint clean", "no type errors"],
    "criteriaStatus": {"tests pass": False, "lint clean": True, "no type errors": False},
    "exit_signal": False,
    "steps": ["step1", "step2", "step3"],
    "completedSteps": ["step1"],
    "remainingSteps": ["step2", "step3"],
    "iteration": 2,
    "status": "in_progress",
    "circuitBreaker": {"stuckCount": 0, "lastUnmet": "tests pass"},
}


def goal(**start: Any) -> Story:
    return Story("goal", **{"goal": "Be done", "views": VIEWS, **start})


@pytest.fixture
def taken_over() -> Story:
    """A loop that another tool began, just taken over in one append."""
    times = {"started": "2026-02-05T10:00:00.000Z", "updated": "2026-02-05T10:15:00.000Z"}
    story = goal(goal="original user request", carried=times)
    words: list[tuple[str, dict[str, Any]]] = [
        *(("stage", {"stage": stage}) for stage in ("intent", "shape", "decompose", "executing")),
        ("score", {"spec_score": 7, "fit_score": 35, "shape": "tool-review"}),
        *(("note", {"kind": "recall", "text": t}) for t in WORKFLOW_STATE["recall_surfaced"]),  # type: ignore[attr-defined]
        ("review", {"action": "begun"}),
        ("review", {"action": "failed", "blockers": 1}),
        ("review", {"action": "light", "wave": 2, "score": 7, "issues": 3, "blockers": 1}),
        ("review", {"action": "light", "wave": 1, "score": 8, "issues": 2, "blockers": 0}),
    ]
    for kind, data in words:
        story(kind, **data, _after=0)
    return story


def test_the_workflow_state_has_exactly_its_members_in_their_order(taken_over: Story) -> None:
    shown = workflow_state(taken_over.loop)
    assert json.dumps(shown) == json.dumps(WORKFLOW_STATE)


def test_it_was_last_updated_by_the_last_event_once_there_is_one(taken_over: Story) -> None:
    taken_over("note", text="on", _after=1234)
    shown = workflow_state(taken_over.loop)
    assert shown["started_at"] == "2026-02-05T10:00:00Z"
    assert shown["last_updated"] == taken_over.loop.last_event == "2026-11-15T23:00:03.234Z"


def test_what_is_not_known_is_null_and_a_loop_without_stages_executes() -> None:
    shown = workflow_state(goal().loop)
    assert [shown[name] for name in ("spec_score", "fit_score", "shape_chosen")] == [None] * 3
    assert (shown["stage"], shown["recall_surfaced"], shown["reviews"]) == ("executing", [], {})
    assert shown["started_at"] == shown["last_updated"] == "2026-11-15T23:00:02Z"


def test_the_state_has_exactly_its_members_in_their_order() -> None:
    criteria = [{"name": n, "met": m} for n, m in STATE["criteriaStatus"].items()]  # type: ignore[attr-defined]
    steps = [{"id": f"S{n}", "title": f"step{n}", "step": True} for n in (1, 2, 3)]
    steps[0]["status"] = "complete"
    told = {"iteration": 2, "stuck": 0, "last_unmet": "tests pass"}
    loop = goal(goal=STATE["spec"], criteria=criteria, tasks=steps, carried=told).loop
    assert json.dumps(state(loop)) == json.dumps(STATE)


def test_without_steps_the_tasks_are_the_steps_and_a_skipped_one_is_done() -> None:
    story = goal(tasks=[{"id": "T1", "title": "one"}, {"id": "T2"}, {"id": "T3", "title": "three"}])
    story.task("T1", "skipped")
    story.task("T2", "running")
    shown = state(story.loop)
    assert shown["steps"] == ["one", "T2", "three"]
    assert (shown["completedSteps"], shown["remainingSteps"]) == (["one"], ["T2", "three"])
    assert shown["circuitBreaker"] == {"stuckCount": 0, "lastUnmet": ""}
    story("task", task="T4", status="pending", title="four")
    assert state(story.loop)["remainingSteps"] == ["T2", "three", "four"]


@pytest.mark.parametrize("ending", ["completed", "cancelled"])
def test_both_tell_how_it_ended(ending: str) -> None:
    story = goal()
    story("exit")
    story("pause", code="manual")
    assert state(story.loop)["status"] == "in_progress"
    story("resume")
    story("complete" if ending == "completed" else "cancel")
    assert (state(story.loop)["status"], state(story.loop)["exit_signal"]) == (ending, True)
    stage = "complete" if ending == "completed" else "executing"
    assert workflow_state(story.loop)["stage"] == stage


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(texts, st.lists(texts, unique=True, max_size=3), st.sampled_from([8, 7.5, 0.1, 1e22]))
def test_the_files_are_the_json_that_the_standard_library_writes(
    text: str, names: list[str], score: float
) -> None:
    story = goal(goal=text, criteria=[{"name": name} for name in names])
    story("note", kind="recall", text=text)
    if score < 1 << 53:
        story("review", action="light", wave=1, score=score)
    shown = {sheet.name: sheet.data.decode() for sheet in sheets(story.world)}
    for name, value in (("workflow-state.json", workflow_state), ("state.json", state)):
        wanted = json.dumps(value(story.loop), indent=2, ensure_ascii=False) + "\n"
        assert shown[name] == wanted
        assert json.loads(shown[name]) == value(story.loop)


# the files


class Shown:
    """A project in which loops begin, go on and end, and the files that show them."""

    def __init__(self, root: Path) -> None:
        self.root, self.place = root, root / ".loop"
        new_journal(root / ".gsd")

    def tell(self, *drafts: dict[str, Any]) -> None:
        Journal(str(self.root / ".gsd")).transact(lambda _world, _now: drafts)

    def start(self, loop: str = "lp-1", *, owner: str = "s", **data: Any) -> None:
        data = {"goal": f"Goal of {loop}", "views": VIEWS, **data}
        self.tell({**start_draft(loop, "goal", **data), "session": owner + loop})

    def iterate(self, loop: str = "lp-1") -> None:
        self.tell(draft("iteration", loop, "hook", {}))

    def cancel(self, loop: str = "lp-1") -> None:
        self.tell(draft("cancel", loop, "human", {}))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir()) if self.place.exists() else []

    def assert_shows(self, loop_id: str) -> None:
        """Every file is that of this loop, to the byte."""
        loop = Journal(str(self.root / ".gsd")).read().loops[loop_id]
        assert json.loads((self.place / "state.json").read_text("utf-8")) == state(loop)
        workflow = json.loads((self.place / "workflow-state.json").read_text("utf-8"))
        assert workflow == workflow_state(loop)
        assert (self.place / "PROGRESS.md").read_text("utf-8") == progress(loop)


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "p")


FILES = sorted(name for name, _ in LOOP_FILES.values())


def test_every_append_keeps_them_current_from_the_first_to_the_last(shown: Shown) -> None:
    shown.start()
    assert stat.S_IMODE(shown.place.stat().st_mode) & 0o700 == 0o700
    for step in (shown.iterate, shown.iterate, shown.cancel):
        shown.assert_shows("lp-1")
        step()
    shown.assert_shows("lp-1")
    assert shown.names() == FILES
    assert json.loads((shown.place / "state.json").read_text())["status"] == "cancelled"


@pytest.mark.parametrize("views", [[], ["report", "status-block"]])
def test_without_a_view_nothing_is_made(shown: Shown, views: list[str]) -> None:
    shown.start(views=views)
    shown.iterate()
    shown.cancel()
    assert not shown.place.exists()


def test_only_the_views_that_are_wanted_are_made_and_only_for_goals(shown: Shown) -> None:
    shown.tell({**start_draft("lp-0", "execute", views=VIEWS), "session": "z"})
    assert not shown.place.exists()
    shown.start(views=["state"])
    assert shown.names() == ["state.json"]


def test_they_show_the_live_loop_that_was_started_last(shown: Shown) -> None:
    shown.start("lp-1")
    shown.start("lp-2")
    shown.iterate("lp-1")
    shown.assert_shows("lp-2")
    shown.cancel("lp-2")
    shown.assert_shows("lp-1")
    shown.cancel("lp-1")
    shown.assert_shows("lp-1")
    assert shown.names() == FILES


def test_a_file_is_not_written_without_need(shown: Shown) -> None:
    shown.start()
    (shown.place / "state.json").chmod(0o640)
    shown.iterate()
    before = (shown.place / "state.json").stat()
    assert stat.S_IMODE(before.st_mode) == 0o640
    shown.tell(draft("note", "lp-1", "agent", {"text": "changes nothing that is shown there"}))
    after = (shown.place / "state.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    shown.assert_shows("lp-1")


def test_the_commands_follow_the_settings(here: Here) -> None:
    here.gsd.mkdir()
    (here.gsd / "config.toml").write_text('views = ["state"]\n')
    here.start("goal", "Be done", "--criterion", "one", env=A)
    here.ok("criterion", "one", "met", env=A)
    kept = here.root / ".loop" / "state.json"
    assert json.loads(kept.read_text())["criteriaStatus"] == {"one": True}
    here.ok("exit-signal", env=A)
    here.ok("complete", env=A)
    assert json.loads(kept.read_text())["status"] == "completed"
    (here.gsd / "config.toml").write_text("views = []\n")
    here.start("goal", "Something else", env=B)
    assert json.loads(kept.read_text())["spec"] == "Be done"


def test_the_hook_keeps_them_current_and_pays_for_it_only_where_they_are(tmp_path: Path) -> None:
    hook = Path(shutil.copy(HOOK, tmp_path))
    kept = tmp_path / "__pycache__"
    for views, parts in (([], {"entry", "rest"}), (VIEWS, {"entry", "rest", "view"})):
        project = HookProject(tmp_path / f"project{len(views)}", views=views)
        run_hook(project.signal(), hook=hook)
        assert {path.name.split("_")[3] for path in kept.iterdir()} == parts
    file = project.root / ".loop" / "state.json"
    assert json.loads(file.read_text())["iteration"] == 1
    project.tell("criterion", criterion="one", met=True)
    run_hook(project.signal(last_assistant_message="<loop-complete>all</loop-complete>"))
    assert json.loads(file.read_text())["status"] == "completed"
    assert sorted(path.name for path in file.parent.iterdir()) == FILES


def test_evidence_does_not_go_stale_because_a_view_has_changed(repo: Path) -> None:
    before = content_tree(repo)
    for folder in (repo / ".loop", repo / "sub" / ".loop"):
        folder.mkdir()
        for name in (*FILES, "state.json.new", "PROGRESS.md.before-lp-1"):
            (folder / name).write_text("one")
    assert content_tree(repo) == before
    git(repo, "add", "-A")
    (repo / ".loop" / "state.json").write_text("two")
    assert content_tree(repo) == before
    for name in ("state.json.bak", "notes.md", "sub.json"):
        (repo / ".loop" / name).write_text("one")
        assert content_tree(repo) != before
        (repo / ".loop" / name).unlink()
    (repo / "state.json").write_text("one")
    assert content_tree(repo) != before
