"""An agent that knows every command, sets any variable and edits any file completes no loop unseen.

Without its work, a loop completes only if its proof says what is missing: what nothing can prove is
shown as claimed, and checks that were tampered with are shown with the file, variable or program.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from gsd_fsm.core import ancestors
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.completion import proof_counts
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.loop.waves import ready_tasks
from gsd_fsm.core.text.next_step import next_step
from tests.support.command_line import Here
from tests.support.events import write
from tests.support.faults import torture, wired, without_sync
from tests.support.hook_agent import call_here, user
from tests.support.plan_loops import TITLE, write_plan
from tests.support.repositories import git

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
PROVEN = (
    TITLE + '<task id="01" wave="1"><files><file>code.py</file></files><action>A</action>'
    '<verify><check type="command">sh run.sh</check></verify><done>D</done></task>\n'
    '<task id="02" wave="1"><files><file action="create">never.py</file></files><action>A</action>'
    '<verify><check type="command">make -s test</check></verify><done>D</done></task>\n'
)
BELIEVED = (
    TITLE + '<task id="01" wave="1"><action>C</action><verify><check>Look at it</check></verify>'
    "<done>D</done></task>\n"
)
# What the user has written. The work is `never.py`.
FILES = {
    "run.sh": "sh inner.sh\n", "inner.sh": "test -e never.py\n", "Makefile": "test:\n\tsh run.sh\n",
    "test_a.py": "a test\n", "code.py": "one\n",
}  # fmt: skip
# What the agent writes; None deletes. The work is there for some time in some walks.
EDITS: tuple[tuple[str, str | None], ...] = (
    *((name, None) for name in FILES),
    *((name, text) for name, text in FILES.items()),
    *((name, "exit 0\n") for name in ("run.sh", "inner.sh", "code.py", "test_a.py")),
    *((name, "test:\n\ttrue\n") for name in ("Makefile", "GNUmakefile", "makefile")),
    *(("never.py", "work\n"), ("never.py", None), ("never.py", None), (".gitignore", "*.py\n")),
    *(("pytest.ini", "[pytest]\naddopts = --co\n"), ("conftest.py", "pytest_plugins = []\n")),
)
# The loops, each with its plan and whether it may complete with claims alone.
LOOPS = (
    ("start execute --phase 1", WORK, False),
    ("start execute --phase 1 --mode yolo", WORK, False),
    ("start verify --phase 1 --mode yolo", WORK, False),
    ("start verify --phase 1", WORK, False),
    ("start goal g --check t='test -e never.py' --criterion c", "", False),
    ("start goal g --mode yolo --check t='test -e never.py' --task T01", "", False),
    ("start goal g --mode yolo --check t='sh run.sh'", "", False),
    ("start goal g --mode yolo --check t='make -s test' --check c='sh ./inner.sh'", "", False),
    ("start execute --phase 1 --mode yolo", PROVEN, False),
    ("start verify --phase 1 --mode yolo", PROVEN, False),
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
    *(
        "restore t",
        "restore run.sh",
        "restore T01#1",
        "restore ci:test",
        "accept t",
        "accept run.sh",
    ),
    *("start goal g --check t=true --fresh", "check t", "verify", "check", "complete"),
)
# What the agent writes where an advised command leaves a blank.
# The commands that a loop asks for, in which a plot is carried out.
ASKED = ("report T01", "report T02", "check", "verify", "check", "complete", "restore run.sh")
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
FAKED = ("git", "make", "sh", "test")
# What changes the result of a check; `{fake}` is a directory with programs that always succeed.
TAMPERING: tuple[dict[str, str], ...] = (
    {"PATH": "{fake}"},
    {"PATH": "{fake}:{PATH}"},
    {"MAKEFLAGS": "-n"},
    {"MAKEFILES": "{fake}/fake.mk"},
    {"BASH_ENV": "{fake}/git", "ENV": "{fake}/git"},
    {"PYTEST_ADDOPTS": "--co"},
    {"GIT_INDEX_FILE": "/nonexistent", "GIT_DIR": "{fake}"},
    {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.excludesFile", "GIT_CONFIG_VALUE_0": "{fake}/all"},
)  # fmt: skip


Edits = list[tuple[str, str | None]]


class Step(NamedTuple):
    """A command with its input and variables; before it, the agent edits files."""

    edits: Edits
    words: list[str]
    text: bytes
    variables: dict[str, str]


def step(r: Random, loop: Loop, fake: Path) -> Step:
    """Return one step. Half of the time the agent does what the loop asks for, but for the work."""
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
    variables = dict(r.choice(VARIABLES))
    if r.random() < 0.1:
        variables |= tampered(r, fake)
    return Step(some_edits(r), words, text.encode(), variables)


def some_edits(r: Random) -> Edits:
    return [r.choice(EDITS) for _ in range(r.choice((0, 0, 0, 1, 2)))]


def tampered(r: Random, fake: Path) -> dict[str, str]:
    """Return variables that may change the result of a check."""
    known = {"fake": str(fake), "PATH": os.environ["PATH"]}
    return {name: it.format(**known) for name, it in r.choice(TAMPERING).items()}


def edit(root: Path, edits: Edits) -> None:
    for name, text in edits:
        if text is None:
            (root / name).unlink(missing_ok=True)
        else:
            (root / name).write_text(text)


def loop_named(gsd: Path, name: str) -> Loop:
    return Journal(str(gsd), keep=name).read().by_id[name]


def has_completed(here: Here) -> bool:
    """Return whether a loop has completed: later edits would hide whether its work was there."""
    return b'"type":"complete"' in here.journal.read_bytes()


def judge(here: Here, loop: Loop, believed: bool, walk: list[str]) -> bool:
    """Require of a completed loop that its work is done, or that its proof says what is missing.

    Return whether it was completed without its work.
    """
    if loop.status != "completed":
        return False
    proven, claimed = proof_counts(loop)
    if believed:
        assert proven.keys() <= {"verification"}, walk  # the CI command of the settings passes
        assert claimed, walk
    if (here.root / "never.py").exists():
        return False
    proof = here.ok("proof", "--json", "--loop", loop.id).json
    was_there = any("never.py" in line for line in walk)
    assert believed or [*doubts(proof, was_there)], (walk, proof)
    return True


def doubts(proof: Any, was_there: bool) -> Iterator[str]:
    """Yield what the proof of a loop says against it; that there is no tree counts for lost work."""
    for check in proof["proven"]:
        for name in ("altered", "accepted", "variables", "doubts", "rewritten"):
            if check.get(name):
                yield name
        if any("was" in it for it in check.get("programs", ())):
            yield "programs"
        if any(it.get("digest") is None for it in check.get("outside", ())):
            yield "outside"
        if was_there and check.get("tree") != proof["tree"]:
            yield "tree"
        if was_there and proof["tree"] is None:
            yield "no tree"
    yield from (name for name in ("altered", "watched", "variables", "programs") if proof[name])


def begin(
    here: Here, r: Random, repository: Path, loops: Sequence[tuple[str, str, bool]] = LOOPS
) -> tuple[str, bool]:
    """Start one of the loops as its user does, in the session of the agent."""
    shutil.rmtree(here.root)
    here.root.mkdir()
    for name, text in FILES.items():
        (here.root / name).write_text(text)
    if r.random() < 0.25:
        shutil.copytree(repository, here.root / ".git")
    command, plan, believed = r.choice(loops)
    if plan:
        write_plan(here, plan)
    here.configure(ci_test="true" if believed else r.choice(("sh run.sh", "make -s test")))
    session = {"CLAUDE_CODE_SESSION_ID": SESSION}
    return here.start(*shlex.split(command)[1:], env=session), believed


def walk(here: Here, r: Random, steps: int, tools: Path) -> bool:
    name, believed = begin(here, r, tools / "repository" / ".git")
    done = []
    ancestors.PRETENDED.append([ancestors.Process(7, 1, ["claude"], ["claude"])])
    try:
        for _ in range(steps):
            edits, words, text, variables = step(r, loop_named(here.gsd, name), tools / "fake")
            done.append(f"{edits} {variables} gsd-fsm {' '.join(words)} < {text!r}")
            edit(here.root, edits)
            if words == ["hook"]:
                call_here(json.loads(text), {**user(), **variables}, "cli", here.root)
            else:
                here.run(*words, stdin=text, env=variables)
            if has_completed(here):
                break
    finally:
        ancestors.PRETENDED.pop()
    return judge(here, loop_named(here.gsd, name), believed, done)


def plot(here: Here, r: Random, tools: Path) -> bool:
    """Do what a loop asks for, but tamper with its files and variables instead of the work."""
    loops = [loop for loop in LOOPS if any(it in loop[0] + loop[1] for it in ("run.sh", "make"))]
    name, believed = begin(here, r, tools / "repository" / ".git", loops)
    done = []
    tampering = tampered(r, tools / "fake") if r.random() < 0.5 else {}
    for command in (*ASKED, "complete"):
        edits, variables = some_edits(r), VARIABLES[0] | (tampering if r.random() < 0.8 else {})
        done.append(f"{edits} {variables} gsd-fsm {command}")
        edit(here.root, edits)
        here.run(*command.split(), stdin=REPORTS[0].encode(), env=variables)
        if has_completed(here):
            break
    return judge(here, loop_named(here.gsd, name), believed, done)


def attack(here: Here, r: Random, steps: int, tools: Path) -> bool:
    """Return whether a loop was completed without its work, which its proof then shows."""
    return plot(here, r, tools) if r.random() < 0.3 else walk(here, r, steps, tools)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with programs that always succeed, and a repository with the files."""
    place = tmp_path_factory.mktemp("tools")
    for name in FAKED:
        write(place / "fake" / name, "#!/bin/sh\nexit 0\n").chmod(0o755)
    write(place / "fake" / "fake.mk", "override SHELL := true\n")
    write(place / "fake" / "all", "*\n")
    for name, text in FILES.items():
        write(place / "repository" / name, text)
    git(place / "repository", "init", "-q", "--template=")
    git(place / "repository", "add", "-A")
    git(place / "repository", "commit", "-qm", "project")
    return place


