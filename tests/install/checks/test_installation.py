"""`doctor` runs only the hook that this user installed, and finds out what is wrong with it."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.project import state_directory
from gsd_fsm.install import status_line
from gsd_fsm.install.checks import installation as doctor
from gsd_fsm.install.hook_entries import CODE
from tests.support.client_settings import Client, everywhere, program
from tests.support.command_line import Here

IDLE = "import sys\nPARTS = {}\ndef main():\n    sys.stdin.readline()\n"
NOT_RUN = "differs from what this version of 'gsd-fsm init' writes; not run"


@pytest.fixture
def installed(here: Here) -> Here:
    here.ok("init", "--yes")
    return here


def rows(here: Here, *args: str, code: int = 0, **how: Any) -> dict[str, dict[str, Any]]:
    """Return the results by name; of several with the same name the last."""
    answer = here.run("doctor", *args, "--json", **how)
    assert answer.code == code, answer
    assert answer.json["ok"] is (code == 0)
    return {row["name"]: row for row in answer.json["rows"]}


def failed(found: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in found.items() if row["state"] == "failed"]


def test_doctor_without_a_hook_names_the_command_to_run(here: Here, client: Client) -> None:
    assert "Run: gsd-fsm init" in here.refused(3, "doctor").err
    client.write(b"{broken")
    assert "line 1, column 2" in here.refused(3, "doctor").err


def test_doctor_passes_a_fresh_installation_and_changes_nothing(here: Here, client: Client) -> None:
    here.ok("init", "--allow", "--yes")
    before = client.all_files()
    cwd = Path.cwd()
    shown = here.ok("doctor").out
    assert Path.cwd() == cwd
    assert client.all_files() == before
    assert "  trial run       ✓ blocks the stop of a live loop (" in shown
    assert "  hook file       ✓ ~/.local/share/gsd-fsm/hook/gsd_fsm_hook.py\n" in shown
    assert "✗" not in shown
    assert shown.endswith("No problems found.\n")


def test_doctor_shows_every_result_and_each_fix_once_on_a_narrow_terminal(
    installed: Here, client: Client
) -> None:
    client.hook.unlink()
    installed.patch.setenv("FORCE_COLOR", "1")
    installed.patch.setenv("COLUMNS", "80")
    shown = installed.run("doctor").out
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.count("    → gsd-fsm init --scope local") == 1
    assert lines[-1] == "2 checks failed; 1 note."
    (note,) = (line for line in shown.splitlines() if "asks before each command" in line)
    assert "\x1b[31m" not in note  # red is for failures


def test_doctor_runs_the_hook_of_each_scope(here: Here, client: Client) -> None:
    here.ok("init", "--scope", "user", "--yes")
    here.ok("init", "--scope", "project", "--yes")
    found = here.ok("doctor", "--json").json["rows"]
    assert {row["where"] for row in found} == {"user settings", "project settings", "here"}
    assert [row["name"] for row in found if row["ms"] is not None] == ["trial run"] * 2
    here.where = client.home
    assert failed(rows(here)) == []


def test_doctor_reports_missing_parts(installed: Here, client: Client) -> None:
    client.hook.unlink()
    document = client.read()
    del document["hooks"]["SessionEnd"]
    client.write(document)
    found = rows(installed, code=7)
    assert failed(found) == ["events", "hook file", "trial run"]
    assert found["hook file"]["told"] == f"{client.hook} is missing"
    assert found["events"]["told"] == "not registered for SessionEnd"


def test_doctor_reports_a_hook_that_never_blocks(installed: Here, client: Client) -> None:
    client.hook.write_text(IDLE)
    client.write(everywhere({**client.hooks()[0], "timeout": 1}))
    found = rows(installed, code=7)
    assert failed(found) == ["timeout", "hook file", "trial run"]
    assert found["hook file"]["told"] == f"{client.hook} is not from this version"
    assert found["trial run"]["told"] == "it did not block the stop of a live loop"
    fixes = {row["fix"] for row in found.values() if row["state"] == "failed"}
    assert fixes == {"gsd-fsm init --scope local"}
    shown = installed.run("doctor").out
    assert shown.count("→ gsd-fsm init --scope local\n") == 1
    assert shown.endswith("3 checks failed; 1 note.\n")
    installed.ok("init", "--yes")
    assert failed(rows(installed)) == []


def test_doctor_reports_a_missing_or_other_interpreter(installed: Here, client: Client) -> None:
    link = installed.root / "my python"
    link.symlink_to(client.hooks()[0]["command"])
    installed.ok("init", "--python", str(link), "--yes")
    link.unlink()
    found = rows(installed, code=7)
    assert found["interpreter"]["told"] == f"{link} does not exist"
    assert "cannot be started" in found["trial run"]["told"]
    link.symlink_to("/bin/sh")
    assert rows(installed, code=7)["interpreter"]["told"] == f"{link} is not a Python interpreter"


def test_doctor_notes_conda_and_missing_bytecode(installed: Here, client: Client) -> None:
    inside = installed.root / "conda" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    (installed.root / "conda" / "conda-meta").mkdir()
    inside.symlink_to(client.hooks()[0]["command"])
    notes = installed.ok("init", "--python", str(inside), "--yes", "--json").json["notes"]
    assert [note for note in notes if note.startswith(f"{inside} belongs to a conda")]
    shutil.rmtree(client.hook.parent / "__pycache__")
    found = rows(installed)
    assert [found[name]["state"] for name in ("interpreter", "bytecode")] == ["note", "note"]
    assert "conda" in found["interpreter"]["told"]
    assert found["bytecode"]["fix"] == "gsd-fsm init --scope local"


@pytest.mark.parametrize(
    ("turn_off", "code", "end"),
    [
        (lambda here: (here.gsd / "STOP").touch(), 0, "STOP."),
        (lambda here: here.patch.setenv("GSD_FSM_DISABLE", "1"), 0, "disabled by GSD_FSM_DISABLE=1."),
        (lambda _: shutil.rmtree(state_directory()), 0, "not trusted: the hook ignores it."),
        (lambda here: Client(here.root).write({"disableAllHooks": True}, "user"), 7,
         "disableAllHooks is set: the client runs no hooks."),
    ],
    ids=["STOP", "variable", "trust", "disableAllHooks"],
)  # fmt: skip
def test_doctor_names_the_switch_that_turns_a_working_hook_off(
    here: Here, turn_off: Callable[[Here], object], code: int, end: str
) -> None:
    here.start("goal", "g")
    here.ok("init", "--yes")
    turn_off(here)
    answer = here.run("doctor")
    assert answer.code == code
    assert ("→ rm " in answer.out) is (end == "STOP.")
    last = answer.out.splitlines()[-1]
    assert last.startswith("The installation is correct, but ")
    assert last.endswith(end)


# commands of others


@pytest.mark.parametrize("is_known", [False, True])
def test_doctor_runs_nothing_of_a_clone(here: Here, client: Client, is_known: bool) -> None:
    mark = here.root / "mark"
    spy = str(program(here.root / "bin" / "spy", f"#!/bin/sh\necho run >> '{mark}'\n"))
    if is_known:
        here.ok("init", "--scope", "project", "--yes")
    for hook in (
        {"command": spy, "args": ["-I", "-S", "-c", CODE, "/x", "settings-project"]},
        {"command": spy, "args": ["/x/gsd_fsm_hook.py"]},
        {"command": f"{spy} /x/gsd_fsm_hook.py"},
    ):
        client.write(everywhere({"type": "command", **hook}), "project")
        found = rows(here, code=7)
        assert found["command"]["told"] == NOT_RUN
        assert found["command"]["fix"] == "gsd-fsm init --scope project"
        assert all(row["ms"] is None for row in found.values())
    assert not mark.exists()


def test_doctor_runs_a_plugin_as_the_client_would(here: Here, client: Client) -> None:
    here.ok("init", "--plugin", "a plugin", "--yes")
    assert rows(here, "--plugin", "a plugin")["events"]["where"] == "plugin"
    here.refused(2, "doctor", "--plugin", str(here.root))
    client.enable_plugin(here.root / "a plugin")
    assert failed(rows(here)) == []
    (here.root / "a plugin" / "hooks" / "hooks.json").write_text("{")
    assert "hooks.json: line 1" in here.refused(3, "doctor").err


@pytest.mark.parametrize(("changed", "is_named"), [("hook", True), ("command", False)])
def test_doctor_does_not_run_a_plugin_that_was_changed(
    here: Here, client: Client, tmp_path: Path, changed: str, is_named: bool
) -> None:
    directory, mark = tmp_path / "plugin", tmp_path / "mark"
    here.ok("init", "--plugin", str(directory), "--yes")
    hooks = directory / "hooks" / "hooks.json"
    evil = f"open({str(mark)!r}, 'w').close()"
    if changed == "hook":
        (directory / "hooks" / "gsd_fsm_hook.py").write_text(f"{evil}\ndef main(): pass\n")
    else:
        hooks.write_text(hooks.read_text().replace("gsd_fsm_hook.main()", evil))
    client.enable_plugin(directory)
    found = rows(here, *(["--plugin", str(directory)] if is_named else []), code=7)
    assert found["command"]["told"] == NOT_RUN
    fix = f"gsd-fsm init --plugin {directory}" if is_named else "claude plugin marketplace update"
    assert found["command"]["fix"].startswith(fix)
    assert not mark.exists()


def status_row(here: Here) -> doctor.Row:
    """Return the result for the status line, without a run of the hook."""
    sources = [s for s in doctor._sources(str(here.root), None) if "statusLine" in s.document]
    return doctor._check_status_line(sources[0])


def test_doctor_runs_our_status_line_and_says_if_there_is_none(installed: Here) -> None:
    found = rows(installed)["status line"]
    assert (found["where"], found["state"], found["ms"]) == ("here", "ok", None)
    assert "init --status-line" in found["told"]
    installed.ok("init", "--status-line", "--yes")
    row = status_row(installed)
    assert (row.where, row.state, row.told) == ("local settings", "ok", "shows a live loop")
    assert row.ms is not None


def test_doctor_reports_a_status_line_that_shows_no_loop(here: Here) -> None:
    real = f'exec "{sys.executable}" "$@"\n'
    python = program(here.root / "my python", f"#!/bin/sh\n{real}")
    here.patch.setattr(sys, "executable", str(python))
    here.ok("init", "--status-line", "--yes")
    python.write_text(f'#!/bin/sh\ncase "$*" in *statusline*) echo hi; exit;; esac\n{real}')
    row = status_row(here)
    assert (row.state, row.told) == ("failed", "it does not show a live loop")
    assert row.fix == "gsd-fsm init --scope local --status-line"


def test_doctor_does_not_run_the_status_line_of_others(here: Here, client: Client) -> None:
    here.ok("init", "--status-line", "--yes")
    script = program(here.root / "evil", f"#!/bin/sh\ntouch '{here.root}/mark'\n")
    like_ours = shlex.join([str(script), *shlex.split(status_line.command())[1:]])
    document = client.read()
    for command, told, fix in (
        (like_ours, NOT_RUN, "gsd-fsm init --scope local --status-line"),
        (str(script), "belongs to another program; not run", ""),
    ):
        document["statusLine"] = {"type": "command", "command": command}
        client.write(document)
        row = status_row(here)
        assert (row.told, row.fix, row.state == "failed") == (told, fix, bool(fix))
    assert not (here.root / "mark").exists()


@pytest.fixture
def below(repository: Here) -> Here:
    """A directory of a monorepo, where a client does not read the settings of the root."""
    repository.where = repository.root / "packages" / "app"
    repository.where.mkdir(parents=True)
    return repository


def test_doctor_and_start_below_the_root_name_a_hook_that_is_not_loaded_there(
    below: Here, client: Client
) -> None:
    fix = "gsd-fsm init --scope user"
    shown = below.ok("start", "goal", "g").err
    assert f"the hook is not installed. Run: {fix}" in shown
    assert f"Run: {fix}" in below.refused(3, "doctor").err
    (note,) = (it for it in below.ok("init", "--yes", "--json").json["notes"] if "started" in it)
    assert f"start it in {below.root}, or run: {fix}" in note
    client.hooks("local")
    problem = f"client started here does not load the hook, which is installed for {below.root}"
    assert (
        f"A {problem}. To install it, run: {fix}." in below.ok("start", "goal", "g", "--fresh").out
    )
    found = rows(below, code=7)
    assert failed(found) == ["loaded hook"]
    assert (found["loaded hook"]["told"], found["loaded hook"]["fix"]) == (f"a {problem}", fix)
    assert found["events"]["where"] == f"local settings of {below.root}"
    assert "The installation is correct, but a client started here" in below.run("doctor").out


@pytest.mark.parametrize("by", ["root", "user", "plugin", "own settings"])
def test_doctor_and_start_pass_a_hook_that_a_client_started_there_loads(
    below: Here, client: Client, tmp_path: Path, by: str
) -> None:
    if by == "plugin":
        below.ok("init", "--plugin", str(tmp_path / "plugin"), "--yes")
        client.enable_plugin(tmp_path / "plugin")
    else:
        below.ok("init", "--scope", "user" if by == "user" else "local", "--yes")
    if by == "root":
        below.where = below.root
    if by == "own settings":
        shutil.copytree(client.files["local"].parent, Path(below.where, ".claude"))
    assert "No session owns it yet" in below.ok("start", "goal", "g").out
    assert "loaded hook" not in rows(below, code=7 if by == "own settings" else 0)


def test_doctor_and_start_below_the_root_ignore_switches_of_the_root(
    below: Here, client: Client
) -> None:
    below.ok("init", "--scope", "user", "--yes")
    client.write({"disableAllHooks": True})
    assert "switch" not in rows(below)
    below.where = below.root
    assert failed(rows(below, code=7)) == ["switch"]
