"""simulate: scripts of stops, prompts and commands."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.cli import run
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.engine.simulation import read_script, simulation
from tests.support.command_line import A, Here, Project

GOAL = (
    'start goal "All tests pass" --criterion tests --mode yolo --max-iterations 6\nprompt Begin.\n'
)


def write_script(here: Here, script: str) -> str:
    path = here.root / "script.txt"
    path.write_text(script)
    return str(path)


def simulate(here: Here, script: str, *options: str) -> dict[str, Any]:
    return dict(here.ok("simulate", write_script(here, script), *options, "--json").json)


def test_simulate_lists_each_decision_with_its_events(here: Here) -> None:
    script = GOAL + "stop Done.\ncriterion tests met\nstop <loop-complete>\n"
    result = simulate(here, script)
    assert [(row["decision"], row["events"]) for row in result["steps"]] == [
        ("", ["journal", "start"]),
        ("", ["session bind", "session prompt"]),
        ("block", ["iteration continue"]),
        ("", ["criterion"]),
        ("allow", ["exit", "complete"]),
    ]
    assert (result["stops"], result["blocks"], result["status"]) == (2, 1, "completed")
    output = here.ok("simulate", write_script(here, script)).out
    assert "block · iteration continue · running" in output
    assert "Continuing goal loop iteration 1/6" in output
    assert "2 stops, 1 blocked" in output


def test_simulate_plays_limits_background_work_and_rate_limits(here: Here) -> None:
    result = simulate(here, GOAL + "x20 stop --tool Still at it.\n")
    assert (result["blocks"], result["status"]) == (5, "paused")
    assert "stuck" in str(result["steps"])
    serve = "stop --background shell:b1 Serving.\n"
    script = f"# a comment\n{serve}{serve}failure rate_limit\nstop Back again.\n"
    rows = simulate(here, GOAL + script)["steps"][2:]
    assert [row["decision"] for row in rows] == ["allow", "block", "", "block"]
    assert rows[2]["status"] == "waiting"


def test_simulate_changes_the_session_like_the_client(here: Here) -> None:
    for sources, events, message, decision in (
        (["clear"], ["session end", "session bind", "session start"], "[LOOP RESUME]", "block"),
        (["compact"], ["session compact", "session start"], "[LOOP RESUME]", "block"),
        (["resume"], ["session end", "session start"], "[LOOP RESUME]", "block"),
        (["fork"], ["session end"], "forked from", "allow"),
        (["startup"], ["session end"], "belongs to session simulation.", "allow"),
        (["startup", "clear"], [], "belongs to session simulation.", "allow"),
    ):
        script = "".join(f"session {source}\n" for source in sources)
        *_, change, stop = simulate(here, f"{GOAL}{script}stop Am I to continue?\n")["steps"]
        assert (change["events"], stop["decision"]) == (events, decision), sources
        assert message in change["said"]


def test_simulate_runs_checks_and_records_their_evidence(here: Here) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes([111, 107, 255])); sys.exit(3)"
    start = f"""start goal g --mode yolo --check 'tests="{sys.executable}" -c "{code}"'\n"""
    check = simulate(here, start + "check\nstop Done.\n")["steps"][1]
    assert (check["exit_code"], check["events"]) == (7, ["criterion"])
    assert "ok\ufffd" in check["said"]
    assert "check failed: tests" in check["said"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_simulate_ends_when_a_check_is_interrupted(project: Project) -> None:
    check = b"start goal g --check 'tests=kill -TERM $PPID; sleep 9'\ncheck\nnote later\n"
    answer = project.run("simulate", "-", stdin=check)
    assert answer.code == 143
    assert "note later" not in answer.out


def test_simulate_ends_at_a_bug_and_names_the_line(here: Here) -> None:
    here.patch.delattr("gsd_fsm.cli.note.note")
    path = write_script(here, GOAL + "note first\nstop Done.\n")
    answer = here.refused(1, "simulate", path)
    assert answer.err.startswith("gsd-fsm: line 3: this is a bug in gsd-fsm: AttributeError")
    assert "stop Done." not in answer.out


@pytest.mark.parametrize("tail", [b"", b'{"v":1,"se'], ids=["whole", "torn"])
def test_simulate_copy_leaves_the_journal_unchanged(here: Here, tail: bytes) -> None:
    here.start("goal", "g", "--mode", "yolo", env=A)
    before = here.journal.read_bytes() + tail
    here.journal.write_bytes(before)
    result = simulate(here, "stop Done.\nnote on\n", "--copy")
    assert [row["events"] for row in result["steps"]] == [["iteration continue"], ["note"]]
    assert (result["blocks"], result["status"]) == (1, "running")
    assert here.journal.read_bytes() == before


def test_simulate_copy_of_untrusted_journal_is_refused(here: Here, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    here.start("goal", "g", "--check", f"tests=echo x > {ran}")
    cloned = tmp_path / "cloned"
    shutil.copytree(here.root, cloned)
    (cloned / "script.txt").write_text("check\n")
    here.where = cloned
    assert "not trusted" in here.refused(6, "simulate", "script.txt", "--copy").err
    assert not ran.exists()


@pytest.mark.parametrize("end", ["stop Done.\n", "start nonsense\n"])
def test_simulate_leaves_no_files_and_restores_the_environment(here: Here, end: str) -> None:
    def surroundings() -> tuple[object, ...]:
        places = (here.root, Path(os.environ["HOME"]))  # which has the other directories too
        return dict(os.environ), [sorted(place.rglob("*")) for place in places]

    # A temporary directory inside a repository: a new project looks for the top of its repository.
    (here.root / ".git").mkdir()
    here.patch.setattr("tempfile.tempdir", str(here.root))
    here.patch.setenv("GEMINI_PROJECT_DIR", str(here.root))
    path = write_script(here, GOAL + "config\nx2 stop Hm.\nsession clear\n" + end)
    before = surroundings()
    here.run("simulate", path)
    assert surroundings() == before


def test_simulation_step_costs_the_same_after_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    folded = []
    fold = Loops.fold

    def count(loops: Loops, event: dict[str, Any]) -> None:
        folded.append(event["seq"])
        fold(loops, event)

    monkeypatch.setattr(Loops, "fold", count)
    steps = read_script(
        "start goal g --mode yolo --max-iterations 0 --stuck-limit 0\n"
        "prompt Begin.\nx200 stop --tool Still at it.\n"
    )
    with simulation(run) as stage:
        after = [len(folded) for _ in stage.play(steps)]
    assert after[200] - after[136] <= 1.1 * (after[136] - after[72])


UNKNOWN = "unknown command 'stat'\n  → Did you mean 'status'? Run: gsd-fsm status --help\n"
# Commands that would act outside the simulation, and other lines that are not steps.
NOT_STEPS = (
    *("init --yes", "uninstall --yes", "doctor", "hook", "simulate -", "trust", "--version"),
    *("--project . status", 'in""it --yes', "x2 trust", "HOME=/tmp status", "../x <- y"),
)


def test_simulate_names_the_line_that_it_rejects(here: Here) -> None:
    for script, message in (
        ("", "no steps"),
        ("x5\n", "line 1"),
        ("\nstop --never x\n", "line 2"),
        ("session nowhere\n", "line 1"),
        ('note "open\n', "line 1"),
        ("start nonsense\n", "line 1"),
        (f"x{'9' * 5000} stop\n", "more than"),
        (GOAL + "stat --json\n", f"gsd-fsm: line 3: {UNKNOWN}"),
        *((f"prompt hi\n{words}\n", "gsd-fsm: line 2: ") for words in NOT_STEPS),
    ):
        assert message in here.refused(2, "simulate", write_script(here, script)).err, script[:99]


def test_simulate_runs_commands_of_agents_and_compares_exit_codes(here: Here) -> None:
    script = (
        "CLAUDECODE=1 start goal g\nCLAUDECODE=1 pause\nCLAUDECODE=1 cancel => 4\n"
        "--loop {1} cancel\nnotes.md <- text\n"
    )
    steps = simulate(here, script)["steps"]
    statuses = ["running", "paused", "paused", "cancelled", "cancelled"]
    assert [step["status"] for step in steps] == statuses
    assert steps[-1]["step"] == "notes.md <- text"
    for expected in (0, 5):
        path = write_script(here, f"start goal g --criterion c\ncomplete => {expected}\n")
        answer = here.run("simulate", path)
        assert answer.code == 7
        assert "line 2: expected exit code" in answer.err
