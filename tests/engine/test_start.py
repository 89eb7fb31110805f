from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from gsd_fsm.core.errors import CannotWrite, NotFound
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.syscalls import LockedDir
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.effects import Outcome, carry_out
from gsd_fsm.engine.start import StartRequest, start
from gsd_fsm.engine.status import status, status_view
from tests.support.foreign_files import STATE_MD
from tests.support.phases import Impatient
from tests.support.plan_texts import task
from tests.support.repositories import git, new_repository

EXECUTE = StartRequest("execute", phase="1", mode="yolo")
PLAN = "# Phase 1: Parts\n" + task("01") + task("02")
OTHER_PLAN = PLAN + task("03")
WHERE = ".opti-gsd/plans/phase-1/plan.md"
JOURNAL = ".gsd/journal.jsonl"
STATE = ".gsd/STATE.md"
TAKE_BRANCH = "engine.planned.branches.take_branch"


class Killed(BaseException):
    """The process ended at this place."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with a journal, on its base branch; the milestone has a branch."""
    root = new_repository(tmp_path / "project", "-b", "main")
    write(root / ".gsd/config.toml", 'branching = "milestone"\nbase_branch = "main"\n')
    write(root / WHERE, PLAN)
    write(root / ".opti-gsd/state.json", '{"phase": 1, "milestone": "m1"}')
    write(root / ".gitignore", ".gsd/\n")
    commit(root)
    start(Context(root), StartRequest("goal", "first"))
    with Context(root).transaction() as tx:
        tx.append(tx.loops.live()[0], "cancel", {})
    git(root, "branch", "gsd/m1")
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")


def commit_on_milestone(root: Path, name: str, text: str | None) -> None:
    """Write or delete a file on the branch of the milestone."""
    git(root, "checkout", "-q", "gsd/m1")
    if text is None:
        (root / name).unlink()
    else:
        write(root / name, text)
    commit(root)
    git(root, "checkout", "-q", "main")


def branch(root: Path) -> str:
    return git(root, "branch", "--show-current")


def only_live(root: Path) -> Loop:
    (loop,) = Journal(str(root / ".gsd")).read().live()
    return loop


def files(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in paths if path.name != "journal.lock"}


def live_tasks(root: Path) -> tuple[str, list[str]]:
    """Return the status and the tasks of the live loop."""
    loop = only_live(root)
    return loop.status, list(loop.tasks)


