"""The command that `doctor` names for a problem fixes it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.project import state_directory
from gsd_fsm.install import status_line
from gsd_fsm.install.hook_entries import CAP
from tests.support.client_settings import Client, program
from tests.support.command_line import A, Here
from tests.support.hook_agent import Agent
from tests.support.hook_project import signal_of
from tests.support.terminal import at_terminal

OLD_HOOK = "HOOK_VERSION = 1\nPARTS = {}\ndef main():\n    input()\n"


class Scene:
    """An installation whose user pastes commands into a shell."""

    def __init__(self, here: Here, bin_directory: Path) -> None:
        self.here = here
        self.client = Client(here.root)
        self.bin = bin_directory
        self.gsd_fsm()
        here.patch.setenv("PATH", f"{bin_directory}:{os.environ['PATH']}")

    def gsd_fsm(self) -> Path:
        command = shlex.join([sys.executable, "-m", "gsd_fsm"])
        return program(self.bin / "gsd-fsm", f'#!/bin/sh\nexec {command} "$@"\n')

    def claude(self, **answers: str) -> None:
        """Install a client that prints or does this for its first argument."""
        cases = [f"{name.replace('_', '-')}) {does} ;;\n" for name, does in answers.items()]
        version = "--version) echo '2.1.325 (Claude Code)' ;;\n"
        script = f'#!/bin/sh\ncase "$1" in\n{"".join(cases)}{version}*) exit 1 ;;\nesac\n'
        program(self.bin / "claude", script)

    def doctor(self) -> dict[str, dict[str, Any]]:
        """Return the problems by name."""
        return problems(self.here.run("doctor", "--json").out)

    def cure(self, name: str, command: str = "") -> str:
        """Run the fix of this problem in a shell, then doctor; return the fix."""
        row = self.doctor()[name]
        assert row["state"] in ("note", "failed")
        fix = str(row["fix"])
        assert "\n" not in fix
        assert command in fix
        self.paste(fix)
        assert name not in self.after, self.after
        return fix

    def paste(self, fix: str) -> None:
        """Run this command in a shell and agree to what is asked, then run doctor."""
        code, shown = at_terminal(["/bin/sh", "-c", fix], b"y\ny\n", self.here.where)
        assert code == 0, shown
        self.after = self.doctor()


def problems(answer: str) -> dict[str, dict[str, Any]]:
    rows = json.loads(answer)["rows"]
    return {row["name"]: row for row in rows if row["state"] != "ok"}


@pytest.fixture
def scene(here: Here, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    scene = Scene(here, tmp_path_factory.mktemp("programs"))
    here.ok("init", "--allow", "--yes")
    return scene


# the project, its hook and its journal


def test_fixes_of_a_moved_project_install_and_trust_it_at_its_new_place(scene: Scene) -> None:
    here = scene.here
    here.start("goal", "g", env=A)
    new = here.root.with_name("moved to")
    here.root.rename(new)
    here.root = here.where = new
    found = scene.doctor()
    assert set(found) == {"command", "trust"}
    assert "was installed before the project was moved" in found["command"]["told"]
    assert scene.cure("command") == "gsd-fsm init --scope local"
    assert scene.cure("trust") == "gsd-fsm trust"
    assert set(scene.after) == {"calls"}
    client = Client(new)
    client.write({**client.read(), "mine": 1})
    here.ok("uninstall", "--yes")
    assert client.read() == {"mine": 1}


def test_fix_of_a_missing_hook_file_writes_it(scene: Scene) -> None:
    scene.client.hook.unlink()
    scene.cure("hook file", "gsd-fsm init --scope local")
    assert scene.after == {}


def test_fix_of_an_older_hook_replaces_it(scene: Scene) -> None:
    scene.client.hook.write_text(OLD_HOOK)
    scene.cure("hook file", "gsd-fsm init --scope local")
    assert scene.after == {}


def test_fix_of_a_missing_interpreter_chooses_another(scene: Scene) -> None:
    link = scene.bin / "a python"
    link.symlink_to(scene.client.hooks()[0]["command"])
    scene.here.ok("init", "--python", str(link), "--yes")
    link.unlink()
    scene.cure("interpreter", "gsd-fsm init --scope local")
    assert scene.after == {}


def test_fix_of_an_untrusted_journal_trusts_it(scene: Scene) -> None:
    scene.here.start("goal", "g", env=A)
    shutil.rmtree(state_directory())
    scene.cure("trust", "gsd-fsm trust")


@pytest.mark.parametrize("below", ["", "packages"])
def test_fix_of_a_stop_file_removes_it(scene: Scene, below: str) -> None:
    here = scene.here
    here.start("goal", "g", env=A)
    (here.gsd / "STOP").touch()
    here.where = here.root / below
    here.where.mkdir(parents=True, exist_ok=True)
    fix = scene.cure("switch", "rm ")
    assert (fix == "rm .gsd/STOP") is (not below)


def test_fix_below_the_root_installs_a_hook_that_is_loaded_there(scene: Scene) -> None:
    scene.here.start("goal", "g", env=A)
    scene.here.where = scene.here.root / "packages"
    scene.here.where.mkdir()
    scene.cure("loaded hook", "gsd-fsm init --scope user")


def test_fix_of_permissions_below_the_root_changes_settings_that_are_loaded_there(
    scene: Scene,
) -> None:
    scene.here.ok("uninstall", "--yes")
    scene.here.ok("init", "--yes")
    scene.here.where = scene.here.root / "packages"
    scene.here.where.mkdir()
    (scene.here.root / ".gsd").mkdir(exist_ok=True)
    assert scene.cure("permissions") == "gsd-fsm init --scope user --allow"


# settings and the hook


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Scene], None]:
    """Return a function that damages the local settings."""

    def damage(scene: Scene) -> None:
        document = scene.client.read()
        change(document)
        scene.client.write(document)

    return damage


LINE = ("python", "-I", "-c", status_line._CODE, "/gone", "statusline")
DAMAGE: dict[str, Callable[[Scene], object]] = {
    "events": changed(lambda it: it["hooks"].pop("SessionEnd")),
    "command": changed(lambda it: it["hooks"]["Stop"][0]["hooks"][0].update(command="/x")),
    "timeout": changed(lambda it: it["hooks"]["Stop"][0]["hooks"][0].update(timeout=9)),
    "status line": changed(
        lambda it: it.update(statusLine={"type": "command", "command": shlex.join(LINE)})
    ),
    "bytecode": lambda scene: shutil.rmtree(scene.client.hook.parent / "__pycache__"),
    "switch": lambda scene: scene.client.write({"disableAllHooks": True}, "user"),
    "permissions": changed(lambda it: it.pop("permissions")),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_fix_of_changed_settings_restores_the_installation(scene: Scene, name: str) -> None:
    DAMAGE[name](scene)
    assert scene.cure(name).startswith("gsd-fsm init --scope local")
    assert scene.after == {}


def test_fix_of_a_rule_that_allows_everything_replaces_it(scene: Scene) -> None:
    for scope in ("user", "local"):
        scene.client.write(
            {**scene.client.read(), "permissions": {"allow": ["Bash(gsd-fsm:*)", "Bash(ls)"]}}
            if scope == "local"
            else {"permissions": {"allow": ["Bash(gsd-fsm:*)"]}},
            scope,
        )
    assert scene.cure("permissions") == "gsd-fsm init --scope local --allow"
    assert scene.client.read("user") == {}
    assert "Bash(ls)" in scene.client.read()["permissions"]["allow"]


def test_fix_of_settings_that_are_not_json_opens_them(scene: Scene) -> None:
    path = scene.client.write(b'{"model": opus}\n', "user")
    editor = program(scene.bin / "edit", '#!/bin/sh\nsed -i \'s/opus/"opus"/\' "$1"\n')
    scene.here.patch.setenv("VISUAL", str(editor))
    assert scene.cure("settings") == f"{editor} {path}"
    assert scene.client.read("user") == {"model": "opus"}


def test_fix_of_an_interpreter_that_may_not_last_chooses_another(scene: Scene) -> None:
    inside = scene.here.root / "conda" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    (scene.here.root / "conda" / "conda-meta").mkdir()
    inside.symlink_to(scene.client.hooks()[0]["command"])
    scene.here.ok("init", "--python", str(inside), "--yes")
    scene.cure("interpreter", "gsd-fsm init --scope local")


def test_fix_of_a_missing_installation_installs_the_hook(scene: Scene) -> None:
    scene.here.ok("uninstall", "--yes")
    refused = scene.here.refused(3, "doctor").err
    scene.paste(refused.partition("Run: ")[2].strip())
    assert scene.after == {}


# plugins


def test_fix_of_a_changed_plugin_directory_writes_it_again(scene: Scene) -> None:
    scene.here.ok("uninstall", "--yes")
    checkout = scene.bin / "a checkout"
    market = checkout / ".claude-plugin" / "marketplace.json"
    scene.here.ok("init", "--plugin", str(checkout / "plugin"), "--yes")
    market.parent.mkdir()
    market.write_text('{"plugins": [{"name": "gsd-fsm", "source": "./plugin"}]}')
    scene.client.enable_plugin(scene.bin / "not read")
    scene.client.read_plugin_in_place(checkout)
    (checkout / "plugin" / "hooks" / "gsd_fsm_hook.py").write_text(OLD_HOOK)
    scene.cure("command", "gsd-fsm init --plugin ")


def test_fix_of_a_changed_plugin_of_the_client_installs_it_again(scene: Scene) -> None:
    scene.here.ok("uninstall", "--yes")
    good, cached = scene.bin / "good", scene.bin / "cached"
    for directory in (good, cached):
        scene.here.ok("init", "--plugin", str(directory), "--yes")
    scene.client.enable_plugin(cached)
    (cached / "hooks" / "gsd_fsm_hook.py").write_text(OLD_HOOK)
    install = f"cp -R {good}/. {cached}"
    scene.claude(plugin=f'[ "$2" != install ] || {install}')
    fix = scene.cure("command", "claude plugin marketplace update team && ")
    assert fix.endswith("claude plugin install gsd-fsm@team")


# client, environment and project


def test_fix_of_a_missing_command_links_it_into_a_directory_of_the_path(scene: Scene) -> None:
    directory = scene.client.home / ".local" / "bin"
    directory.mkdir(parents=True)
    system = "/usr/local/bin:/usr/bin:/bin"
    scene.here.patch.setenv("PATH", f"{directory}:{system}")
    installed = scene.gsd_fsm()
    scene.here.patch.setattr(sys, "argv", [str(installed)])
    fix = scene.doctor()["gsd-fsm on PATH"]["fix"]
    assert fix == f"ln -sf {installed} {directory / 'gsd-fsm'}"
    scene.paste(fix)
    assert "gsd-fsm on PATH" not in scene.after


def test_fix_of_a_missing_client_installs_it(scene: Scene) -> None:
    system = "/usr/bin:/bin"
    scene.here.patch.setenv("PATH", f"{scene.bin}:{system}")
    new = scene.bin / "new"
    program(new, "#!/bin/sh\necho 2.1.325\n")
    program(scene.bin / "npm", f"#!/bin/sh\ncp {new} {scene.bin / 'claude'}\n")
    assert scene.cure("client").startswith("npm install --global ")


@pytest.mark.parametrize("says", ["2.1.9 (Claude Code)", "1.0.128"])
def test_fix_of_an_old_client_updates_it(scene: Scene, says: str) -> None:
    scene.claude(update=f'printf "#!/bin/sh\\necho 2.2.0\\n" > {scene.bin / "claude"}')
    script = scene.bin / "claude"
    script.write_text(script.read_text().replace("2.1.325 (Claude Code)", says))
    assert "as an error" in scene.doctor()["client"]["told"]
    assert scene.cure("client") == "claude update"


def test_fix_of_a_hook_that_was_never_called_starts_a_session(scene: Scene) -> None:
    scene.here.start("goal", "g", "--mode", "yolo", env=A)
    scene.claude()
    hook = scene.client.hooks()[0]
    signal = scene.bin / "signal.json"
    signal.write_text(signal_of(scene.here.root, session="session-a"))
    run = f"exec {shlex.join([hook['command'], *hook['args']])} < {signal}"
    script = scene.bin / "claude"
    script.write_text(script.read_text().replace("*) exit 1", f'"") {run}'))
    assert scene.cure("calls") == "claude"
    assert scene.after == {}
    scene.here.start("goal", "later", "--mode", "yolo", "--fresh", env=A)
    assert "calls" in scene.doctor()


@pytest.mark.parametrize(
    ("idle", "cap", "fix"),
    [
        ("20", "", "gsd-fsm init --scope local --raise-cap 20"),
        ("0", "", "gsd-fsm init --scope local --raise-cap 0"),
        ("20", "12", "gsd-fsm init --scope project --raise-cap 20"),
    ],
)
def test_fix_of_an_idle_limit_above_the_cap_raises_the_cap(
    scene: Scene, idle: str, cap: str, fix: str
) -> None:
    if cap:
        scene.client.write({"env": {CAP: cap}}, "project")
    scene.here.start("goal", "g", "--idle-limit", idle, env=A)
    assert scene.cure("idle limit") == fix


def test_fix_of_a_budget_without_a_source_adds_the_status_line(scene: Scene, agent: Agent) -> None:
    scene.here.start("goal", "g", "--mode", "yolo", "--budget", "5", env=agent.shell)
    for _ in range(2):
        agent.send(agent.stop_signal())
    assert scene.cure("budget") == "gsd-fsm init --scope local --status-line"


def test_fix_of_a_corrupt_journal_repairs_it(scene: Scene) -> None:
    scene.here.start("goal", "g", env=A)
    good = scene.here.journal.read_bytes()
    scene.here.journal.write_bytes(good.replace(b'"g"', b'"h"'))
    assert scene.cure("journal") == "gsd-fsm fsck --repair"


@pytest.mark.parametrize("place", [".loop", ".loop/state.json"])
def test_fix_of_an_outdated_view_moves_the_blocking_file(scene: Scene, place: str) -> None:
    scene.here.configure(views=["state"])
    scene.here.start("goal", "g", env=A)
    view = scene.here.root / place
    shutil.rmtree(scene.here.root / ".loop")
    if place == ".loop":
        view.write_text("in the way")
    else:
        view.mkdir(parents=True)
    scene.here.ok("iterate")
    assert scene.cure("view") == f"mv {place} {place}.old"
    scene.here.ok("iterate")
    assert (scene.here.root / ".loop" / "state.json").is_file()


def test_fix_of_a_variable_that_disables_the_hook_unsets_it(scene: Scene) -> None:
    scene.here.patch.setenv("GSD_FSM_DISABLE", "1")
    fix = scene.doctor()["switch"]["fix"]
    assert fix == "unset GSD_FSM_DISABLE"
    script = ["/bin/sh", "-c", f"{fix}; gsd-fsm doctor --json"]
    assert problems(at_terminal(script, b"", scene.here.where)[1]) == {}
