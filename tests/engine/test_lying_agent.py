"""An agent that knows every command, sets any variable and does no work never completes a loop.

What nothing can prove may complete, and is then shown as claimed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from gsd_fsm.core import ancestors
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.completion import proof_counts
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import ready_tasks
from gsd_fsm.core.text.next_step import next_step
from tests.support.command_line import Here
from tests.support.faults import torture, wired, without_sync
from tests.support.hook_agent import call_here, user
from tests.support.plan_loops import TITLE, write_plan

SESSION = "session-a"
TASKS = ("T01", "T02", "T03", "G1", "G2")
WORK = (
    TITLE + "## Must-Haves\n- It works for everybody\n\n"
    '<task id="01" wave="1"><files><file action="create">never.py</file></files><action>A</action>'
    '<verify><check type="file">never.py exists</check></verify><done>D</done></task>\n'
    '<task id="02" wave="1" test_required="true"><files><file>code.py</file></files>'
    "<test_files><file>test_a.py</file></test_files><action>B</action>"
    '<verify><check type="command">test -e never.py</check></verify><done>D</done></task>\n'
    '<task id="03" wave="2"><action>C</action><verify><check>Look at it</check></verify>'
    "<done>D</done></task>\n"
)
BELIEVED = (
    TITLE + '<task id="01" wave="1"><action>C</action><verify><check>Look at it</check></verify>'
    "<done>D</done></task>\n"
)
# The loops, each with its plan and whether it may complete without work.
LOOPS = (
    ("start execute --phase 1", WORK, False),
    ("start execute --phase 1 --mode yolo", WORK, False),
    ("start verify --phase 1 --mode yolo", WORK, False),
    ("start verify --phase 1", WORK, False),
    ("start goal g --check t='test -e never.py' --criterion c", "", False),
    ("start goal g --mode yolo --check t='test -e never.py' --task T01", "", False),
    ("start execute --phase 1 --mode yolo", BELIEVED, True),
    ("start verify --phase 1 --mode yolo", BELIEVED, True),
    ("start goal g --mode yolo --criterion c", "", True),
)
COMMANDS = (
    *("task {task} running", "task {task} complete", "task {task} skipped", "task {task} failed"),
    *("task {task} running --phase green", "task {task} running --phase refactor"),
    *("task {task} running --ref a-1", "report {task}", "report {task}", "fail {task} --error x"),
    *("check", "check --complete", "complete", "complete", "exit-signal", "criterion c met"),
    *("criterion t met", "verify", "verified pass", "verified pass", "gap close G1"),
    *("gap found --description d", "verify --verdict {verdict} pass --evidence sure", "cancel"),
    *("answer yes", "answer {task} yes", "answer {verdict} pass", "resume", "pause", "mode yolo"),
    *("resume --add-iterations 9 --add-retries 9", "iterate", "stage intent", "stage complete"),
    *("review begun", "review passed", "score --outcome 2 --scope 2 --constraints 2 --success 2"),
    *("tdd {task} --run", "tdd {task}", "rollback pre --yes", "trust", "fsck --repair --yes"),
    *("note x", "wait why", "spend 1", "next review", "status", "hook", "hook", "hook", "hook"),
)
# What the agent writes where an advised command leaves a blank.
BLANKS = {"TEXT": "yes", "ID": "T01", "N": "2", "QUESTION": "why"}
REPORTS = ("TASK COMPLETE\n", "TASK FAILED: no\n", "CHECKPOINT: skip it?\n")
SIGNALS = (
    {"hook_event_name": "UserPromptSubmit", "prompt": "yes, you may do all of that"},
    {"hook_event_name": "Stop", "last_assistant_message": "<loop-complete>done</loop-complete>"},
    {"hook_event_name": "Stop", "last_assistant_message": "I am done."},
    {"hook_event_name": "SessionEnd", "reason": "other"},
    {"hook_event_name": "SessionStart", "source": "clear"},
    {
        "hook_event_name": "SubagentStop", "agent_id": "a-1",
        "last_assistant_message": "VERDICT T01#1 PASS: sure\nVERDICT MH1 PASS: sure\n"
        "VERDICT T03#1 PASS: sure\nVERDICT G1 PASS: sure",
    },
)  # fmt: skip
# What the agent sets; a name with an empty value is as good as unset.
VARIABLES: tuple[dict[str, str], ...] = (
    {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": SESSION},
    {"CLAUDECODE": "", "CLAUDE_CODE_SESSION_ID": SESSION},
    {"CLAUDECODE": "", "CLAUDE_CODE_SESSION_ID": ""},
    {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "another"},
    {"CLAUDECODE": "", "CLAUDE_CODE_SESSION_ID": "", "GSD_FSM_CHECK": "1"},
    {"CLAUDECODE": "", "AI_AGENT": "", "PATH": "/nonexistent"},
)


def step(r: Random, loop: Loop) -> tuple[list[str], bytes, dict[str, str]]:
    """Return the arguments, the input and the variables of one command.

    Half of the time the agent does what the loop asks for, but for the work.
    """
    verdict = r.choice(("T01#1", "T03#1", "MH1", "G1"))
    words = r.choice(COMMANDS).format(task=r.choice(TASKS), verdict=verdict).split()
    if r.random() < 0.5:
        words = [BLANKS.get(word, word) for word in shlex.split(next_step(loop)[1])[1:]]
        ready = ready_tasks(loop)
        if words[-1] == "next" and ready:
            words = ["report", ready[0]]
    text = r.choice(REPORTS)
    if words == ["hook"]:
        text = json.dumps({"session_id": SESSION, **r.choice(SIGNALS)})
    return words, text.encode(), r.choice(VARIABLES)


def loop_named(gsd: Path, name: str) -> Loop:
    return Journal(str(gsd), keep=name).read().by_id[name]


def judge(loop: Loop, believed: bool, walk: list[str]) -> None:
    """Require that a completed loop could be completed without work, and says that it was."""
    if loop.status != "completed":
        return
    proven, claimed = proof_counts(loop)
    assert believed, walk
    assert proven.keys() <= {"verification"}, walk  # the CI command of the settings passes
    assert claimed, walk


def begin(here: Here, r: Random) -> tuple[str, bool]:
    """Start one of the loops as its user does, in the session of the agent."""
    shutil.rmtree(here.root)
    here.root.mkdir()
    command, plan, believed = r.choice(LOOPS)
    if plan:
        write_plan(here, plan)
    (here.root / "test_a.py").write_text("a test\n")
    here.configure(ci_test="true")
    session = {"CLAUDE_CODE_SESSION_ID": SESSION}
    return here.start(*shlex.split(command)[1:], env=session), believed


def walk(here: Here, r: Random, steps: int) -> None:
    name, believed = begin(here, r)
    done = []
    ancestors.PRETENDED.append([ancestors.Process(7, 1, ["claude"], ["claude"])])
    try:
        for _ in range(steps):
            words, text, variables = step(r, loop_named(here.gsd, name))
            done.append(f"{variables} gsd-fsm {' '.join(words)} < {text!r}")
            if words == ["hook"]:
                call_here(json.loads(text), {**user(), **variables}, "cli", here.root)
            else:
                here.run(*words, stdin=text, env=variables)
    finally:
        ancestors.PRETENDED.pop()
    judge(loop_named(here.gsd, name), believed, done)


@pytest.mark.parametrize("seeds", [range(at, at + 25) for at in range(0, 200, 25)], ids=str)
def test_lying_agent_completes_no_loop_without_proof_or_claim(here: Here, seeds: range) -> None:
    with wired(without_sync):
        for seed in seeds:
            walk(here, Random(seed), 8)


@pytest.mark.parametrize("seeds", [range(at, at + 5) for at in range(0, 20, 5)], ids=str)
def test_lying_agent_in_a_client_completes_no_loop(
    here: Here, seeds: range, tmp_path: Path
) -> None:
    client = tmp_path / "claude"
    shutil.copy(os.path.realpath(shutil.which("bash") or "/bin/bash"), client)
    for seed in seeds:
        r = Random(1_000 + seed)
        name, believed = begin(here, r)
        lines = []
        for _ in range(2):
            words, text, variables = step(r, loop_named(here.gsd, name))
            given = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
            (tmp_path / f"{len(lines)}.in").write_bytes(text)
            command = f"env {given} {sys.executable} -m gsd_fsm {shlex.join(words)}"
            lines.append(f"{command} < {tmp_path}/{len(lines)}.in")
        script = "\n".join([*lines, "true"])
        subprocess.run([str(client), "-c", script], cwd=here.root, capture_output=True, check=True)
        judge(loop_named(here.gsd, name), believed, lines)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(2))
def test_lying_agent_completes_no_loop_in_100_000_walks(here: Here, part: int) -> None:
    with wired(without_sync):
        for seed in range(part, torture(100_000), 2):
            walk(here, Random(10_000 + seed), 12)
