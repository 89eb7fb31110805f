"""config, and the settings that start freezes."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.settings_files import DEFAULTS

if TYPE_CHECKING:
    from tests.support.command_line import Here


def user_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "gsd-fsm/config.toml"


def foreign_file(here: Here, content: str) -> Path:
    """Write the settings of opti-gsd."""
    path = here.root / ".opti-gsd" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def test_config_shows_each_value_and_its_source(here: Here) -> None:
    settings = here.ok("config", "--json").json["settings"]
    values = {name: setting["value"] for name, setting in settings.items()}
    assert values == {**DEFAULTS, "mcps": [], "views": []}
    assert {setting["source"] for setting in settings.values()} == {"default"}
    for place in ([], ["--project", "/"]):
        assert here.ok(*place, "config").out.endswith(f" of precedence:\n  {user_file()}\n")
    command = f"npm test -- {'x' * 60}"
    mcps = {"github": "DOCKER", "browser": True}
    document = {"ci": {"test": command}, "prefix": "", "mcps": mcps}
    foreign = foreign_file(here, json.dumps(document))
    here.configure(stuck_limit=7)
    toml, markdown = here.gsd / "config.toml", here.gsd / "config.md"
    markdown.write_text("---\nloop:\n  tdd_max_attempts: 8\n---\n")
    user_file().parent.mkdir(parents=True)
    user_file().write_text('mode = "yolo"\nstuck_limit = 9\n')
    settings = here.ok("config", "--json").json["settings"]
    shown = here.ok("config").out
    for name, value, text, source in (
        ("branch_prefix", "", '""', foreign),
        ("ci_test", command, command[:39] + "…", foreign),
        ("ci_lint", None, "not set", "default"),
        ("mcps", ["github", "browser"], "github, browser", foreign),
        ("views", [], "none", "default"),
        ("commit", False, "false", "default"),
        ("tdd_max_attempts", 8, "8", markdown),
        ("stuck_limit", 7, "7", toml),
        ("mode", "yolo", "yolo", user_file()),
    ):
        assert settings[name] == {"value": value, "source": str(source)}
        assert re.search(
            f"^{name}  +{re.escape(text)}  +{re.escape(str(source))}$", shown, re.MULTILINE
        )
    files = "".join(f"\n  {path}" for path in (toml, foreign, markdown, user_file()))
    assert shown.endswith(f"\nfiles, in order of precedence:{files}\n")


def test_config_and_start_name_file_and_line_of_a_wrong_setting(here: Here) -> None:
    here.gsd.mkdir()
    user_file().parent.mkdir(parents=True)
    for path, content, message in (
        (user_file(), "mode = 'yolo'\nstuk_limit = 3\n", ":2: unknown"),
        (here.gsd / "config.toml", "\n\nstuck_limit = -1\n", ":3: stuck_limit must be"),
        (foreign_file(here, ""), '{"loop":\n{"execute_max_retries" 1}}', ":2:24: not valid JSON"),
        (here.gsd / "config.md", "\nloop:\n  auto_loop: often\n", ":3: loop.auto_loop must be"),
    ):
        foreign_file(here, "{}")
        path.write_text(content)
        for command in ("config", "start goal g", "config --json"):
            assert f"{path}{message}" in here.refused(2, *command.split()).err
        path.unlink()
    assert list(here.gsd.iterdir()) == []


def test_config_of_untrusted_project_ignores_its_files(here: Here) -> None:
    here.start("goal", "g")
    foreign_file(here, "{ not JSON")
    here.refused(2, "config")
    here.where = copy = here.root.parent / "copy"
    shutil.copytree(here.root, copy)
    assert here.ok("config", "--json").json["trusted"] is False
    shown = here.ok("config").out
    assert shown.count("(ignored: the journal is not trusted)") == 3
    assert f"{copy / '.opti-gsd' / 'config.json'} (ignored" in shown


def test_start_freezes_settings_into_its_event(here: Here) -> None:
    here.configure(
        mode="yolo", execute_max_retries=1, verify_max_iterations=4, tdd_max_attempts=2,
        stuck_limit=0, idle_limit=8, budget_usd=2.5, max_minutes=60,
    )  # fmt: skip
    here.start("execute", "--task", "T1", "--stuck-limit", "6")
    data = here.last()["data"]
    assert (data["mode"], data["auto_loop"]) == ("yolo", True)
    assert data["limits"] == {
        "max_iterations": 20, "max_retries": 1, "max_rounds": 4, "tdd_max_attempts": 2,
        "stuck_limit": 6, "idle_limit": 8, "budget_usd": 2.5, "max_minutes": 60,
    }  # fmt: skip
    before = here.status()
    here.configure(execute_max_retries=9)
    assert here.status() == before


def test_config_and_start_use_opti_gsd_settings_before_the_first_start(here: Here) -> None:
    foreign_file(here, '{"mode": "yolo"}')
    assert here.ok("config", "--json").json["settings"]["mode"]["value"] == "yolo"
    here.ok("start", "execute", "--task", "T1")
    assert here.status()["mode"] == "yolo"
