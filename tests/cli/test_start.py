"""start: the event it writes, the directory it creates, and the loops of sessions."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path

import pytest

from gsd_fsm.config.prices import price_table
from tests.support.command_line import A, B, Here
from tests.support.foreign_files import RALPH
from tests.support.lines import sums_of
from tests.support.repositories import git


def test_start_writes_lines_of_ascii_json_with_their_author(here: Here) -> None:
    here.ok("start", "goal", "Überall grün 🟢", "--criterion", "c", env={"CLAUDECODE": "1"})
    here.ok("note", "a", env={"CLAUDE_CODE_SESSION_ID": "s-1"})
    raw = here.journal.read_bytes()
    assert raw.isascii()
    first, second, third = events = here.lines()
    assert [event["sum"] for event in events] == sums_of(raw)
    plain = ["v", "seq", "ts", "loop", "type", "by"]
    assert list(first) == [*plain, "data", "sum"]
    assert list(second) == [*plain, "client", "data", "sum"]
    assert list(third) == [*plain, "session", "client", "data", "sum"]
    assert (first["type"], first["loop"], first["by"]) == ("journal", None, "cli")
    assert (second["by"], second["client"]) == ("agent", "claude")
    assert second["data"]["goal"] == "Überall grün 🟢"
    assert (third["by"], third["session"]) == ("human", "s-1")


def test_start_freezes_every_option_into_its_event(here: Here) -> None:
    (here.root / "PLAN.md").write_bytes(b"the plan\n")
    here.ok(
        *("start", "execute", "the goal", "--phase", "3", "--plan", "PLAN.md", "--mode", "yolo"),
        *("--max-iterations", "7", "--max-retries", "2", "--stuck-limit", "4", "--idle-limit", "1"),
        *("--budget", "2.5", "--max-minutes", "30", "--criterion", "c one", "--check", "t=true"),
        *("--task", "T1:First", "--task", "T2", "--step", "look", "--must-not", "break it"),
    )
    data = here.last()["data"]
    assert (data.pop("prices"), data.pop("prices_of")) == tuple(price_table().values())[::-1]
    frozen = data.pop("frozen")
    assert set(frozen) == {"watched", "environment"}
    assert set(frozen["environment"]) >= {"PATH", "HOME"}
    assert data == {
        "kind": "execute", "goal": "the goal", "phase": 3, "mode": "yolo", "auto_loop": True,
        "criteria": [{"name": "c one"}, {"name": "t", "check": "true"}],
        "tasks": [{"id": "T1", "title": "First"}, {"id": "T2"},
                  {"id": "S1", "title": "look", "step": True}],
        "plan": {"file": "PLAN.md", "digest": hashlib.sha256(b"the plan\n").hexdigest()[:16]},
        "must_not": ["break it"], "rules": {"prove": True, "tree": False, "report_grace": 2},
        "limits": {"max_iterations": 7, "max_retries": 2, "max_rounds": 20, "tdd_max_attempts": 5,
                   "stuck_limit": 4, "idle_limit": 1, "budget_usd": 2.5, "max_minutes": 30.0},
    }  # fmt: skip


def test_start_defaults_to_interactive_mode_and_three_iterations_per_task(here: Here) -> None:
    tasks = [word for n in range(9) for word in ("--task", f"T{n}")]
    steps = [word for n in range(10) for word in ("--step", f"step {n}")]
    for options, most in (
        (["execute", *tasks], 27),
        (["execute", *steps], 30),
        (["verify", "--task", "T1"], 20),
        (["goal", "g", *steps], 20),
        (["goal", "g", "--max-iterations", "0"], 0),
    ):
        here.start(*options, "--fresh")
        status = here.status()
        assert (status["mode"], status["max_iterations"]) == ("interactive", most)


def test_start_with_wrong_argument_creates_nothing(here: Here) -> None:
    for wrong, named in (
        ([], "missing argument: one of execute, verify, goal"),
        (["party"], "party"),
        (["goal"], "needs a goal"),
        (["goal", " \n"], "needs a goal"),
        (["goal", "g", "--goal-file", "-"], "twice"),
        (["goal", "--goal-file", "no such file"], "no such file"),
        (["goal", "g" * 30_000], "longer than"),
        (["execute", "--plan", "."], "not a regular file"),
        (["execute", "--task", "../x"], "../x"),
        (["execute", "--task", "T1", "--task", "T1:again"], "duplicate task: T1"),
        (["execute", "--criterion", " "], "empty"),
        (["execute", "--criterion", "a", "--check", "a=true"], "duplicate criterion: a"),
        (["execute", "--check", "no command"], "NAME=CMD"),
        (["execute", "--max-iterations", "9" * 5000], "max-iterations"),
        (["execute", "--budget", "nan"], "not a number from 0 to"),
        (["execute", "--phase", "9" * 5000], "phase"),
        (["execute", "--unknown"], "--unknown"),
        (["execute", "--check", "t=" + "x" * 9000], "at most 8000 characters"),
        (["execute", "--check", "t=\udcff"], "not plain text"),
    ):
        assert named in here.refused(2, "start", *wrong).err, wrong
        assert list(here.root.iterdir()) == []


def test_start_lists_claimed_tasks_and_criteria_and_checks_that_cannot_fail(here: Here) -> None:
    (here.root / "SHAPE.md").write_text(
        "## Criteria\n- It is fast\n- It works: `make; echo done`\n"
    )
    options = ("--criterion", "c", "--check", "t=pytest | tee log", "--check", "u=grep '|| true' a")
    tasks = ("--task", "T1", "--step", "look", "--fresh")
    masked = "warning: check 't' cannot fail: '| tee log' masks its exit code"
    for words, expected in (
        (("goal", "g", *tasks), []),
        (("goal", "g", *options, *tasks), [masked, "claimed: criterion c (no machine check)"]),
        (("goal", "g", "--shape-file", "SHAPE.md", *options, *tasks), [
            masked, "warning: check 'It works' cannot fail: '; echo done' masks its exit code",
            "claimed: criteria c, It is fast (no machine check)",
        ]),
        (("execute", *tasks), ["claimed: tasks T1, S1 (no machine check)"]),
        (("verify", *options[:2], *tasks), ["claimed: criterion c (no machine check)"]),
    ):  # fmt: skip
        assert here.ok("start", *words).out.splitlines()[2:] == expected, words
    facts = here.ok("start", "execute", *options, *tasks, "--json").json
    assert list(facts)[4:] == [
        *("notes", "warnings", "manual", "claimed_tasks", "claimed_criteria"),
    ]
    assert (facts["claimed_tasks"], facts["claimed_criteria"]) == (["T1", "S1"], ["c"])
    here.ok("start", "goal", "g", "--fresh")
    here.ok("stage", "intent")
    here.ok("stage", "shape")
    shown = here.ok("stage", "decompose", "--shape-file", "SHAPE.md").out
    assert "Warning: check 'It works' cannot fail: '; echo done' masks its exit code." in shown


def test_start_with_a_check_in_a_directory_that_cannot_be_recorded_creates_nothing(
    here: Here,
) -> None:
    git(here.root, "init", "-q", "--template=")
    here.where = here.root / os.fsdecode(b"odd \xff")
    here.where.mkdir()
    assert "cannot be recorded" in here.refused(2, "start", "goal", "g", "--check", "t=true").err
    assert not here.gsd.exists()
    here.start("goal", "g", "--criterion", "c")


def test_start_creates_private_gsd_at_the_top_of_the_repository(here: Here) -> None:
    git(here.root, "init", "-q", "--template=")
    here.where = here.root / "deep" / "down"
    here.where.mkdir(parents=True)
    before = os.umask(0)
    try:
        here.ok("start", "execute", "--task", "T1")
        for _ in range(70):
            here.ok("note", "fill")
    finally:
        os.umask(before)
    state = Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm"
    assert len(list((state / "journals").iterdir())) == 1
    assert [stat.S_IMODE(path.stat().st_mode) for path in (here.gsd, state)] == [0o700, 0o700]
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in here.gsd.iterdir()}
    files.pop(".gitignore")
    assert files == dict.fromkeys(["journal.jsonl", "journal.lock", "snapshot.json"], 0o600)
    assert git(here.root, "status", "--porcelain", "-uall") == "?? .gsd/.gitignore"


def test_start_keeps_mode_and_gitignore_of_existing_gsd(here: Here) -> None:
    here.gsd.mkdir()
    here.gsd.chmod(0o755)
    ignore = here.gsd / ".gitignore"
    ignore.write_bytes(b"mine \xff\n*.tmp")
    here.ok("start", "execute", "--task", "T1")
    assert stat.S_IMODE(here.gsd.stat().st_mode) == 0o755
    content = ignore.read_bytes()
    lines = content.split(b"\n")
    assert lines[:2] == [b"mine \xff", b"*.tmp"]
    wanted = {b"journal.jsonl", b"journal.lock", b"hook.log", b"STOP", b"replaced/"}
    assert wanted <= set(lines)
    assert {
        name for name in lines[2:-1] if b"journal" not in name and b"snapshot" not in name
    } <= wanted
    here.ok("start", "execute", "--task", "T1", "--fresh")
    assert ignore.read_bytes() == content


def test_start_is_refused_while_stop_file_exists(here: Here) -> None:
    here.start("execute", "--task", "T1")
    (here.gsd / "STOP").touch()
    assert "STOP" in here.refused(4, "start", "execute", "--task", "T1", "--fresh").err
    (here.gsd / "STOP").unlink()
    here.ok("start", "execute", "--task", "T1", "--fresh")


def test_start_completes_a_journal_whose_creation_was_interrupted(here: Here) -> None:
    here.start("goal", "g")
    header = here.journal.read_bytes().split(b"\n")[0]
    for torn in (b"", header[:1], header[:-1], b"\0" * 600):
        here.journal.write_bytes(torn)
        here.start("goal", "again")
        assert (here.lines()[0]["type"], here.last()["type"]) == ("journal", "start")
        assert here.status()["goal"] == "again"


def test_start_gives_every_loop_and_journal_its_own_id(here: Here, tmp_path: Path) -> None:
    first = here.start("execute", "--task", "T1")
    here.where = tmp_path / "second"
    here.where.mkdir()
    assert here.start("execute", "--task", "T1") != first
    other = json.loads((here.where / ".gsd/journal.jsonl").read_bytes().split(b"\n")[0])
    assert other["data"]["id"] != here.lines()[0]["data"]["id"]


# sessions


@pytest.mark.parametrize(
    ("command", "move", "session"),
    [
        (["start", "goal", "two"], [], A),
        (["start", "goal", "two"], ["pause"], {}),
        (["import", "ralph.md"], ["wait", "Which one?"], A),
    ],
)
def test_start_and_import_offer_status_resume_and_fresh_and_each_of_them_works(
    here: Here, command: list[str], move: list[str], session: dict[str, str]
) -> None:
    (here.root / "ralph.md").write_text(RALPH)
    first = here.start("goal", "one", env=session)
    assert here.status()["owner"] == ("session-a" if session else None)
    if move:
        here.ok(*move, env=session)
    refusal = here.refused(4, *command, env=session).err
    assert ("this session" if session else "no owner") in refusal
    offered = re.findall(r"gsd-fsm ((?:status|resume) --loop [\w-]+)", refusal)
    assert offered == [f"status --loop {first}", f"resume --loop {first}"]
    for words in offered:
        here.ok(*words.split(), env=session)
    assert here.status()["status"] == "running"
    assert f"'{command[0]} … --fresh' cancels it" in refusal
    assert f"Cancelled loop {first}." in here.ok(*command, "--fresh", env=session).out
    (cancel,) = [event for event in here.lines() if event["type"] == "cancel"]
    assert (cancel["loop"], cancel["data"]) == (first, {"reason": f"{command[0]} --fresh"})
    assert here.run("--loop", first, "status", "--check").code == 13


def test_start_fresh_cancels_only_the_conflicting_loop(here: Here) -> None:
    here.configure(views=["state"])
    other = here.start("goal", "one", env=B)
    free = here.start("goal", "nobody's")
    here.start("goal", "two", env=A)
    before, files = here.journal.read_bytes(), set(here.root.rglob("*"))
    here.start("goal", "three", "--fresh", env=A)
    assert here.journal.read_bytes().startswith(before)
    assert files <= set(here.root.rglob("*"))
    for loop in (other, free):
        assert here.ok("--loop", loop, "status", "--json").json["status"] == "running"


def test_command_acts_on_own_loop_then_the_only_one_then_asks(here: Here) -> None:
    one = here.start("goal", "one", env=A)
    assert here.ok("note", "n", "--json", env=B).json["loop"] == one
    assert here.ok("note", "n", "--json").json["loop"] == one
    two = here.start("goal", "two", env=B)
    assert here.ok("note", "n", "--json", env=A).json["loop"] == one
    third = {"CLAUDE_CODE_SESSION_ID": "session-c"}
    for env in ({}, third):
        for command in (
            ["note", "n"],
            ["status", "--check"],
            ["next"],
            ["complete"],
            ["check"],
            ["why"],
        ):
            refused = here.refused(2, *command, env=env).err
            for words in (f"{one} (goal, running)", f"{two} (goal, running)", "--loop"):
                assert words in refused
    assert here.ok("--loop", two, "note", "n", "--json", env=third).json["loop"] == two
    assert here.ok("note", "n", "--loop", two, "--json", env=A).json["loop"] == two
    assert one in here.refused(3, "--loop", "lp-other", "note", "n").err
    for wrong in ("../lp", "a b", "", "é", "x" * 65):
        here.refused(2, "--loop", wrong, "status")


def test_resume_of_a_session_with_another_loop_is_refused(here: Here) -> None:
    loop = here.start("goal", "g", env=A)
    here.start("goal", "other", env=B)
    refused = here.refused(4, "--loop", loop, "resume", env=B).err
    assert "already belongs to this session" in refused
    here.start("goal", "free")
    assert "no owner" in here.refused(4, "--loop", loop, "resume").err


def test_empty_session_id_owns_nothing_and_an_invalid_one_is_its_digest(here: Here) -> None:
    for session in ("", "  ", "a b\x1b[31m", "x" * 500, "tab\there"):
        env = {"CLAUDE_CODE_SESSION_ID": session}
        here.start("goal", "g", "--fresh", env=env)
        owner = here.status()["owner"]
        if session.strip():
            assert re.fullmatch("x-[0-9a-f]{16}", owner)
        else:
            assert (owner, "session" in here.last()) == (None, False)
        here.ok("cancel", env=env)


def test_start_at_a_terminal_prints_a_line_for_each_text_within_80_columns(here: Here) -> None:
    person = {"FORCE_COLOR": "1", "NO_COLOR": "1"}
    lines = here.ok("start", "Fix login", "--budget", "5", env=person).out.splitlines()
    loop = here.status()["loop"]
    assert {f"Started goal loop {loop}.", f"Loop {loop} is running."} <= {*lines}
    assert max(map(len, lines)) <= 80
