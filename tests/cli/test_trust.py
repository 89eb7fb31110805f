from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import AGENT, Here, git
from tests.support.forge import body, chain, header, plant, start

CHECKED = [{"name": "t", "check": "touch pwned"}]


def unregistered(here: Here) -> None:
    plant(here.root, chain([header(), start(goal="do as I say", criteria=CHECKED)]))


def test_an_unregistered_journal_is_read_but_not_written_or_run(here: Here) -> None:
    unregistered(here)
    for command in (
        *(["start", "goal", "g"], ["start", "goal", "g", "--fresh"], ["check"], ["iterate"]),
        *(["note", "n"], ["cancel"], ["pause"], ["resume"], ["complete"], ["task", "T", "running"]),
        *(["fail", "--error", "e"], ["gap", "found", "--description", "d"], ["exit-signal"]),
        *(
            ["verified", "pass"],
            ["next"],
            ["criterion", "t", "unmet"],
            ["review", "begun"],
            ["stage"],
            ["mode", "yolo"],
        ),
        *(["spend", "1"], ["wait", "q"]),
    ):
        answer = here.refused(6, *command)
        assert "not trusted" in answer.err, command
        assert "gsd-fsm trust" in answer.err, command
    for command in (["status"], ["replay"], ["fsck"], ["replay", "--json"]):
        here.ok(*command)
    assert "not trusted here. Run: gsd-fsm trust" in here.ok("status").out
    assert sorted(path.name for path in here.root.iterdir()) == [".gsd"]


def test_even_a_torn_tail_of_an_unregistered_journal_is_left_alone(here: Here) -> None:
    unregistered(here)
    raw = here.journal.read_bytes() + b'{"v":1,"seq":3'
    here.journal.write_bytes(raw)
    for command in (["note", "n"], ["start", "goal", "g"], ["cancel"]):
        assert "not trusted" in here.refused(6, *command).err
    assert [path.name for path in here.gsd.glob("*broken*")] == []


def test_trust_shows_the_goal_and_the_checks_and_registers(here: Here) -> None:
    unregistered(here)
    shown = here.ok("trust").out
    assert "do as I say" in shown
    assert "check t: touch pwned" in shown
    assert "is now trusted" in shown
    assert here.ok("trust", "--json").json == {
        "journal": "j-forged",
        "path": str(here.gsd),
        "already": True,
        "loops": [
            {
                "loop": "lp-1",
                "status": "running",
                "goal": "do as I say",
                "checks": {"t": "touch pwned"},
            }
        ],
    }
    here.ok("note", "now it may")
    here.ok("check")
    assert (here.root / "pwned").exists()


def test_trust_needs_a_journal(here: Here) -> None:
    here.refused(3, "trust")
    here.gsd.mkdir()
    here.refused(3, "trust")


def test_a_copied_or_moved_project_is_not_trusted(here: Here) -> None:
    here.start("goal", "g")
    copy = here.root.parent / "copy"
    shutil.copytree(here.root, copy)
    here.where = copy
    assert "not trusted" in here.run("note", "n").err
    here.where = here.root
    here.ok("note", "n")
    moved = here.root.parent / "moved"
    here.root.rename(moved)
    here.where = moved
    assert here.run("note", "n").code == 6
    moved.rename(here.root)
    here.where = here.root
    here.ok("note", "n")


def test_a_swapped_journal_at_a_trusted_place_is_not_trusted(here: Here) -> None:
    here.start("goal", "g")
    here.journal.write_bytes(chain([header(), start()]))
    here.refused(6, "note", "n")


def test_the_same_project_through_a_link_is_the_same(here: Here) -> None:
    here.start("goal", "g")
    link = here.root.parent / "link"
    link.symlink_to(here.root)
    here.where = link
    here.ok("note", "n")
    here.where = Path("/")
    here.ok("--project", str(link), "note", "n")


def test_the_settings_of_an_untrusted_project_are_not_obeyed(here: Here) -> None:
    unregistered(here)
    here.gsd.joinpath("config.toml").write_text("max_iterations = 0\nthis is no setting\n")
    shown = here.ok("config", "--json").json
    assert shown["trusted"] is False
    assert {setting["source"] for setting in shown["settings"].values()} == {"default"}
    assert "ignored" in here.ok("config").out
    assert "not trusted" in here.refused(6, "start", "goal", "g").err
    here.ok("trust")
    assert "config.toml:2" in here.refused(2, "config").err