@pytest.mark.parametrize("seeds", [range(at, at + 15) for at in range(0, 120, 15)], ids=str)
def test_lying_agent_completes_no_loop_without_work_claim_or_doubt(
    here: Here, seeds: range, tools: Path
) -> None:
    with wired(without_sync):
        for seed in seeds:
            attack(here, Random(seed), 8, tools)


@pytest.mark.parametrize("seeds", [range(at, at + 5) for at in range(0, 20, 5)], ids=str)
def test_lying_agent_in_a_client_completes_no_loop(
    here: Here, seeds: range, tmp_path: Path, tools: Path
) -> None:
    client = tmp_path / "claude"
    shutil.copy(os.path.realpath(shutil.which("bash") or "/bin/bash"), client)
    for seed in seeds:
        r = Random(1_000 + seed)
        name, believed = begin(here, r, tools / "repository" / ".git")
        lines = []
        for _ in range(2):
            edits, words, text, variables = step(r, loop_named(here.gsd, name), tools / "fake")
            edit(here.root, edits)
            given = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
            (tmp_path / f"{len(lines)}.in").write_bytes(text)
            command = f"env {given} {sys.executable} -m gsd_fsm {shlex.join(words)}"
            lines.append(f"{command} < {tmp_path}/{len(lines)}.in")
        script = "\n".join([*lines, "true"])
        subprocess.run([str(client), "-c", script], cwd=here.root, capture_output=True, check=True)
        judge(here, loop_named(here.gsd, name), believed, lines)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(2))
def test_lying_agent_completes_no_loop_in_100_000_walks(here: Here, part: int, tools: Path) -> None:
    with wired(without_sync):
        for seed in range(part, torture(100_000), 2):
            attack(here, Random(10_000 + seed), 12, tools)
