from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gsd_fsm import __version__
from gsd_fsm.cli import COMMANDS
from gsd_fsm.install.hook_entries import EVENTS
from gsd_fsm.install.hook_file import packaged_hook
from gsd_fsm.install.plugin import MARKETPLACE
from scripts.build_plugin import build
from tests.support.client_settings import listing, program
from tests.support.command_line import A, Here
from tests.support.hook_agent import PYTHON, user
from tests.support.hook_project import signal_of

ROOT = Path(__file__).parents[2]
NAMES = ("start", "loop", "execute", "verify", "status", "resume", "pause", "cancel", "why")


@pytest.fixture
def plugin(here: Here) -> Path:
    here.ok("init", "--plugin", "a plugin", "--yes")
    return here.root / "a plugin"


def test_plugin_has_manifest_hooks_commands_agent_and_license(plugin: Path) -> None:
    manifest = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("gsd-fsm", __version__)
    assert manifest["author"] == {"name": "gsd-fsm"}
    hooks = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]
    assert set(hooks) == set(EVENTS)
    assert (plugin / "hooks" / "gsd_fsm_hook.py").read_bytes() == packaged_hook().read_bytes()
    assert {path.stem for path in (plugin / "commands").iterdir()} == set(NAMES)
    page = (plugin / "README.md").read_text("utf-8")
    assert set(re.findall(r"`/gsd-fsm:([a-z]+)`", page)) == set(NAMES)
    assert [path.stem for path in (plugin / "agents").iterdir()] == ["executor"]
    assert (plugin / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_plugin_hook_blocks_the_stop_of_a_loop(plugin: Path, here: Here) -> None:
    hook = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]["Stop"][0]["hooks"][0]
    args = [arg.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) for arg in hook["args"]]
    assert args[-1] == "plugin"
    loop = here.start("goal", "g", "--mode", "yolo", env=A)
    signal = signal_of(here.root, session="session-a").encode()
    done = subprocess.run([hook["command"], *args], input=signal, capture_output=True, check=True)
    assert "Continuing goal loop" in done.stdout.decode()
    assert (here.last()["loop"], here.last()["type"]) == (loop, "iteration")


def test_plugin_and_marketplace_of_the_repository_match_their_sources() -> None:
    found = listing(ROOT / "plugin")
    files = {f"plugin/{name}": it for name, it in found.items() if "__pycache__" not in name}
    files[MARKETPLACE] = (ROOT / MARKETPLACE).read_bytes()
    assert files == build(), "run: make hook"
    (entry,) = json.loads(files[MARKETPLACE])["plugins"]
    assert (ROOT / entry["source"] / ".claude-plugin" / "plugin.json").is_file()