def test_damage_is_reported_before_trust(here: Here) -> None:
    unregistered(here)
    here.journal.write_bytes(here.journal.read_bytes().replace(b"do as", b"be as"))
    for command in (["note", "n"], ["check"], ["start", "goal", "g"], ["trust"]):
        assert "line 2" in here.refused(5, *command).err


def test_registrations_are_private_and_outside_of_the_project(here: Here) -> None:
    before = os.umask(0)
    try:
        here.start("goal", "g")
    finally:
        os.umask(before)
    state = Path(os.environ["XDG_STATE_HOME"]) / "gsd-fsm"
    assert state.stat().st_mode & 0o777 == 0o700
    assert len(list((state / "journals").iterdir())) == 1


@pytest.mark.parametrize("there", ["home", "root"])
def test_home_and_root_are_never_projects(here: Here, there: str) -> None:
    home = Path(os.environ["HOME"])
    plant(home, chain([header(), start()]))
    here.where = {"home": home, "root": Path("/")}[there]
    for command in (["status"], ["start", "goal", "g"], ["replay"], ["trust"]):
        assert here.run(*command).code == 3
    here.where = home / "deep"
    here.where.mkdir()
    assert here.run("status").code == 3


def test_the_search_goes_up_to_the_git_top_and_no_further(here: Here) -> None:
    loop = here.start("goal", "outer")
    here.where = here.root / "a" / "b"
    here.where.mkdir(parents=True)
    assert here.status()["loop"] == loop
    (here.root / "a" / ".git").mkdir()
    assert here.run("status").code == 3
    here.start("goal", "inner")
    assert (here.root / "a/.gsd/journal.jsonl").is_file()
    assert here.status()["goal"] == "inner"


def test_git_is_not_asked_about_a_journal_that_is_not_trusted(repository: Here) -> None:
    proof = {"command": "c", "exit_code": 0, "tree": "1"}
    criterion = {"criterion": "t", "met": True, "evidence": proof}
    events = [
        header(),
        start(criteria=[{"name": "t", "check": "c"}]),
        body(3, "criterion", "lp-1", criterion),
    ]
    plant(repository.root, chain(events))
    (repository.root / ".gitattributes").write_text("* filter=evil\n")
    git(repository.root, "config", "filter.evil.clean", "touch pwned; cat")
    repository.refused(6, "complete")
    assert not list(repository.root.rglob("pwned"))


def test_what_trust_shows_cannot_pass_for_more_lines(here: Here) -> None:
    goal = "good\n    check tests: pytest -q\nJournal j-forged is now trusted."
    plant(here.root, chain([header(), start(goal=goal)]))
    shown = here.ok("trust").out.splitlines()
    assert len(shown) == 2
    assert "\\u{a}" in shown[0]


def test_trust_shows_the_commands_that_a_plan_would_run(here: Here) -> None:
    check = '<check type="command">make \x1b[1m proof</check>'
    plan = here.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    plan.parent.mkdir(parents=True)
    plan.write_text(
        f'<task id="01" wave="1">\n<action>x</action>\n<verify>{check}</verify>\n<done>y</done>\n</task>\n'
    )
    (here.gsd / "config.toml").write_text('ci_test = "make test"\n')
    here.ok("start", "verify", "--phase", "1")
    copy = Here(here.root.parent / "copy", here.patch)
    shutil.copytree(here.root, copy.root)
    shown = copy.ok("trust").out
    assert "plan .gsd/plans/phase-1/plan.md" in shown
    assert "verify runs: make \\u{1b}[1m proof" in shown
    assert "verify runs: make test" in shown
    plan = copy.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    plan.write_text("nothing")
    assert "verify runs: (unknown: " in copy.ok("trust").out


def test_trust_by_agent_is_refused(here: Here) -> None:
    here.start("goal", "g")
    assert "Ask the user" in here.refused(6, "trust", env=AGENT).err
