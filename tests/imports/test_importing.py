from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.project import state_directory
from tests.support.command_line import AGENT, A, B, Here
from tests.support.foreign_files import RALPH, STATE, STATE_MD, WORKFLOW
from tests.support.hook_agent import Agent

FILES = {
    ".gsd/STATE.md": ("state-md", STATE_MD),
    ".loop/workflow-state.json": ("workflow-state", json.dumps(WORKFLOW)),
    ".loop/state.json": ("state", json.dumps(STATE)),
    ".claude/ralph-loop.local.md": ("ralph", RALPH),
}


def put(here: Here, name: str, content: str) -> Path:
    path = here.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_loop_of_each_format_is_imported_and_goes_on(here: Here, name: str) -> None:
    form, content = FILES[name]
    put(here, name, content)
    answer = here.ok("import", name, "--json").json
    assert list(answer) == ["loop", "seq", "status", "head", "format", "notes"]
    assert answer["format"] == form
    assert any(f"Disable the hook of the tool that wrote {name}" in n for n in answer["notes"])
    status = here.status()
    assert (status["loop"], status["status"]) == (answer["loop"], answer["status"])
    assert status["head"] == answer["head"] == f"{answer['seq']}:{here.last()['sum']}"
    carried = here.lines()[1]["data"]["carried"]
    assert (carried["from"], carried["file"]) == (form, name)
    here.ok("iterate")
    assert here.status()["iteration"] == status["iteration"] + 1
    here.ok("replay", "--strict")
    here.ok("fsck")


@pytest.mark.parametrize("name", [name for name in FILES if name != ".gsd/STATE.md"])
def test_whoever_starts_a_goal_is_told_of_a_loop_that_another_tool_still_runs(
    here: Here, name: str
) -> None:
    put(here, name, FILES[name][1])
    told = f"{name} has a live loop. To take it over: gsd-fsm import {name}"
    assert here.ok("start", "goal", "g", "--json").json["notes"] == [told]
    put(here, name, "{}")
    assert here.ok("start", "goal", "g", "--fresh", "--json").json["notes"] == []


@pytest.mark.parametrize("name", FILES)
def test_a_dry_run_shows_what_an_import_appends_and_writes_nothing(here: Here, name: str) -> None:
    form, content = FILES[name]
    put(here, name, content)
    dry = here.ok("import", name, "--dry-run", "--json").json
    words = here.ok("import", name, "--dry-run").out.splitlines()
    assert not here.journal.exists()
    assert not Path(state_directory()).exists()
    assert list(dry) == ["format", "events", "notes"]
    assert [line.split(" ")[0] for line in words if not line.startswith("- ")] == [
        event["type"] for event in dry["events"]
    ]
    done = here.ok("import", name, "--json").json
    appended = [{"type": e["type"], "data": e["data"]} for e in here.lines()[1:]]
    assert (dry["format"], dry["events"], dry["notes"]) == (form, appended, done["notes"])


@pytest.mark.parametrize("name", [name for name in FILES if name != ".gsd/STATE.md"])
def test_the_old_file_is_left_as_it_is(here: Here, name: str) -> None:
    path = put(here, name, FILES[name][1])
    before = path.stat()
    answer = here.ok("import", name)
    assert f"- {name} is not changed." in answer.out
    assert (path.read_text(), path.stat().st_mtime_ns) == (FILES[name][1], before.st_mtime_ns)


def test_a_state_md_beside_the_journal_shows_the_loop_from_now_on(here: Here) -> None:
    path = put(here, ".gsd/STATE.md", STATE_MD)
    assert ".gsd/STATE.md shows this loop from now on" in here.ok("import", ".gsd/STATE.md").out
    shown = path.read_text()
    for line in ("milestone: v1", "  iteration: 4", "  max_iterations: 30", "# State"):
        assert f"\n{line}\n" in shown


def test_a_file_that_is_a_view_by_the_settings_says_the_same_afterwards(here: Here) -> None:
    state = put(here, ".loop/state.json", json.dumps(STATE))
    put(here, ".gsd/config.toml", 'views = ["state"]\n')
    assert "shows this loop from now on" in here.ok("import", ".loop/state.json").out
    assert json.loads(state.read_text()) == STATE
    assert "is a view of live loop" not in here.refused(4, "import", ".loop/state.json").err
    here.ok("cancel")
    loop = here.start("goal", "another", env=A)
    answer = here.refused(4, "import", ".loop/state.json", env=B)
    assert f".loop/state.json is a view of live loop {loop} (running)" in answer.err


def test_the_same_file_is_not_imported_again_while_its_loop_is_live(here: Here) -> None:
    put(here, ".loop/state.json", json.dumps(STATE))
    loop = here.ok("import", ".loop/state.json", "--json", env=A).json["loop"]
    told = f".loop/state.json was already imported as live loop {loop} (running)"
    assert told in here.refused(4, "import", ".loop/state.json", env=B).err
    assert told in here.refused(4, "import", "./.loop/../.loop/state.json", env=A).err
    assert told in here.refused(4, "import", ".loop/state.json", "--fresh", env=B).err
    here.ok("--loop", loop, "cancel")
    here.ok("import", ".loop/state.json", env=B)


@pytest.mark.parametrize("kept", [1, 2, 3, 5])
def test_an_import_that_was_interrupted_can_be_repeated(here: Here, kept: int) -> None:
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