def portable_stop(here: Here, path: str, event: str = "Stop") -> subprocess.CompletedProcess[str]:
    """Run the hook of the plugin of this repository as the client would, with this PATH."""
    hooks = json.loads((ROOT / "plugin" / "hooks" / "hooks.json").read_text())["hooks"]
    (hook,) = hooks[event][0]["hooks"]
    args = [arg.replace("${CLAUDE_PLUGIN_ROOT}", str(here.root / "plugin")) for arg in hook["args"]]
    signal = signal_of(here.root, session="session-a").replace('"Stop"', f'"{event}"')
    command = [shutil.which(hook["command"]) or "", *args]
    return subprocess.run(
        command, cwd=here.root, env={**user(), "PATH": path}, input=signal,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_plugin_of_the_repository_finds_a_python_that_can_run_it(
    here: Here, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "plugin", here.root / "plugin")
    here.start("goal", "g", "--mode", "yolo", env=A)
    old = program(tmp_path / "old [*]" / "python3", "#!/bin/sh\nexit 2\n").parent
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "python").symlink_to(PYTHON)
    done = portable_stop(here, f"{old}:{tmp_path / 'new'}:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Continuing goal loop" in done.stdout


def test_plugin_without_a_python_lets_the_agent_stop_and_reports_why(
    here: Here, tmp_path: Path
) -> None:
    mark = here.root / "mark"
    others = tmp_path / "WindowsApps", here.root, here.root / "bin"
    for directory in others:
        program(directory / "python3", f"#!/bin/sh\ntouch '{mark}'\n")
    done = portable_stop(here, ":".join(["bin", ".", "", *map(str, others), str(tmp_path)]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = portable_stop(here, str(tmp_path), "SessionStart")
    assert (done.returncode, done.stderr) == (0, "")
    assert "no python3 on the PATH" in json.loads(done.stdout)["systemMessage"]
    assert not mark.exists()


@pytest.mark.parametrize("name", NAMES)
def test_plugin_command_is_allowed_and_pastes_no_user_text(plugin: Path, name: str) -> None:
    text = (plugin / "commands" / f"{name}.md").read_text("utf-8")
    front, body = text.removeprefix("---\n").split("\n---\n", 1)
    assert re.search(r"^description: \S", front, re.MULTILINE)
    (allowed,) = re.findall(r"^allowed-tools: (.*)$", front, re.MULTILINE)
    rules = [re.fullmatch(r"Bash\(gsd-fsm ([a-z -]+):\*\)", it) for it in allowed.split(", ")]
    # Commands that can run any program need the user's approval.
    approved = {rule[1] for rule in rules if rule}
    assert len(approved) == len(rules)
    asked = {"start", "check", "verify", "tdd", "stage", "stage decompose"}
    assert not approved & asked
    assert {it.split()[0] for it in approved} <= set(re.findall(r"gsd-fsm ([a-z-]+)", body))
    begins = name in ("start", "loop", "execute", "verify")
    assert (name in approved) is not begins
    begun = {"start": "start", "loop": "start goal"}.get(name, f"start {name}")
    assert f"gsd-fsm {begun if begins else name}" in body
    assert re.search(r"Never read or write\s+files in\s+`\.gsd`", body)
    assert set(re.findall(r"gsd-fsm ([a-z-]+)", body)) <= set(COMMANDS)
    # The user's text is only in the prompt for the model, between marks.
    assert body.count("$ARGUMENTS") == ("$ARGUMENTS" in body)
    assert re.search(r"<request>\s*\$ARGUMENTS\s*</request>", body) or "$ARGUMENTS" not in body
    assert not re.search(r"`[^`]*\$[^`]*`", body)
    assert "!`" not in body


def test_plugin_commands_pass_user_text_through_standard_input(plugin: Path) -> None:
    start, resume = ((plugin / "commands" / f"{n}.md").read_text() for n in ("start", "resume"))
    assert "--mode yolo" in start
    assert re.search(r"--goal-file - .*<<'(GOAL_\w+)'\n(.*\n)+ *\1\n", start)
    assert re.search(r"gsd-fsm answer --file - <<'(ANSWER_\w+)'\n(.*\n)+ *\1\n", resume)


def test_plugin_written_again_updates_only_old_files(plugin: Path, here: Here) -> None:
    before = listing(plugin)
    assert "up to date" in here.ok("init", "--plugin", "a plugin").out
    (plugin / "commands" / "why.md").write_text("old")
    (plugin / "mine.txt").write_text("mine")
    assert "--yes" in here.refused(2, "init", "--plugin", "a plugin").err
    here.ok("init", "--plugin", "a plugin", "--yes")
    assert listing(plugin) == {**before, "mine.txt": b"mine"}


def test_portable_plugin_written_again_stays_portable(here: Here) -> None:
    shutil.copytree(ROOT / "plugin", here.root / "plugin")
    before = listing(here.root / "plugin")
    (here.root / "plugin" / "commands" / "why.md").write_text("old")
    here.ok("init", "--plugin", "plugin", "--yes")
    written = listing(here.root / "plugin")
    assert {name: written[name] for name in before} == before
    here.ok("init", "--plugin", "plugin", "--python", PYTHON, "--yes")
    assert "gsd-fsm: no python3" not in (here.root / "plugin" / "hooks" / "hooks.json").read_text()


def test_plugin_refuses_a_directory_that_is_not_ours_unless_it_is_empty(here: Here) -> None:
    other = here.root / "other"
    other.mkdir()
    (other / "file").touch()
    refused = here.refused(2, "init", "--plugin", "other", "--yes").err
    assert "neither empty nor a gsd-fsm plugin" in refused
    (other / ".claude-plugin").mkdir()
    (other / ".claude-plugin" / "plugin.json").write_text('{"name": "other"}')
    here.refused(2, "init", "--plugin", "other", "--yes")
    assert "not a directory" in here.refused(2, "init", "--plugin", "other/file", "--yes").err
    assert sorted(path.name for path in other.iterdir()) == [".claude-plugin", "file"]
    (here.root / "empty").mkdir()
    assert here.ok("init", "--plugin", "empty", "--yes", "--json").json["changed"] is True


def test_plugin_loop_command_asks_for_limits_and_names_the_stages(plugin: Path) -> None:
    asks = (plugin / "commands" / "loop.md").read_text("utf-8")
    for choices in (
        ("**new**", "**resume**", "**session-only**", "--session-only"),
        ("10 (", "25 (", "50 (", "unlimited", "--max-iterations 0"),
        ("10", "25", "50", "--budget", "none"),
    ):
        lines = [line for line in asks.splitlines() if all(word in line for word in choices)]
        assert len(lines) == 1, choices
    for stage in ("shape", "decompose", "executing", "review"):
        assert f"- **{stage}**: " in asks
    for words in ("gsd-fsm stage intent", "three experts who did not write it", "every must-not"):
        assert words in asks
