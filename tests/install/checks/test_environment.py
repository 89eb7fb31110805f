from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.project import find_gsd, state_directory
from gsd_fsm.install import status_line
from gsd_fsm.install.checks.environment import Row, check_environment, file_system_of
from gsd_fsm.install.hook_entries import CAP
from gsd_fsm.install.permissions import rules
from tests.support.client_settings import listing, program
from tests.support.command_line import Here
from tests.support.hook_agent import Agent
from tests.support.lines import chain, header, plant, start


def around(here: Here, **documents: dict[str, object]) -> dict[str, list[Row]]:
    """Return the results by name."""
    found: dict[str, list[Row]] = {}
    for row in check_environment(str(here.root), documents, "gsd-fsm init"):
        found.setdefault(row.name, []).append(row)
    return found


def test_environment_without_a_project_is_ok(here: Here) -> None:
    user = {"permissions": {"allow": rules()}}
    assert {row.state for rows in around(here, user=user).values() for row in rows} == {"ok"}


def test_environment_names_the_source_of_the_cap(here: Here) -> None:
    nearer = {"user": {"env": {CAP: "9"}}, "local": {"env": {CAP: 12}}}
    for value, documents, told in (
        ("x", {}, "8 blocks"),
        ("30", {}, "30 blocks in a row, from the environment"),
        ("30", nearer, "12 blocks in a row, from local"),
        ("30", {"user": {"env": {CAP: 0.0}}}, "any number"),
    ):
        here.patch.setenv(CAP, value)
        assert told in around(here, **documents)["client's cap"][0].told


def test_environment_names_the_time_of_the_last_call(here: Here, agent: Agent) -> None:
    here.start("goal", "g", "--mode", "yolo", env=agent.shell)
    (row,) = around(here)["calls"]
    assert (row.state, row.at) == ("note", "")
    agent.send(agent.stop_signal())
    (row,) = around(here)["calls"]
    assert (row.state, row.at) == (
        "ok",
        json.loads(here.journal.read_bytes().splitlines()[-1])["ts"],
    )


def test_environment_notes_an_idle_limit_above_the_cap(here: Here) -> None:
    for idle, cap, note in (
        ("20", "12", "(20) is above the cap of 12"),
        ("0", "12", "(none) is above the cap of 12"),
        *(("12", "12", ""), ("0", "0", "")),
    ):
        here.start("goal", "g", "--idle-limit", idle, "--fresh")
        notes = around(here, user={"env": {CAP: cap}}).get("idle limit", [])
        assert [note in row.told for row in notes] == ([True] if note else [])


def test_environment_checks_the_journal_and_does_not_change_it(here: Here) -> None:
    plant(here.root, chain([header(), start(goal="g")]))
    (trust,) = around(here)["trust"]
    assert "not trusted" in trust.told
    assert trust.off
    here.journal.write_bytes(here.journal.read_bytes().replace(b'"g"', b'"h"'))
    before = listing(here.gsd)
    (row,) = around(here)["journal"]
    assert (row.state, row.fix) == ("failed", "gsd-fsm fsck --repair")
    assert "corrupt at line 2" in row.told
    assert listing(here.gsd) == before


def test_environment_notes_a_missing_journal_and_reports_one_that_is_not_a_file(here: Here) -> None:
    here.start("goal", "g")
    missing = f"the journal {Journal(str(here.gsd)).read().journal_id} is missing"
    here.journal.unlink()
    (row,) = around(here)["journal"]
    assert (row.state, row.told) == ("note", missing)
    here.journal.mkdir()
    assert around(here)["journal"][0].state == "failed"
    shutil.rmtree(here.gsd)
    (row,) = around(here)["project"]
    assert (row.state, row.told) == ("note", missing)
    shutil.rmtree(state_directory())
    here.gsd.mkdir()
    assert around(here)["journal"][0].told == "no loop has been started here yet"