@pytest.fixture
def kill_before(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that starts a loop in a process that ends before another function."""

    def start_killed(function: str = TAKE_BRANCH, request: StartRequest = EXECUTE) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(f"gsd_fsm.{function}", Mock(side_effect=Killed))
            with pytest.raises(Killed):
                start(Context(root), request)

    return start_killed


def finish(root: Path) -> Outcome:
    """Carry out the effects as a later command does."""
    context = Context(root)
    return carry_out(context, context.loop(context.read()))


def test_start_in_yolo_mode_switches_after_its_event(root: Path) -> None:
    done = start(Context(root), EXECUTE)
    loop = only_live(root)
    assert (loop.branch, branch(root)) == ("gsd/m1", "gsd/m1")
    assert done.notes == ["Switched to branch gsd/m1."]
    assert list(loop.checkpoints) == ["gsd/checkpoint/phase-1/pre"]
    last = json.loads((root / JOURNAL).read_bytes().splitlines()[-1])
    assert done.receipt.head == f"{last['seq']}:{last['sum']}"


def test_start_with_lock_held_changes_neither_git_nor_files(root: Path) -> None:
    write(root / STATE, STATE_MD)
    before = files(root)
    other = LockedDir(str(root / ".gsd"))
    other.acquire(1)
    with pytest.raises(CannotWrite, match="held by another process"):
        start(Impatient(root), EXECUTE)
    other.release()
    assert (branch(root), files(root)) == ("main", before)


def test_start_pauses_if_git_refuses_the_switch_until_the_loop_is_resumed(root: Path) -> None:
    commit_on_milestone(root, "kept.txt", "of the milestone\n")
    write(root / "kept.txt", "not committed\n")
    loop = start(Context(root), EXECUTE).receipt.loop
    assert (loop.status, loop.pause_code) == ("paused", "blocking")
    reason = loop.pause_reason or ""
    assert reason.startswith("branch gsd/m1 cannot be used: git refused: error: Your local")
    events = (root / JOURNAL).read_bytes()
    assert finish(root) == ([], [])
    assert (root / JOURNAL).read_bytes() == events
    assert (branch(root), git(root, "tag")) == ("main", "")
    git(root, "checkout", "-q", "--", "kept.txt")
    with Context(root).transaction() as tx:
        tx.append(tx.loops.live()[0], "resume", {})
    finish(root)
    assert (branch(root), only_live(root).status) == ("gsd/m1", "running")


@pytest.mark.parametrize("effect", ["take_branch", "_create_state_md", "set_checkpoint"])
def test_start_effects_finish_what_a_kill_left(root: Path, kill_before: Any, effect: str) -> None:
    kill_before(f"engine.planned.branches.{effect}")
    finish(root)
    assert branch(root) == "gsd/m1"
    assert f'started: "{only_live(root).started}"' in (root / STATE).read_text()
    assert git(root, "tag") == "gsd/checkpoint/phase-1/pre"
    assert only_live(root).status == "running"


def test_start_effects_change_nothing_after_work_began(root: Path) -> None:
    start(Context(root), EXECUTE)
    before = files(root)
    assert finish(root) == ([], [])
    assert files(root) == before
    (root / STATE).unlink()
    finish(root)
    assert not (root / STATE).exists()


def test_start_effects_switch_only_from_base_while_branching(root: Path, kill_before: Any) -> None:
    kill_before()
    git(root, "checkout", "-qb", "feature")
    finish(root)
    assert (branch(root), git(root, "tag")) == ("feature", "")
    git(root, "checkout", "-q", "main")
    (root / ".gsd/config.toml").unlink()
    finish(root)
    assert (branch(root), git(root, "tag")) == ("main", "gsd/checkpoint/phase-1/pre")


def test_start_on_another_branch_freezes_no_branch(root: Path) -> None:
    git(root, "checkout", "-qb", "feature")
    assert start(Context(root), EXECUTE).receipt.loop.branch is None
    git(root, "checkout", "-q", "main")
    finish(root)
    assert branch(root) == "main"


@pytest.mark.parametrize("is_shared", [False, True])
def test_start_freezes_the_plan_of_the_branch_that_it_switches_to(
    root: Path, is_shared: bool
) -> None:
    if is_shared:
        write(root / WHERE, OTHER_PLAN)  # local changes are kept
    else:
        commit_on_milestone(root, WHERE, OTHER_PLAN)
    loop = start(Context(root), EXECUTE).receipt.loop
    assert (branch(root), (root / WHERE).read_text()) == ("gsd/m1", OTHER_PLAN)
    assert loop.plan.digest == hashlib.sha256(OTHER_PLAN.encode()).hexdigest()[:16]
    assert live_tasks(root) == ("running", ["T01", "T02", "T03"])


def test_start_refuses_a_branch_without_the_plan_before_any_change(root: Path) -> None:
    commit_on_milestone(root, WHERE, None)
    before = files(root)
    with pytest.raises(NotFound, match="branch gsd/m1 does not have"):
        start(Context(root), EXECUTE)
    assert (branch(root), files(root)) == ("main", before)


def test_start_effects_accept_a_changed_plan_of_the_branch(root: Path, kill_before: Any) -> None:
    kill_before()
    commit_on_milestone(root, WHERE, OTHER_PLAN)
    finish(root)
    assert live_tasks(root) == ("running", ["T01", "T02", "T03"])


def test_start_killed_between_its_events_gets_the_other_tasks_of_its_plan_later(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gsd_fsm.engine.planned.plan.MOST_BYTES", 50)  # one task in each event
    start(Context(root), EXECUTE)
    lines = (root / JOURNAL).read_bytes().splitlines(keepends=True)
    (first,) = [at for at, line in enumerate(lines) if b'"kind":"execute"' in line]
    (root / JOURNAL).write_bytes(b"".join(lines[: first + 1]))
    assert live_tasks(root) == ("running", ["T01"])
    context = Context(root)
    status(context)
    assert "unfinished: tasks of the plan, " in context.notices[0]
    finish(root)
    assert live_tasks(root) == ("running", ["T01", "T02"])


def test_start_in_interactive_mode_asks_for_the_branch_and_creates_state_md(root: Path) -> None:
    loop = start(Context(root), StartRequest("execute", phase="1", mode="interactive")).receipt.loop
    assert (loop.status, loop.asked, loop.branch) == ("waiting", "branch:gsd/m1", None)
    assert branch(root) == "main"
    assert (root / STATE).read_text().startswith("---\nloop:\n")


def test_start_killed_before_its_views_saves_state_md_later(root: Path, kill_before: Any) -> None:
    write(root / STATE, STATE_MD)
    kill_before("core.views.write.project", StartRequest("goal", "g"))
    loop = only_live(root)
    with Context(root).transaction() as tx:
        tx.append(tx.loops.by_id[loop.id], "note", {"text": "more"})
    assert (root / f"{STATE}.before-{loop.id}").read_text() == STATE_MD
    assert loop.started in (root / STATE).read_text()


def test_start_in_a_new_project_creates_nothing_if_its_event_is_refused(tmp_path: Path) -> None:
    tasks = tuple(f"T{number}:title" for number in range(3_000))
    with pytest.raises(Exception, match="but a line may have at most"):
        start(Context(tmp_path), StartRequest("execute", tasks=tasks))
    assert list(tmp_path.iterdir()) == []


def test_start_freezes_the_request_with_nothing_met_or_counted(tmp_path: Path) -> None:
    goal = StartRequest("goal", "g", criteria=("c",), steps=("one",), fresh=True)
    for most in (10, 25, 50, 0):
        request = goal._replace(max_iterations=most, session_only=True)
        loop = start(Context(tmp_path), request).receipt.loop
        assert (loop.limits.max_iterations, loop.session_only) == (most, True)
        assert not loop.limits.budget_usd
    for budget in (10, 25, 50):
        loop = start(Context(tmp_path), goal._replace(budget=budget)).receipt.loop
        assert loop.limits.budget_usd == budget
    view = status_view(loop, "1:0")
    assert (view["status"], view["criteria"][0]["met"], view["exit_signal"]) == (
        "running",
        False,
        False,
    )
    assert (view["iteration"], view["stuck"], view["last_unmet"]) == (0, 0, None)
