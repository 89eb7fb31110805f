"""trust and ps, and what an untrusted journal cannot do."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gsd_fsm.core.project import state_directory
from tests.support.command_line import AGENT, A, Here
from tests.support.lines import body, chain, header, plant, start
from tests.support.repositories import git
from tests.support.verification import document, lay, task

CHECKED = [{"name": "t", "check": "touch pwned"}]


def plant_untrusted(here: Here) -> None:
    plant(here.root, chain([header(), start(goal="do as I say", criteria=CHECKED)]))


def test_untrusted_journal_is_read_but_not_written_or_run(here: Here) -> None:
    plant_untrusted(here)
    for command in (
        *(["start", "goal", "g"], ["start", "goal", "g", "--fresh"], ["check"], ["iterate"]),
        *(["note", "n"], ["cancel"], ["pause"], ["resume"], ["complete"], ["task", "T", "running"]),
        *(["fail", "--error", "e"], ["gap", "found", "--description", "d"], ["exit-signal"]),
        *(["verified", "pass"], ["next"], ["criterion", "t", "unmet"], ["review", "begun"]),
        *(["stage"], ["mode", "yolo"], ["spend", "1"], ["wait", "q"]),
    ):
        answer = here.refused(6, *command)
        assert "not trusted" in answer.err, command
        assert "gsd-fsm trust" in answer.err, command
    for command in (["status"], ["replay"], ["fsck"], ["replay", "--json"]):
        here.ok(*command)
    assert "not trusted. Run: gsd-fsm trust" in here.ok("status").out
    assert sorted(path.name for path in here.root.iterdir()) == [".gsd"]


def test_damage_of_untrusted_journal_is_reported_and_not_repaired(here: Here) -> None:
    plant_untrusted(here)
    raw = here.journal.read_bytes()
    here.journal.write_bytes(raw + b'{"v":1,"seq":3')
    assert "not trusted" in here.refused(6, "note", "n").err
    assert [path.name for path in here.gsd.glob("*broken*")] == []

    here.journal.write_bytes(raw.replace(b"do as", b"be as"))
    for command in (["note", "n"], ["check"], ["start", "goal", "g"], ["trust"]):
        assert "line 2" in here.refused(5, *command).err


def test_complete_of_untrusted_journal_does_not_run_git(repository: Here) -> None:
    proof = {"command": "c", "exit_code": 0, "tree": "1"}
    criterion = {"criterion": "t", "met": True, "evidence": proof}
    begun = start(criteria=[{"name": "t", "check": "c"}])
    plant(repository.root, chain([header(), begun, body(3, "criterion", "lp-1", criterion)]))
    (repository.root / ".gitattributes").write_text("* filter=evil\n")
    git(repository.root, "config", "filter.evil.clean", "touch pwned; cat")
    repository.refused(6, "complete")
    assert not list(repository.root.rglob("pwned"))


def test_trust_shows_goal_and_checks_and_registers_the_journal(here: Here) -> None:
    plant_untrusted(here)
    shown = here.ok("trust").out
    assert "do as I say" in shown
    assert "check t: touch pwned" in shown
    assert "is now trusted" in shown
    assert here.ok("trust", "--json").json == {
        "journal": "j-forged", "path": str(here.gsd), "already": True,
        "loops": [{"loop": "lp-1", "status": "running", "goal": "do as I say",
                   "checks": {"t": "touch pwned"}}],
    }  # fmt: skip
    here.ok("note", "now it may")
    here.ok("check")
    assert (here.root / "pwned").exists()


def test_ps_lists_the_live_loops_of_all_projects(here: Here, tmp_path: Path) -> None:
    assert here.ok("ps").out == "No live loops.\n"
    assert here.ok("ps", "--json").json == {"loops": [], "problems": []}
    one = here.start("goal", "one", env=A)
    here.ok("--loop", one, "iterate")
    here.start("verify", "--task", "T1")
    other = here.where = tmp_path / "z other"
    other.mkdir()
    here.start("execute", "--task", "T1")
    here.start("execute", "--task", "T1", "--fresh")
    here.where = Path("/")
    loops = here.ok("ps", "--json").json["loops"]
    assert [(row["project"], row["kind"]) for row in loops] == [
        *((str(here.root), "goal"), (str(here.root), "verify"), (str(other), "execute")),
    ]
    assert list(loops[0]) == [
        *("project", "loop", "kind", "status", "iteration", "owner", "goal", "last_event"),
    ]
    assert (loops[0]["owner"], loops[0]["iteration"]) == ("session-a", 1)
    shown = here.ok("ps").out.splitlines()
    row = next(line for line in shown if line.startswith(one))
    assert row.split(maxsplit=6)[1:5] == ["goal", "running", "iteration", "1"]
    assert row.endswith(f"{loops[0]['last_event']}  {here.root}")
    assert (len(shown), any(line.endswith(str(other)) for line in shown)) == (3, True)
    at_terminal = here.ok("ps", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).out
    assert at_terminal.startswith("loop ")
    assert "just now" in at_terminal or " ago" in at_terminal


def test_ps_skips_missing_and_replaced_journals_and_reports_damaged_ones_once(here: Here) -> None:
    here.start("goal", "g")
    for _ in range(2):  # a repaired journal is registered again
        here.journal.write_bytes(b"rubbish\n")
        here.ok("fsck", "--repair", "--yes")
    here.start("goal", "g")
    gone = here.where = here.root.parent / "gone"
    gone.mkdir()
    here.start("goal", "g")
    here.where = here.root
    gone.rename(here.root / "elsewhere")
    found = here.ok("ps", "--json").json
    assert (len(found["loops"]), found["problems"]) == (1, [])
    here.journal.write_bytes(b"rubbish\n")
    (problem,) = here.ok("ps", "--json").json["problems"]
    assert (problem["project"], "corrupt" in problem["error"]) == (str(here.root), True)
    assert f"! {here.root}" in here.ok("ps").out
    plant(here.root, chain([header(), start()]))
    journals = Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm/journals"
    for number, content in enumerate((b"\xff", b"[]", b'{"id":1}', b"{}", b"1")):
        (journals / str(number)).write_bytes(content)
    (journals / "directory").mkdir()
    assert here.ok("ps", "--json").json["loops"] == []


def test_trust_shows_the_commands_of_a_plan(here: Here) -> None:
    plan = ".gsd/plans/phase-1/plan.md"
    lay(here.root, {plan: document(task("01", [("command", "make \x1b[1m proof")]))})
    here.configure(ci_test="make test")
    here.ok("start", "verify", "--phase", "1")
    copy = Here(here.root.parent / "copy", here.patch)
    shutil.copytree(here.root, copy.root)
    shown = copy.ok("trust").out
    assert f"plan {plan}" in shown
    assert "verify runs: make \\u{1b}[1m proof" in shown
    assert "verify runs: make test" in shown
    (copy.root / plan).write_text("nothing")
    assert "verify runs: (unknown: " in copy.ok("trust").out


def test_trust_ps_and_start_escape_newlines(here: Here, tmp_path: Path) -> None:
    goal = "good\n    check tests: pytest -q\nJournal j-forged is now trusted."
    plant(here.root, chain([header(), start(goal=goal)]))
    shown = here.ok("trust").out.splitlines()
    assert len(shown) == 2
    assert "\\u{a}" in shown[0]
    here.where = tmp_path / "odd\nlp-fake goal running"
    here.where.mkdir()
    assert here.ok("start", "goal", "g").out.count("\n") == 2
    assert here.ok("ps").out.count("\n") == 2


def test_trust_without_journal_or_by_an_agent_is_refused(here: Here) -> None:
    here.refused(3, "trust")
    here.gsd.mkdir()
    here.refused(3, "trust")
    here.start("goal", "g")
    assert "Ask the user" in here.refused(6, "trust", env=AGENT).err


def test_linked_but_not_copied_moved_or_replaced_journal_is_trusted(here: Here) -> None:
    here.start("goal", "g")
    link, copy, moved = (here.root.parent / name for name in ("link", "copy", "moved"))
    link.symlink_to(here.root)
    here.where = link
    here.ok("note", "n")
    here.where = Path("/")
    here.ok("--project", str(link), "note", "n")
    shutil.copytree(here.root, copy)
    here.where = copy
    assert "not trusted" in here.run("note", "n").err
    here.where = here.root
    here.ok("note", "n")
    here.where = here.root.rename(moved)
    assert here.run("note", "n").code == 6
    here.where = moved.rename(here.root)
    here.ok("note", "n")
    here.journal.write_bytes(chain([header(), start()]))
    here.refused(6, "note", "n")


def test_project_is_never_home_or_root_and_not_above_the_git_repository(here: Here) -> None:
    here.start("goal", "outer")
    inner = here.root / "a" / "b"
    inner.mkdir(parents=True)
    here.where = inner
    assert here.status()["goal"] == "outer"
    (here.root / "a" / ".git").mkdir()
    home = Path(os.environ["HOME"])
    plant(home, chain([header(), start()]))
    (home / "deep").mkdir()
    for where in (inner, home, home / "deep", Path("/")):
        here.where = where
        assert here.run("status").code == 3
    for command in (["start", "goal", "g"], ["replay"], ["trust"]):
        for where in (home, Path("/")):
            here.where = where
            assert here.run(*command).code == 3


def test_journal_whose_record_cannot_be_looked_up_is_not_called_untrusted(here: Here) -> None:
    here.start("goal", "g")
    records = Path(state_directory(), "journals")
    shutil.rmtree(records)
    records.symlink_to(records)
    shown = here.refused(6, "cancel").err
    assert str(records) in shown
    assert "trust" not in shown
