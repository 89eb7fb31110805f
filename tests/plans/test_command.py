"""`gsd-fsm plan`: looked at by people and scripts, with and without a loop."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.plans.test_load import LOOP_MECHANISM, task
from tests.support.hostile import EVIL, assert_harmless

if TYPE_CHECKING:
    from tests.support.command_line import Here


def planned(here: Here, phase: str = "1", directory: str = ".gsd", text: str | None = None) -> Path:
    plan = here.root / directory / "plans" / f"phase-{phase}" / "plan.md"
    plan.parent.mkdir(parents=True)
    if text is None:
        shutil.copyfile(LOOP_MECHANISM, plan)
    else:
        plan.write_text(text)
    return plan


def test_a_plan_is_shown_without_any_project(here: Here) -> None:
    shutil.copyfile(LOOP_MECHANISM, here.root / "my plan.md")
    shown = here.ok("plan", "show", "--plan", "my plan.md").out
    assert shown.startswith("Phase 1: Loop Mechanism\n")
    for text in (
        "must have: Mode controls behavior: interactive prompts, yolo auto-loops",
        "Wave 1 (at once): Infrastructure",
        "Wave 2 (one at a time): Command Modifications",
        "T04 Add loop logic to execute.md. after T01, T02, T03",
        "create hooks/hooks.json",
        "check (file) hooks/hooks.json exists",
        "check (manual) Script reads loop state from STATE.md",
        "done when ROADMAP.md reflects Phase 1 as PLANNED",
    ):
        assert text in shown
    assert sorted(path.name for path in here.root.iterdir()) == ["my plan.md"]


def test_scripts_are_told_everything_a_plan_says(here: Here) -> None:
    plan = planned(here)
    shown = here.ok("plan", "show", "--phase", "1", "--json").json
    assert {name: shown[name] for name in shown if name not in ("waves", "must_haves")} == {
        "file": str(plan),
        "digest": "82db43d36fc45673",
        "format": "markdown",
        "phase": 1,
        "title": "Loop Mechanism",
        "task_count": 7,
        "wave_count": 3,
        "estimated_tokens": "45k",
        "warnings": [],
    }
    assert len(shown["must_haves"]) == 7
    waves = [(it["wave"], it["sequential"], len(it["tasks"])) for it in shown["waves"]]
    assert waves == [(1, False, 3), (2, True, 2), (3, True, 2)]
    last = shown["waves"][2]["tasks"][1]
    assert last.pop("action").startswith("Update ROADMAP.md to mark Phase 1 as PLANNED.\n")
    checks = last.pop("checks")
    assert checks[1] == {
        "kind": "content",
        "text": 'ROADMAP.md contains "hooks.json"',
        "command": None,
        "line": 438,
    }
    assert last == {
        "id": "T07",
        "number": "07",
        "title": "Update ROADMAP.md to mark Phase 1 as PLANNED.",
        "wave": 3,
        "depends": ["T04", "T05"],
        "files": [{"path": ".gsd/ROADMAP.md", "action": "modify"}],
        "libraries": [],
        "done": "ROADMAP.md reflects Phase 1 as PLANNED",
        "skills": [],
        "reqs": "",
        "test_required": "false",
        "test_files": [],
        "commit_type": "feat",
        "line": 398,
    }


def test_a_good_plan_is_called_so(here: Here) -> None:
    plan = planned(here, text=f"---\ntask_count: 2\n---\n{task('01')}")
    said = here.ok("plan", "check", "--phase", "01").out
    assert "ok, 1 task in 1 wave" in said
    assert "warning: task_count says 2, but there are 1" in said
    found = here.ok("plan", "check", "--phase", "01", "--json").json
    assert (found.pop("digest"), found) == (
        here.ok("plan", "show", "--phase", "1", "--json").json["digest"],
        {
            "ok": True,
            "file": str(plan),
            "tasks": 1,
            "waves": 1,
            "problems": [],
            "warnings": ["task_count says 2, but there are 1"],
        },
    )


def test_a_broken_plan_is_told_whole(here: Here) -> None:
    text = "".join(task(f"{n:02d}", depends="99") for n in range(1, 31))
    plan = planned(here, text=text)
    said = here.refused(2, "plan", "check", "--phase", "1").err
    assert said.count("which is not in the plan") == 30
    assert f"{plan}:7: task 02 depends on 99, which is not in the plan" in said
    assert "and 10 more" in here.refused(2, "plan", "show", "--phase", "1").err
    answer = here.run("plan", "check", "--phase", "1", "--json")
    assert (answer.code, answer.json["ok"], answer.json["file"]) == (2, False, str(plan))
    assert len(answer.json["problems"]) == 30
    assert answer.json["problems"][1] == {
        "line": 7,
        "what": "task 02 depends on 99, which is not in the plan",
    }


def test_the_graph_shows_waves_and_dependencies(here: Here) -> None:
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


def test_no_word_of_a_plan_breaks_out_of_its_label(here: Here) -> None:
    title = 'x"] --> y; %% <script>`&#35;`'
    plan = json.dumps({"waves": [{"title": title, "tasks": [
        {"id": "end", "title": title, "action": "a", "done": "d", "verify": ["v"]}]}]})  # fmt: skip
    (here.root / "p").write_text(plan)
    drawn = here.ok("plan", "graph", "--plan", "p").out
    assert [line.count('"') for line in drawn.splitlines()] == [0, 2, 2, 0]
    assert "-->" not in drawn
    assert "#34;#93; --#62; y#59;" in drawn


def test_without_an_option_the_plan_of_the_live_loop_is_meant(here: Here) -> None:
    planned(here, "1")
    planned(here, "2", text=task("99"))
    (here.gsd / "STATE.md").write_text("---\nphase: 2\n---\n")
    assert here.ok("plan", "show", "--json").json["task_count"] == 1
    loop = here.start("execute", "--phase", "1", "--mode", "yolo")
    assert here.ok("plan", "show", "--json").json["task_count"] == 7
    here.ok("cancel")
    assert here.ok("plan", "show", "--json").json["task_count"] == 1
    assert here.ok("plan", "show", "--loop", loop, "--json").json["task_count"] == 7
    assert "no such loop: lp-none" in here.refused(3, "plan", "show", "--loop", "lp-none").err


def test_a_loop_without_a_plan_leaves_the_choice_to_the_state(here: Here) -> None:
    here.start("goal", "g")
    assert "no plan is named" in here.refused(2, "plan", "show").err
    planned(here, "3", ".opti-gsd", text=task("01"))
    (here.root / ".opti-gsd" / "state.json").write_text('{"current_phase": 3}')
    assert here.ok("plan", "show", "--json").json["task_count"] == 1


def test_a_plan_is_looked_at_before_there_is_anything_of_ours(here: Here) -> None:
    planned(here, "auth", ".opti-gsd", text=task("01"))
    assert "Project State Missing" in here.refused(3, "plan", "show").err
    assert here.ok("plan", "check", "--phase", "auth", "--json").json["ok"] is True
    missing = here.refused(3, "plan", "check", "--phase", "2").err
    assert "Phase Not Planned: No plan found for phase 2" in missing
    assert "gsd-fsm start execute --plan FILE" in missing
    assert not here.gsd.exists()


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        (("--phase", "1", "--plan", "x"), 2, "--phase and --plan exclude each other"),
        (("--phase", "../x"), 2, "is not a phase"),
        (("--plan", "nowhere.md"), 2, "missing file"),
        (("--plan", "."), 2, "not a regular file"),
        ((), 2, "no plan is named"),
    ],
)
def test_what_names_no_plan_is_refused(
    here: Here, options: tuple[str, ...], code: int, what: str
) -> None:
    for action in ("show", "check", "graph"):
        assert what in here.refused(code, "plan", action, *options).err


def test_two_live_loops_are_a_question(here: Here) -> None:
    planned(here)
    for session in ("a", "b"):
        here.start("goal", "g", env={"CLAUDE_CODE_SESSION_ID": session})
    assert "several live loops" in here.refused(2, "plan", "show").err
    here.ok("plan", "show", "--phase", "1")


def test_hostile_words_reach_the_terminal_visibly(here: Here) -> None:
    words = EVIL.replace("\0", "")
    members = {"title": words, "action": words, "done": words, "verify": [words], "files": ["a"]}
    good = {"title": words, "phase": 1, "must_haves": [words], "tasks": [{"id": "01", **members}]}
    bad = {"phase": words, "tasks": [{"id": words, "depends": [words], "files": [words]}]}
    (here.root / "good").write_text(json.dumps(good))
    (here.root / "bad").write_text(json.dumps(bad))
    for name in ("good", "bad"):
        for action in ("show", "check", "graph"):
            for more in ((), ("--json",)):
                answer = here.run("plan", action, "--plan", name, *more)
                assert answer.code == (0 if name == "good" else 2)
                assert_harmless(answer.out + answer.err, (name, action))
