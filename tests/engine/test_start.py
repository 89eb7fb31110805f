from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from gsd_fsm.core.errors import CannotWrite, NotFound
from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.effects import Outcome, carry_out
from gsd_fsm.engine.start import StartRequest, start
from gsd_fsm.engine.status import status, status_view
from tests.support.events import new_journal
from tests.support.foreign_files import STATE_MD
from tests.support.phases import Impatient
from tests.support.plan_texts import task
from tests.support.repositories import git, new_repository
from tests.support.verification import lay

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
    state = '{"phase": 1, "milestone": "m1"}'
    lay(root, {WHERE: PLAN, ".opti-gsd/state.json": state, ".gitignore": ".gsd/\n"})
    commit(root)
    git(root, "branch", "gsd/m1")
    new_journal(root / ".gsd")
    lay(root, {".gsd/config.toml": 'branching = "milestone"\nbase_branch = "main"\n'})
    return root


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")


@contextmanager
def on_milestone(root: Path) -> Iterator[None]:
    """Commit changes on the branch of the milestone."""
    git(root, "checkout", "-q", "gsd/m1")
    yield
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


def start_killed(root: Path, before: str = TAKE_BRANCH, request: StartRequest = EXECUTE) -> None:
    """Start a loop in a process that ends before this function."""
    with patch(f"gsd_fsm.{before}", side_effect=Killed), pytest.raises(Killed):
        start(Context(root), request)


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
    lay(root, {STATE: STATE_MD})
    before = files(root)
    with Journal(str(root / ".gsd")).transaction(Author("cli")), pytest.raises(CannotWrite):
        start(Impatient(root), EXECUTE)
    assert (branch(root), files(root)) == ("main", before)


def test_start_pauses_if_git_refuses_the_switch_until_the_loop_is_resumed(root: Path) -> None:
    lock = root / ".git" / "index.lock"
    lock.touch()
    loop = start(Context(root), EXECUTE).receipt.loop
    assert (loop.status, loop.pause_code) == ("paused", "blocking")
    assert (loop.pause_reason or "").startswith("branch gsd/m1 cannot be used: git refused: fatal")
    lock.unlink()
    assert finish(root) == ([], [])
    assert (branch(root), git(root, "tag")) == ("main", "")
    with Context(root).transaction() as tx:
        tx.append(tx.loops.live()[0], "resume", {})
    finish(root)
    assert (branch(root), only_live(root).status) == ("gsd/m1", "running")


@pytest.mark.parametrize("effect", ["take_branch", "_create_state_md", "set_checkpoint"])
def test_start_effects_finish_what_a_kill_left(root: Path, effect: str) -> None:
    start_killed(root, f"engine.planned.branches.{effect}")
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


def test_start_effects_switch_only_from_base_while_branching(root: Path) -> None:
    start_killed(root)
    git(root, "checkout", "-qb", "feature")
    finish(root)
    assert (branch(root), git(root, "tag")) == ("feature", "")
    git(root, "checkout", "-q", "main")
    (root / ".gsd/config.toml").unlink()
    finish(root)
    assert (branch(root), git(root, "tag")) == ("main", "gsd/checkpoint/phase-1/pre")


def test_start_on_another_branch_freezes_no_branch(root: Path) -> None:
    git(root, "checkout", "-qb", "feature")
    loop = start(Context(root), EXECUTE).receipt.loop
    lines = (root / ".gsd/journal.jsonl").read_text().splitlines()
    begun, first = (json.loads(line)["data"] for line in lines if loop.id in line)
    assert ("branch" in begun, first["branch"]) == (False, "feature")
    git(root, "checkout", "-q", "main")
    finish(root)
    assert branch(root) == "main"


@pytest.mark.parametrize("is_shared", [False, True])
def test_start_freezes_the_plan_of_its_new_branch(root: Path, is_shared: bool) -> None:
    with nullcontext() if is_shared else on_milestone(root):  # a shared plan may be changed here
        (root / WHERE).write_text(OTHER_PLAN)
    loop = start(Context(root), EXECUTE).receipt.loop
    assert (branch(root), (root / WHERE).read_text()) == ("gsd/m1", OTHER_PLAN)
    assert loop.plan.digest == hashlib.sha256(OTHER_PLAN.encode()).hexdigest()[:16]
    assert (loop.status, list(loop.tasks)) == ("running", ["T01", "T02", "T03"])


def test_start_refuses_a_branch_without_the_plan_before_any_change(root: Path) -> None:
    with on_milestone(root):
        (root / WHERE).unlink()
    before = files(root)
    with pytest.raises(NotFound, match="branch gsd/m1 does not have"):
        start(Context(root), EXECUTE)
    assert (branch(root), files(root)) == ("main", before)


def test_start_effects_accept_a_changed_plan_of_the_branch(root: Path) -> None:
    start_killed(root)
    with on_milestone(root):
        (root / WHERE).write_text(OTHER_PLAN)
    finish(root)
    assert list(only_live(root).tasks) == ["T01", "T02", "T03"]


def test_start_killed_between_its_events_adds_its_other_tasks_later(root: Path) -> None:
    with patch("gsd_fsm.engine.planned.plan.MOST_BYTES", 70):  # one task in each event
        start(Context(root), EXECUTE)
    lines = (root / JOURNAL).read_bytes().splitlines(keepends=True)
    (first,) = [at for at, line in enumerate(lines) if b'"kind":"execute"' in line]
    (root / JOURNAL).write_bytes(b"".join(lines[: first + 1]))
    assert list(only_live(root).tasks) == ["T01"]
    context = Context(root)
    status(context)
    assert "unfinished: tasks of the plan, " in context.notices[0]
    finish(root)
    assert list(only_live(root).tasks) == ["T01", "T02"]


def test_start_killed_before_its_views_saves_state_md_later(root: Path) -> None:
    lay(root, {STATE: STATE_MD})
    start_killed(root, "core.views.write.project", StartRequest("goal", "g"))
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
    for request in (goal._replace(max_iterations=25, budget=10), goal._replace(max_iterations=0)):
        loop = start(Context(tmp_path), request._replace(session_only=True)).receipt.loop
        limits = (loop.limits.max_iterations, loop.limits.budget_usd or None)
        assert limits == (request.max_iterations, request.budget)
        assert loop.session_only
    view = status_view(loop, "1:0")
    flags = (view["criteria"][0]["met"], view["exit_signal"], view["last_unmet"])
    assert flags == (False, False, None)
    assert (view["status"], view["iteration"], view["stuck"]) == ("running", 0, 0)
