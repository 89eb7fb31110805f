"""The `import` command: the loop of another tool continues, and its file is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from gsd_fsm.config.settings import user_file
from gsd_fsm.core.project import state_directory
from gsd_fsm.imports.load import MAX_BYTES
from tests.support.command_line import A, B, Here
from tests.support.events import write
from tests.support.foreign_files import PHASE_STATE, RALPH, STATE, STATE_MD, TASK, WORKFLOW
from tests.support.hook_agent import Agent
from tests.support.plan_loops import TITLE, report_complete, write_plan
from tests.support.plan_texts import task
from tests.support.repositories import git

FILES = {
    ".gsd/STATE.md": ("state-md", STATE_MD),
    ".loop/workflow-state.json": ("workflow-state", json.dumps(WORKFLOW)),
    ".loop/state.json": ("state", json.dumps(STATE)),
    ".claude/ralph-loop.local.md": ("ralph", RALPH),
    ".opti-gsd/state.json": ("phase-state", PHASE_STATE),
    "tasks/1.json": ("task", TASK),
}
FOUND = [name for name in FILES if name not in {".gsd/STATE.md", "tasks/1.json"}]


def put(here: Here, name: str, content: str) -> Path:
    path = here.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


@pytest.mark.parametrize("name", FILES)
def test_import_continues_a_loop_of_each_format(here: Here, name: str) -> None:
    form, content = FILES[name]
    path = put(here, name, content)
    answer = here.ok("import", name, "--json").json
    assert (path.read_text() == content) == (name != ".gsd/STATE.md")
    is_shown = name in {".gsd/STATE.md", ".opti-gsd/state.json"}
    assert (f"{name} is not changed." in answer["notes"]) != is_shown
    assert list(answer) == ["loop", "seq", "status", "head", "format", "notes"]
    assert any(f"Disable the hook of the tool that wrote {name}" in n for n in answer["notes"])
    status = here.status()
    assert all(status[member] == answer[member] for member in ("loop", "status", "head"))
    assert answer["head"] == f"{answer['seq']}:{here.last()['sum']}"
    carried = here.lines()[1]["data"]["carried"]
    assert (carried["from"], carried["file"], answer["format"]) == (form, name, form)
    here.ok("iterate")
    assert here.status()["iteration"] == status["iteration"] + 1
    here.ok("replay", "--strict")
    here.ok("fsck")


@pytest.mark.parametrize("name", FOUND)
def test_start_notes_a_live_loop_of_another_tool(here: Here, name: str) -> None:
    put(here, name, FILES[name][1])
    note = f"{name} has a live loop. To import it, run: gsd-fsm import {name}"
    assert here.ok("start", "goal", "g", "--json").json["notes"] == [note]
    put(here, name, "{}")
    assert here.ok("start", "goal", "g", "--fresh", "--json").json["notes"] == []


@pytest.mark.parametrize("name", FILES)
def test_import_dry_run_shows_the_events_and_writes_nothing(here: Here, name: str) -> None:
    put(here, name, FILES[name][1])
    dry = here.ok("import", name, "--dry-run", "--json").json
    lines = here.ok("import", name, "--dry-run").out.splitlines()
    assert not here.journal.exists()
    assert not Path(state_directory()).exists()
    types = [line.split(" ")[0] for line in lines if not line.startswith("- ")]
    assert types == [event["type"] for event in dry["events"]]
    done = here.ok("import", name, "--json").json
    events = [{"type": event["type"], "data": event["data"]} for event in here.lines()[1:]]
    assert dry == {"format": FILES[name][0], "events": events, "notes": done["notes"]}


def test_import_of_state_md_makes_it_a_view_and_saves_unknown_members(here: Here) -> None:
    text = STATE_MD.replace("  history:", "  my_notes: keep me\n  history:")
    path = put(here, ".gsd/STATE.md", text)
    assert ".gsd/STATE.md shows this loop from now on" in here.ok("import", ".gsd/STATE.md").out
    shown = path.read_text()
    for line in ("milestone: v1", "  iteration: 4", "  max_iterations: 30", "# State"):
        assert f"\n{line}\n" in shown
    assert "my_notes" not in shown
    assert (here.gsd / f"STATE.md.before-{here.status()['loop']}").read_text() == text


def test_import_of_a_configured_view_keeps_its_content(here: Here) -> None:
    name = ".loop/state.json"
    state = put(here, name, json.dumps(STATE))
    here.configure(views=["state"])
    assert "shows this loop from now on" in here.ok("import", name).out
    assert json.loads(state.read_text()) == STATE
    loop = here.start("goal", "another", "--fresh")
    message = f"{name} is a view of live loop {loop} (running)"
    assert message in here.refused(4, "import", name, env=B).err


def test_import_of_the_same_file_is_refused_while_its_loop_is_live(here: Here) -> None:
    name = ".loop/state.json"
    put(here, name, json.dumps(STATE))
    loop = here.ok("import", name, "--json", env=A).json["loop"]
    assert here.status()["owner"] == "session-a"
    message = f"{name} was already imported as live loop {loop} (running)"
    for arguments, env in (([name], B), ([f"./.loop/../{name}"], A), ([name, "--fresh"], B)):
        assert message in here.refused(4, "import", *arguments, env=env).err
    here.ok("--loop", loop, "cancel")
    here.ok("import", name, env=B)


@pytest.mark.parametrize("kept", [1, 2, 3, 5])
def test_import_that_was_interrupted_can_be_repeated(here: Here, kept: int) -> None:
    name = ".loop/workflow-state.json"
    put(here, name, FILES[name][1])
    here.ok("import", name)
    whole = here.status()
    lines = here.journal.read_bytes().splitlines(keepends=True)
    here.journal.write_bytes(b"".join(lines[: 1 + kept]))
    assert "Cancelled loop" in here.ok("import", name).out
    again = here.status()
    for fact in ("status", "stage", "spec_score", "fit_score", "shape", "reviews"):
        assert again[fact] == whole[fact]


def test_import_is_refused_while_loops_are_disabled_or_the_journal_is_untrusted(here: Here) -> None:
    put(here, "a.json", json.dumps(STATE))
    stop = put(here, ".gsd/STOP", "")
    assert "all loops are disabled by" in here.refused(4, "import", "a.json").err
    assert not here.journal.exists()
    here.ok("import", "a.json", "--dry-run")
    stop.unlink()
    here.start("goal", "g")
    here.ok("cancel")
    for entry in Path(state_directory(), "journals").iterdir():
        entry.unlink()
    assert "not trusted" in here.refused(6, "import", "a.json").err


def test_import_takes_limits_from_the_file_then_the_settings(here: Here) -> None:
    limits = {"execute_max_retries": 9, "budget_usd": 2.5}
    here.configure(max_iterations=7, mode="yolo", counsel="Think.", **limits)
    put(here, "ralph.md", RALPH)
    here.ok("import", "ralph.md")
    start = here.last()["data"]
    limits = {"max_iterations": 20, "max_retries": 9, "budget_usd": 2.5}
    assert limits.items() <= start["limits"].items()
    assert (start["mode"], start["counsel"]) == ("yolo", "Think.")
    put(here, "state.json", json.dumps(STATE))
    here.ok("import", "state.json", "--fresh")
    assert here.last()["data"]["limits"]["max_iterations"] == 7


def test_import_notes_a_used_up_limit_and_the_command_that_raises_it(here: Here) -> None:
    put(here, "a.json", json.dumps({**STATE, "iteration": 25}))
    note = here.ok("import", "a.json", "--json").json["notes"][-1]
    assert note.startswith("A limit is already used up: ")
    assert "--add-iterations 15" in note
    assert here.run("iterate").code == 4
    assert here.status()["pause_code"] == "iterations"
    here.ok(*note.partition("To continue: gsd-fsm ")[2].split(" "))
    here.ok("iterate")


def test_hook_continues_the_count_of_an_imported_loop(here: Here, agent: Agent) -> None:
    put(here, "ralph.md", RALPH)
    agent.do("import ralph.md")
    assert "iteration 4/20" in agent.blocked()
    assert here.status()["last_unmet"] == "ALL DONE"
    assert "criterion not met: ALL DONE" in here.run("complete").err
    agent.do("criterion 1 met", "exit-signal", "complete")
    assert here.status()["status"] == "completed"


def test_import_with_gaps_turns_auto_loop_on(here: Here) -> None:
    here.configure(auto_loop=False)
    text = STATE_MD.replace("execute", "verify").replace("gaps_remaining: 0", "gaps_remaining: 2")
    put(here, "a.md", text)
    answer = here.ok("import", "a.md", "--json").json
    assert answer["status"] == "fixing"
    assert any(note.startswith("auto_loop is off in the settings") for note in answer["notes"])


def test_start_does_not_note_views_of_its_own_loops_or_an_imported_file(here: Here) -> None:
    name = ".loop/state.json"
    put(here, name, json.dumps(STATE))
    here.ok("import", name)
    assert here.ok("start", "goal", "h", "--fresh", "--json").json["notes"] == []
    (here.root / name).unlink()
    here.configure(views=["state", "workflow-state"])
    here.ok("start", "goal", "g", env=A)
    assert (here.root / name).exists()
    assert here.ok("start", "goal", "h", "--json", env=B).json["notes"] == []


def test_start_saves_the_state_md_of_another_tool(here: Here) -> None:
    put(here, ".gsd/STATE.md", STATE_MD)
    answer = here.ok("start", "goal", "g", "--json").json
    kept = f".gsd/STATE.md.before-{answer['loop']}"
    assert (here.root / kept).read_text() == STATE_MD
    (note,) = answer["notes"]
    assert note == (
        f".gsd/STATE.md showed a live loop of another tool; the file was saved as {kept}. "
        f"To import that loop, run: gsd-fsm import {kept}"
    )
    here.ok("start", "goal", "g", "--fresh")
    assert len(list(here.gsd.glob("STATE.md*"))) == 2
    here.ok("cancel")
    assert here.ok("import", kept, "--json").json["format"] == "state-md"
    assert here.status()["task_retries"] == {"T02": 2, "T05": 1}


@pytest.mark.parametrize("command", ["start goal g", "import .gsd/STATE.md"])
def test_state_md_that_cannot_be_saved_is_reported_and_kept(here: Here, command: str) -> None:
    here.ok("start", "goal", "before")
    here.ok("cancel")
    path = put(here, ".gsd/STATE.md", STATE_MD)
    with here.patch.context() as patch:
        full = Mock(side_effect=OSError(28, "no space"))
        patch.setattr("gsd_fsm.core.views.write.sync", full)
        answer = here.ok(*command.split(), "--json").json
    reported = "still shows a live loop of another tool: it cannot be replaced"
    assert (reported in answer["notes"][0]) == command.startswith("start")
    assert (path.read_text(), list(here.gsd.glob("STATE.md.*"))) == (STATE_MD, [])
    here.ok("note", "the disk has room again")
    assert (here.gsd / f"STATE.md.before-{answer['loop']}").read_text() == STATE_MD
    assert path.read_text() != STATE_MD


def test_imported_workflow_takes_criteria_from_its_shape(here: Here) -> None:
    put(here, ".loop/workflow-state.json", json.dumps(WORKFLOW))
    put(here, ".loop/shape/SHAPE.md", "## Criteria\n- Validation is there\n")
    notes = here.ok("import", ".loop/workflow-state.json", "--json").json["notes"]
    (note,) = (note for note in notes if "SHAPE.md" in note)
    command = note.partition("run: ")[2].replace("FILE", ".loop/shape/SHAPE.md")
    here.ok(*command.split()[1:])
    assert here.status()["last_unmet"] is None
    assert [c["name"] for c in here.status()["criteria"]] == ["Validation is there"]


def test_import_of_a_bad_file_reports_every_problem_and_creates_nothing(here: Here) -> None:
    os.mkfifo(here.root / "pipe")
    (here.root / "big").write_bytes(b" " * (MAX_BYTES + 1))
    assert "not a regular file" in here.refused(2, "import", "pipe").err
    assert "larger than 1 MiB" in here.refused(2, "import", "big").err
    here.refused(3, "import", "nowhere/state.json")
    steps = [f"{number:04} {'x' * 400}" for number in range(300)]
    much = {**STATE, "steps": steps, "completedSteps": [], "remainingSteps": steps}
    put(here, "a.json", json.dumps(much))
    assert "but a line may have at most" in here.refused(2, "import", "a.json").err
    put(here, "a.json", json.dumps({**STATE, "iteration": -1, "exit_signal": True}))
    message = here.refused(2, "import", "a.json").err
    assert "gsd-fsm: a.json: exit_signal is true" in message
    assert "\na.json: iteration must be " in message
    assert "→ Fix the file" in message
    assert not here.gsd.exists()


def test_import_of_a_file_outside_the_project_names_its_path(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(STATE))
    assert f"Imported {path} as goal loop" in here.ok("import", str(path)).out


def test_import_follows_a_link_and_shows_its_target_on_one_line(here: Here) -> None:
    (here.root / "a\nb.json").write_text(json.dumps(STATE))
    (here.root / "here.json").symlink_to("a\nb.json")
    assert "Imported a\\u{a}b.json as goal loop" in here.ok("import", "here.json").out


PLANNED = """\
{ "milestone": "v1", "task": 2, "phase": 1,
  "loop": {"active": true, "type": "execute", "phase": 1, "wave": 1, "mood": "fine",
           "background_tasks": [{"task_id": "abc123", "task_num": 2, "status": "running"}],
           "task_retries": {"T01": 0, "T02": 1}, "last_error": "Type error in auth.ts",
           "started": "2026-01-19T10:30:00", "max_iterations": 30, "iteration": 4}
}
"""


def planned(repository: Here, text: str = PLANNED, *commits: str) -> Path:
    """Write a plan of phase 1, this state and these commits; return the path of the state."""
    write_plan(repository, where=".opti-gsd/plans/phase-1/plan.md")
    for subject in commits:
        git(repository.root, "commit", "-q", "--allow-empty", "-m", subject)
    return put(repository, ".opti-gsd/state.json", text)


def test_import_of_a_phase_follows_its_plan_and_proves_what_was_counted(repository: Here) -> None:
    text = PLANNED.replace('"task": 2', '"task": 1')
    state = planned(repository, text, "feat(1-01): it")
    answer = repository.ok("import", ".opti-gsd/state.json", "--mode", "yolo", "--json").json
    assert state.read_text() == text
    status = repository.status()
    commit = git(repository.root, "rev-parse", "HEAD")
    facts = [
        (it["id"], it["status"], it["commit"], it["ref"], it["retries"]) for it in status["tasks"]
    ]
    assert facts == [
        ("T01", "reported", commit, None, 0), ("T02", "running", None, "abc123", 1),
        ("T03", "pending", None, None, 0), ("T04", "pending", None, None, 0),
    ]  # fmt: skip
    expected = {"kind": "execute", "phase": 1, "wave": 1, "iteration": 4, "max_iterations": 30,
                "last_error": "Type error in auth.ts", "started": "2026-01-19T10:30:00.000Z",
                "background_tasks": [{"task_id": "abc123", "task_num": "T02", "status": "running"}]}  # fmt: skip
    assert {name: status[name] for name in expected} == expected
    assert "Not imported: loop.mood." in answer["notes"]
    assert repository.run("check").code == 7  # 01.py is missing: the commit alone proves nothing
    assert json.loads(state.read_text())["task"] == 0
    report_complete(repository, "T02")
    for name in ("T01", "T03", "T04"):
        report_complete(repository, name)
    repository.ok("complete")
    repository.ok("replay", "--strict")
    ended = json.loads(state.read_text())
    assert (ended["task"], ended["phases_complete"], ended["loop"]["active"]) == (None, [1], False)
    assert (ended["milestone"], ended["loop"]["mood"]) == ("v1", "fine")


def test_import_compares_no_file_that_was_modified_before_it(repository: Here) -> None:
    modifies = (
        task("01")
        .replace('"create">01.py', '"modify">code.py')
        .replace('"file">01.py exists', '"manual">It looks good')
    )
    state = planned(repository, PLANNED.replace('"task": 2', '"task": 1'), "feat(1-01): it")
    write_plan(repository, TITLE + modifies + task("02"), f"{state.parent}/plans/phase-1/plan.md")
    repository.ok("import", ".opti-gsd/state.json", "--mode", "yolo")
    repository.ok("task", "T02", "running")  # a step that records the files of a wave that begins
    repository.ok("check")
    assert [it["status"] for it in repository.status()["tasks"]] == ["complete", "running"]


def test_import_of_a_phase_with_many_tasks_takes_over_all_of_them(repository: Here) -> None:
    numbers = [f"{number:03}" for number in range(1, 901)]
    plan = TITLE + "".join(map(task, numbers))
    text = json.dumps({"phase": 1, "task": 890, "loop": {"active": True, "type": "execute",
        "background_tasks": [{"task_id": "x", "task_num": 900}], "paused": True,
        "pause_reason": "Task 400 failed"}})  # fmt: skip
    state = planned(repository, text, "feat(1-890): it")
    write_plan(repository, plan, ".opti-gsd/plans/phase-1/plan.md")
    repository.ok("import", ".opti-gsd/state.json")
    status = repository.status()
    found = {it["id"]: it["status"] for it in status["tasks"]}
    assert (found["T890"], found["T900"], found["T001"]) == ("reported", "running", "pending")
    assert len(found) == 900
    assert any(event["data"].get("carried") is True for event in repository.lines())
    assert (status["status"], status["pause_reason"]) == ("paused", "Task 400 failed")
    assert json.loads(state.read_text())["loop"]["paused"] is True


def test_import_of_a_verify_loop_follows_the_plan(repository: Here) -> None:
    text = PLANNED.replace("execute", "verify").replace('"mood"', '"gaps_remaining": 1, "mood"')
    planned(repository, text)
    notes = repository.ok("import", ".opti-gsd/state.json", "--json").json["notes"]
    assert any("fixes under way as abc123" in note for note in notes)
    status = repository.status()
    assert (status["kind"], status["round"], list(status["tasks"])) == ("verify", 4, [])
    assert (status["gaps_remaining"], status["next"].split()[0]) == (1, "Fix")


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (TITLE + task("01"), ".opti-gsd/state.json: task must be at most 1, the tasks of the plan"),
        ("no plan", "plan.md:1: the plan has no tasks"),
    ],
)
def test_import_of_a_phase_names_what_its_plan_contradicts(
    repository: Here, plan: str, problem: str
) -> None:
    planned(repository)
    write_plan(repository, plan, ".opti-gsd/plans/phase-1/plan.md")
    assert problem in repository.refused(2, "import", ".opti-gsd/state.json").err
    assert not repository.journal.exists()


def test_start_saves_the_state_json_of_another_tool(repository: Here) -> None:
    state = planned(repository, PLANNED, "feat(1-01): it")
    answer = repository.ok("start", "execute", "--phase", "1", "--mode", "yolo", "--json").json
    kept = f".opti-gsd/state.json.before-{answer['loop']}"
    assert (repository.root / kept).read_text() == PLANNED
    assert answer["notes"][-1].endswith(f"To import that loop, run: gsd-fsm import {kept}")
    shown = json.loads(state.read_text())
    assert (shown["task"], shown["loop"]["mood"], shown["loop"]["iteration"]) == (0, "fine", 0)
    message = f".opti-gsd/state.json is a view of live loop {answer['loop']} (running)"
    assert message in repository.refused(4, "import", ".opti-gsd/state.json").err
    repository.ok("import", kept, "--fresh")
    assert repository.status()["started"] == "2026-01-19T10:30:00.000Z"
    assert len(list(state.parent.glob("state.json*"))) == 2


def test_import_options_take_precedence_over_file_and_settings(here: Here) -> None:
    here.configure(mode="yolo", budget_usd=3)
    put(here, "task.json", TASK)
    (here.root / "sub").mkdir()
    here.where = here.root / "sub"
    options = (
        "--mode",
        "interactive",
        "--budget",
        "40",
        "--check",
        "tests=pytest -q",
        "--check",
        "x=a || true",
    )
    dry = here.ok("import", "../task.json", *options, "--dry-run", "--json").json
    answer = here.ok("import", "../task.json", *options, "--json").json
    start = here.lines()[1]["data"]
    assert dry["events"][0]["data"] == start
    assert start["criteria"] == [
        {"name": "tests", "check": "pytest -q", "directory": "sub"},
        {"name": "x", "check": "a || true", "directory": "sub"},
    ]
    assert (start["mode"], start["limits"]["budget_usd"]) == ("interactive", 40)
    assert (here.status()["spent_usd"], here.status()["budget_usd"]) == (4.5, 40)
    assert "warning: check 'x' cannot fail: '|| true' masks its exit code" in answer["notes"]
    here.ok("import", "../task.json", "--fresh")
    start = here.last()["data"] if here.last()["type"] == "start" else here.lines()[-2]["data"]
    assert (start["mode"], start["limits"]["budget_usd"]) == ("yolo", 25)


def test_import_check_replaces_the_claim_of_a_criterion(here: Here) -> None:
    met = dict.fromkeys(STATE["criteria"], True)
    put(here, "a.json", json.dumps({**STATE, "criteriaStatus": met, "exit_signal": True}))
    answer = here.ok("import", "a.json", "--check", "lint clean=true", "--json").json
    assert "exit_signal: not imported, because the checks have not passed yet." in answer["notes"]
    status = here.status()
    assert [(it["name"], it["met"]) for it in status["criteria"]] == [
        ("tests pass", True), ("lint clean", False), ("no type errors", True),
    ]  # fmt: skip
    assert status["exit_signal"] is False


def test_import_refuses_a_check_for_a_phase(here: Here) -> None:
    put(here, "state.json", PHASE_STATE)
    message = here.refused(2, "import", "state.json", "--check", "a=b").err
    assert "--check is for goal loops, and this is a loop to execute a phase" in message
    assert (
        "is not NAME=CMD"
        in here.refused(2, "import", put(here, "t", TASK).name, "--check", "a").err
    )


def test_import_refuses_a_check_that_no_shell_can_run(here: Here) -> None:
    write(user_file(), "check_shell = '/missing'\n")
    name = put(here, "task.json", TASK).name
    message = here.refused(2, "import", name, "--check", "a=b").err
    assert "check_shell is not a program: /missing" in message
    assert not here.journal.exists()
