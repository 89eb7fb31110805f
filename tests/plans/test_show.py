"""`gsd-fsm plan`: show, check and draw a plan."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.support.command_line import EVIL, Here, assert_harmless
from tests.support.plan_texts import LOOP_MECHANISM, json_plan, json_task, task


def planned(here: Here, phase: str = "1", directory: str = ".gsd", text: str = "") -> Path:
    plan = here.root / directory / "plans" / f"phase-{phase}" / "plan.md"
    plan.parent.mkdir(parents=True)
    plan.write_text(text or LOOP_MECHANISM.read_text())
    return plan


def task_count(here: Here, *options: str) -> int:
    return int(here.ok("plan", "show", *options, "--json").json["task_count"])


def test_plan_show_needs_no_project(here: Here) -> None:
    shutil.copyfile(LOOP_MECHANISM, here.root / "my plan.md")
    shown = here.ok("plan", "show", "--plan", "my plan.md").out
    assert shown.startswith("Phase 1: Loop Mechanism\n")
    for text in (
        "must have: Mode controls behavior: interactive prompts, yolo auto-loops",
        "Wave 1 (parallel): Infrastructure",
        "Wave 2 (sequential): Command Modifications",
        "T04 Add loop logic to execute.md. after T01, T02, T03",
        "create hooks/hooks.json",
        "check (file) hooks/hooks.json exists",
        "check (manual) Script reads loop state from STATE.md",
        "done when ROADMAP.md reflects Phase 1 as PLANNED",
    ):
        assert text in shown
    assert sorted(path.name for path in here.root.iterdir()) == ["my plan.md"]


def test_plan_show_json_has_every_member_of_the_plan(here: Here) -> None:
    plan = planned(here)
    shown = here.ok("plan", "show", "--phase", "1", "--json").json
    assert len(shown.pop("must_haves")) == 7
    waves = shown.pop("waves")
    assert shown == {
        "file": str(plan), "digest": "82db43d36fc45673", "format": "markdown", "phase": 1,
        "title": "Loop Mechanism", "task_count": 7, "wave_count": 3, "estimated_tokens": "45k",
        "warnings": [],
    }  # fmt: skip
    found = [(it["wave"], it["sequential"], len(it["tasks"])) for it in waves]
    assert found == [(1, False, 3), (2, True, 2), (3, True, 2)]
    last = waves[2]["tasks"][1]
    assert last.pop("action").startswith("Update ROADMAP.md to mark Phase 1 as PLANNED.\n")
    check = {"kind": "content", "text": 'ROADMAP.md contains "hooks.json"', "command": None}
    assert last.pop("checks")[1] == {**check, "line": 438}
    assert last == {
        "id": "T07", "number": "07", "title": "Update ROADMAP.md to mark Phase 1 as PLANNED.",
        "wave": 3, "depends": ["T04", "T05"], "libraries": [], "skills": [], "reqs": "",
        "files": [{"path": ".gsd/ROADMAP.md", "action": "modify"}],
        "done": "ROADMAP.md reflects Phase 1 as PLANNED", "test_required": "false",
        "test_files": [], "commit_type": "feat", "line": 398,
    }  # fmt: skip


def test_plan_check_accepts_a_plan_with_warnings(here: Here) -> None:
    plan = planned(here, text=f"---\ntask_count: 2\n---\n{task('01')}")
    out = here.ok("plan", "check", "--phase", "01").out
    assert "ok, 1 task in 1 wave" in out
    assert "warning: task_count is 2, but the plan has 1" in out
    digest = here.ok("plan", "show", "--phase", "1", "--json").json["digest"]
    assert here.ok("plan", "check", "--phase", "01", "--json").json == {
        "ok": True, "file": str(plan), "digest": digest, "tasks": 1, "waves": 1, "problems": [],
        "warnings": ["task_count is 2, but the plan has 1"], "manual": [], "claimed_tasks": [],
        "claimed_criteria": [],
    }  # fmt: skip


def test_plan_check_lists_manual_checks_and_tasks_without_a_machine_check(here: Here) -> None:
    tasks = [json_task(number) for number in range(25)]
    (here.root / "p").write_text(json_plan(*tasks, json_task("x", verify=[{"cmd": "true; true"}])))
    lines = here.ok("plan", "check", "--plan", "p").out.splitlines()
    assert lines[1] == "manual: T0#1 (line 6): look"
    assert len([line for line in lines if line.startswith("manual: ")]) == 25
    shown = ", ".join(f"T{number}" for number in range(20))
    assert lines[-1] == f"claimed: tasks {shown} and 5 more (no machine check)"
    facts = here.ok("plan", "check", "--plan", "p", "--json").json
    assert facts["manual"][0] == {"check": "T0#1", "line": 6, "text": "look"}
    assert facts["claimed_tasks"] == [f"T{number}" for number in range(25)]


def test_plan_check_reports_every_problem(here: Here) -> None:
    plan = planned(here, text="".join(task(f"{n:02d}", depends="99") for n in range(1, 31)))
    what = "task T02 depends on T99, which is not in the plan"
    err = here.refused(2, "plan", "check", "--phase", "1").err
    assert (err.count("which is not in the plan"), f"{plan}:7: {what}" in err) == (30, True)
    assert "and 10 more" in here.refused(2, "plan", "show", "--phase", "1").err
    answer = here.run("plan", "check", "--phase", "1", "--json")
    assert (answer.code, answer.json["ok"], answer.json["file"]) == (2, False, str(plan))
    assert len(answer.json["problems"]) == 30
    assert answer.json["problems"][1] == {"line": 7, "what": what}


def test_plan_graph_shows_waves_and_dependencies(here: Here) -> None:
    planned(here)
    lines = here.ok("plan", "graph", "--phase", "1").out.splitlines()
    assert lines[:2] == ["flowchart LR", '    subgraph w1["Wave 1: Infrastructure"]']
    assert '        t4["T04 Add loop logic to execute.md."]' in lines
    assert [line.strip() for line in lines if "-->" in line] == [
        *("t1 --> t4", "t2 --> t4", "t3 --> t4", "t1 --> t5", "t2 --> t5", "t3 --> t5"),
        *("t4 --> t6", "t5 --> t6", "t4 --> t7", "t5 --> t7"),
    ]
    drawn = here.ok("plan", "graph", "--phase", "1", "--json").json["mermaid"]
    assert drawn.splitlines() == lines


def test_plan_show_uses_the_plan_of_the_live_loop_else_of_the_current_phase(here: Here) -> None:
    here.start("goal", "g")
    assert "no plan given" in here.refused(2, "plan", "show").err
    planned(here, "1")
    planned(here, "2", text=task("99"))
    (here.gsd / "STATE.md").write_text("---\nphase: 2\n---\n")
    assert task_count(here) == 1
    here.ok("cancel")
    loop = here.start("execute", "--phase", "1", "--mode", "yolo")
    assert task_count(here) == 7
    here.ok("cancel")
    assert task_count(here) == 1
    assert task_count(here, "--loop", loop) == 7
    assert "no such loop: lp-none" in here.refused(3, "plan", "show", "--loop", "lp-none").err
    for session in ("a", "b"):
        here.start("goal", "g", env={"CLAUDE_CODE_SESSION_ID": session})
    assert "several live loops" in here.refused(2, "plan", "show").err
    assert task_count(here, "--phase", "1") == 7


def test_plan_takes_the_only_one_and_refuses_without_a_file(here: Here) -> None:
    plan = planned(here, "7", text=task("01"))
    assert here.ok("plan", "check", "--json").json["file"] == str(plan)
    planned(here, "8", text=task("01"))
    for action in ("show", "check", "graph"):
        for options, what in (
            (("--phase", "1", "--plan", "x"), "--phase and --plan cannot be used together"),
            (("--phase", "../x"), "is not a phase"),
            (("--plan", "nowhere.md"), "missing file"),
            ((), "no plan given"),
        ):
            assert what in here.refused(2, "plan", action, *options).err


def test_plan_check_works_before_gsd_exists(here: Here) -> None:
    planned(here, "auth", ".opti-gsd", text=task("01"))
    assert "Project State Missing" in here.refused(3, "plan", "show").err
    assert here.ok("plan", "check", "--phase", "auth", "--json").json["ok"] is True
    missing = here.refused(3, "plan", "check", "--phase", "2").err
    assert "Phase Not Planned: No plan found for phase 2" in missing
    (here.root / ".opti-gsd" / "state.json").write_text('{"current_phase": "auth"}')
    assert task_count(here) == 1
    assert not here.gsd.exists()


def test_plan_output_neutralizes_hostile_text(here: Here) -> None:
    words = EVIL.replace("\0", "")
    members = {"title": words, "action": words, "done": words, "verify": [words], "files": ["a"]}
    good = {"title": words, "phase": 1, "must_haves": [words], "tasks": [{"id": "01", **members}]}
    bad = {"phase": words, "tasks": [{"id": words, "depends": [words], "files": [words]}]}
    for name, document in (("good", good), ("bad", bad)):
        (here.root / name).write_text(json.dumps(document))
        for action in ("show", "check", "graph"):
            for more in ((), ("--json",)):
                answer = here.run("plan", action, "--plan", name, *more)
                assert answer.code == (0 if name == "good" else 2)
                assert_harmless(answer.out + answer.err, (name, action))
    title = 'x"] --> y; %% <script>`&#35;`'
    waves = [{"title": title, "tasks": [json_task("end", title=title)]}]
    (here.root / "p").write_text(json.dumps({"waves": waves}))
    drawn = here.ok("plan", "graph", "--plan", "p").out
    assert [line.count('"') for line in drawn.splitlines()] == [0, 2, 2, 0]
    assert "-->" not in drawn
    assert "#34;#93; --#62; y#59;" in drawn