def test_owners_are_those_of_start_and_fresh_cancels(here: Here) -> None:
    put(here, "a.json", json.dumps(STATE))
    put(here, "b.md", RALPH)
    first = here.ok("import", "a.json", "--json", env=A).json["loop"]
    assert here.status()["owner"] == "session-a"
    assert f"live loop {first}" in here.refused(4, "import", "b.md", env=A).err
    answer = here.ok("import", "b.md", "--fresh", env=A)
    assert f"Cancelled loop {first}." in answer.out
    assert here.status()["goal"] == "Read PROMPT.md and follow it."
    assert here.run("--loop", first, "status", "--check").code == 13


def test_a_journal_of_somebody_else_is_not_written_to(here: Here) -> None:
    put(here, "a.json", json.dumps(STATE))
    here.start("goal", "g")
    here.ok("cancel")
    for entry in Path(state_directory(), "journals").iterdir():
        entry.unlink()
    assert "not trusted" in here.refused(6, "import", "a.json").err


def test_nothing_is_imported_while_all_loops_are_switched_off(here: Here) -> None:
    put(here, "a.json", json.dumps(STATE))
    put(here, ".gsd/STOP", "")
    assert "disables all loops" in here.refused(4, "import", "a.json").err
    assert not here.journal.exists()
    here.ok("import", "a.json", "--dry-run")


def test_limits_are_those_of_the_file_then_those_of_the_settings(here: Here) -> None:
    config = 'max_iterations = 7\nexecute_max_retries = 9\nbudget_usd = 2.5\ncounsel = "Think."\n'
    put(here, ".gsd/config.toml", config + 'mode = "yolo"\n')
    put(here, "ralph.md", RALPH)
    here.ok("import", "ralph.md")
    start = here.last()["data"]
    limits = {"max_iterations": 20, "max_retries": 9, "budget_usd": 2.5}
    assert limits.items() <= start["limits"].items()
    assert (start["mode"], start["counsel"]) == ("yolo", "Think.")
    put(here, "state.json", json.dumps(STATE))
    here.ok("import", "state.json", "--fresh")
    assert here.last()["data"]["limits"]["max_iterations"] == 7


@pytest.mark.parametrize(
    ("name", "content", "code", "add"),
    [
        ("a.json", json.dumps({**STATE, "iteration": 25}), "iterations", "--add-iterations 15"),
        (
            "a.md",
            STATE_MD.replace("execute", "verify").replace(": 30", ": 4"),
            "rounds",
            "--add-rounds",
        ),
        ("b.json", json.dumps({**STATE, "circuitBreaker": {"stuckCount": 5}}), "stuck", "resume"),
    ],
)
def test_a_limit_that_is_spent_already_is_told_with_its_remedy(
    here: Here, name: str, content: str, code: str, add: str
) -> None:
    put(here, name, content)
    note = here.ok("import", name, "--json").json["notes"][-1]
    assert note.startswith("A limit is already used up: ")
    assert add in note
    assert here.run("iterate").code == 4
    assert here.status()["pause_code"] == code
    here.ok(*note.partition("To continue: gsd-fsm ")[2].split(" "))
    here.ok("iterate")


def test_a_met_claim_and_an_exit_signal_complete_the_imported_loop(here: Here) -> None:
    put(here, "ralph.md", RALPH)
    here.ok("import", "ralph.md", env=AGENT)
    assert "criterion not met: ALL DONE" in here.run("complete").err
    here.ok("criterion", "1", "met")
    here.ok("exit-signal")
    assert here.ok("complete", "--json").json["status"] == "completed"


def test_the_hook_goes_on_counting_where_the_other_tool_stopped(here: Here, tmp_path: Path) -> None:
    put(here, "ralph.md", RALPH)
    agent = Agent(here, tmp_path)
    here.ok("import", "ralph.md", env=agent.shell)
    assert "iteration 4/20" in agent.blocked()
    assert here.status()["last_unmet"] == "ALL DONE"


def test_tasks_that_the_file_does_not_know_can_be_added(here: Here) -> None:
    put(here, "a.md", STATE_MD)
    here.ok("import", "a.md")
    here.ok("task", "T02", "skipped")
    here.ok("task", "T06", "pending", "--title", "never failed")
    here.ok("task", "T06", "running")
    here.ok("fail", "T05", "--error", "AssertionError: 1 != 2")
    status: Any = here.status()
    assert status["task_retries"] == {"T02": 2, "T05": 2, "T06": 0}


def test_gaps_keep_a_loop_running_though_auto_loop_is_off(here: Here) -> None:
    put(here, ".gsd/config.toml", "auto_loop = false\n")
    text = STATE_MD.replace("execute", "verify").replace("gaps_remaining: 0", "gaps_remaining: 2")
    put(here, "a.md", text)
    answer = here.ok("import", "a.md", "--json").json
    assert answer["status"] == "fixing"
    assert any(note.startswith("auto_loop is off in the settings") for note in answer["notes"])


def test_every_problem_is_told_and_nothing_is_made(here: Here) -> None:
    put(here, "a.json", json.dumps({**STATE, "iteration": -1, "exit_signal": True}))
    told = here.refused(2, "import", "a.json").err
    assert "gsd-fsm: a.json: iteration: " in told
    assert "\na.json: exit_signal: " in told
    assert "→ mend the file" in told
    assert here.run("import", "a.json", "--json").json["exit_code"] == 2
    assert "nothing to import" in here.run("import", str(_ended(here))).err
    assert not here.gsd.exists()


def _ended(here: Here) -> Path:
    return put(here, "ended.json", json.dumps({**STATE, "status": "completed"}))