def test_environment_notes_a_command_that_agents_cannot_find(here: Here, tmp_path: Path) -> None:
    inside = program(tmp_path / "env" / "bin" / "gsd-fsm", "#!/bin/sh\n").parent
    (inside.parent / "pyvenv.cfg").touch()
    before = os.environ["PATH"]
    for path, state, told, fix in (
        (before, "ok", "", ""),
        (f"{inside}:{before}", "ok", "", ""),
        (str(inside), "note", "only in a virtual environment", ""),
        (str(tmp_path), "note", "not on the PATH", "pipx install"),
    ):
        here.patch.setenv("PATH", path)
        (row,) = around(here)["gsd-fsm on PATH"]
        assert row.state == state
        assert told in row.told
        assert fix in row.fix


def test_environment_notes_a_view_that_cannot_be_written(here: Here) -> None:
    here.configure(views=["state", "progress"])
    loop = here.start("goal", "g")
    views = here.root / ".loop"
    assert "view" not in around(here)
    shutil.rmtree(views)
    views.write_text("in the way")
    here.ok("iterate")
    assert [(row.state, row.told) for row in around(here)["view"]] == [
        ("note", f".loop/{name} does not show loop {loop}")
        for name in ("state.json", "PROGRESS.md")
    ]


def test_environment_notes_a_network_disk(here: Here, tmp_path: Path) -> None:
    here.start("goal", "g")
    mounts = tmp_path / "mountinfo"
    here.patch.setattr("gsd_fsm.install.checks.environment._MOUNTS", mounts)
    assert "disk" not in around(here)
    mounts.write_text(f"1 1 0:1 / {find_gsd(str(here.root))} rw - nfs4 host:/x rw\n")
    assert "is on nfs4" in around(here)["disk"][0].told


MOUNTS = [
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    r"30 22 0:40 / /mnt/my\040share rw - cifs //server/share rw",
    "31 22 0:41 / /mnt/win rw - 9p C: rw",
    "32 31 0:42 / /mnt/win/local rw - ext4 /dev/sdb rw",
    "33 22 0:43 / /over rw - ext4 /dev/sdc rw",
    "34 33 0:44 / /over rw - nfs4 host:/x rw",
    "broken line",
]


def test_file_system_of_a_path_is_that_of_the_nearest_mount() -> None:
    for path, kind in (
        ("/home/me/.gsd", "ext4"),
        ("/mnt/my share/p/.gsd", "cifs"),
        ("/mnt/win/p/.gsd", "9p"),
        ("/mnt/window/.gsd", "ext4"),
        ("/mnt/win/local/.gsd", "ext4"),
        ("/over/.gsd", "nfs4"),
    ):
        assert file_system_of(path, MOUNTS) == kind
        assert file_system_of(path, []) == ""


def test_environment_notes_a_token_limit_that_only_a_transcript_could_report(
    here: Here, agent: Agent
) -> None:
    options = ("--mode", "yolo", "--max-tokens", "9")
    loop = here.start("goal", "g", *options, env=agent.shell)
    told = f"the usage of loop {loop} is not reported: the token limit cannot be enforced"
    assert (
        around(here)["budget"][0].told == f"the usage of loop {loop} is known after its first stop"
    )
    for _ in range(2):
        agent.send(agent.stop_signal())
    (row,) = around(here)["budget"]
    assert (row.state, row.told) == ("note", told)
    assert row.fix == "Keep the transcript of the session: nothing else reports tokens."


def test_environment_notes_a_budget_that_a_status_line_of_the_user_hides(
    here: Here, agent: Agent
) -> None:
    loop = here.start("goal", "g", "--mode", "yolo", "--budget", "5", env=agent.shell)
    for _ in range(2):
        agent.send(agent.stop_signal())
    foreign = {"statusLine": {"type": "command", "command": "mine"}}
    (row,) = around(here, local=foreign)["budget"]
    assert row.fix == "Let your status line also run: gsd-fsm statusline"
    ours = {"statusLine": {"type": "command", "command": status_line.command()}}
    (row,) = around(here, local=ours)["budget"]
    assert (row.state, row.told) == ("ok", f"the status line will report the usage of loop {loop}")
