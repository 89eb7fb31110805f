"""config, and the settings that start freezes."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.settings_files import DEFAULTS

if TYPE_CHECKING:
    from tests.support.command_line import Here


def user_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "gsd-fsm/config.toml"


def test_config_shows_each_value_and_its_source(here: Here) -> None:
    settings = here.ok("config", "--json").json["settings"]
    assert {name: s["value"] for name, s in settings.items()} == {
        **DEFAULTS,
        "mcps": [],
        "views": [],
    }
    assert {setting["source"] for setting in settings.values()} == {"default"}
    user_file().parent.mkdir(parents=True)
    user_file().write_text('mode = "yolo"\nstuck_limit = 9\n')
    here.gsd.mkdir()
    here.gsd.joinpath("config.toml").write_text("stuck_limit = 7\n")
    settings = here.ok("config", "--json").json["settings"]
    assert settings["mode"] == {"value": "yolo", "source": str(user_file())}
    assert settings["stuck_limit"] == {"value": 7, "source": str(here.gsd / "config.toml")}
    shown = here.ok("config").out
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("mode")] == ["yolo"]
    assert "auto_loop               true" in shown
    assert str(user_file()) in shown
    assert str(here.gsd / "config.toml") in shown


def test_config_shows_files_of_opti_gsd_as_sources(here: Here) -> None:
    here.gsd.mkdir()
    foreign = here.root / ".opti-gsd" / "config.json"
    foreign.parent.mkdir()
    foreign.write_text(
        '{"branching": "milestone", "ci": {"test": "npm test -- %s"}, "prefix": "",'
        ' "mcps": {"github": "DOCKER", "browser": true}, "loop": {"auto_loop": false}}' % ("x" * 60)
    )
    markdown = here.gsd / "config.md"
    markdown.write_text("---\nloop:\n  tdd_max_attempts: 7\n  auto_loop: true\n---\n")
    settings = here.ok("config", "--json").json["settings"]
    command = f"npm test -- {'x' * 60}"
    assert settings["branching"] == {"value": "milestone", "source": str(foreign)}
    assert settings["ci_test"] == {"value": command, "source": str(foreign)}
    assert settings["ci_lint"] == {"value": None, "source": "default"}
    assert settings["mcps"] == {"value": ["github", "browser"], "source": str(foreign)}
    assert settings["auto_loop"] == {"value": False, "source": str(foreign)}
    assert settings["tdd_max_attempts"] == {"value": 7, "source": str(markdown)}
    shown = {}
    lines = here.ok("config").out.splitlines()
    for line in lines[: lines.index("")]:
        name, value, source = re.fullmatch(r"(\S+) +(\S.*?) {2,}(\S.*)", line).groups()
        assert source == settings[name]["source"]
        shown[name] = value
    assert list(shown) == list(DEFAULTS)
    assert shown["mcps"] == "github, browser"
    assert shown["ci_test"] == command[:39] + "…"
    assert shown["ci_lint"] == "not set"
    assert shown["branch_prefix"] == '""'
    assert shown["commit"] == "false"
    files = [line.strip() for line in lines[lines.index("") + 2 :]]
    assert files == [str(here.gsd / "config.toml"), str(foreign), str(markdown), str(user_file())]


def test_config_without_project_names_only_the_file_of_the_user(here: Here) -> None:
    shown = here.ok("config").out
    assert shown.splitlines()[-1].strip() == str(user_file())
    assert ".opti-gsd" not in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("mcps")] == ["none"]


def test_config_and_start_name_file_and_line_of_wrong_opti_gsd_setting(here: Here) -> None:
    here.gsd.mkdir()
    foreign = here.root / ".opti-gsd" / "config.json"
    foreign.parent.mkdir()
    markdown = here.gsd / "config.md"
    for path, content, told in (
        (
            foreign,
            '{"loop":\n{"execute_max_retries": "x"}}',
            ":2: loop.execute_max_retries must be",
        ),
        (foreign, '{"loop":\n{"execute_max_retries" 1}}', ":2:24: not valid JSON"),
        (markdown, "\nloop:\n  auto_loop: often\n", ":3: loop.auto_loop must be true or false"),
        (markdown, "\nloop:\n  auto_loop: [\n", "not valid YAML"),
    ):
        path.write_text(content)
        for command in (["config"], ["start", "goal", "g"]):
            answer = here.refused(2, *command)
            assert f"{path}:" in answer.err
            assert told in answer.err
        path.unlink()
    assert list(here.gsd.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("mode = 'yolo'\nstuk_limit = 3\n", 2, "did you mean 'stuck_limit'"),
        ("\n\nstuck_limit = -1\n", 3, "stuck_limit must be"),
        ("auto_loop = 'yes'\n", 1, "true or false"),
        ("stuck_limit = true\n", 1, "whole number"),
        ("mode =\n", 1, "TOML"),
        ("stuck_limit = 1\nstuck_limit = 2\n", 2, "duplicate"),
        ("[tool]\nx = 1\n", 1, "table"),
    ],
)
def test_config_and_start_name_file_and_line_of_wrong_setting(
    here: Here, content: str, line: int, words: str
) -> None:
    for path in (user_file(), here.gsd / "config.toml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        for command in (["config"], ["start", "goal", "g"], ["config", "--json"]):
            answer = here.run(*command)
            assert answer.code == 2, answer
            assert f"{path}:{line}: " in answer.err
            assert words in answer.err
        path.unlink()
    assert not here.journal.exists() or len(here.lines()) == 1


def test_config_of_untrusted_project_ignores_its_files(here: Here) -> None:
    here.start("goal", "g")
    foreign = here.root / ".opti-gsd" / "config.json"
    foreign.parent.mkdir()
    foreign.write_text("{ this is no JSON")
    (here.gsd / "config.md").write_text("loop:\n  auto_loop: often\n")
    here.refused(2, "config")
    copy = here.root.parent / "copy"
    shutil.copytree(here.root, copy)
    here.where = copy
    assert here.ok("config", "--json").json["trusted"] is False
    shown = here.ok("config").out
    assert shown.count("(ignored: the journal is not trusted)") == 3
    assert f"{copy / '.opti-gsd' / 'config.json'} (ignored" in shown


def test_start_freezes_settings_into_its_event(here: Here) -> None:
    here.gsd.mkdir()
    config = here.gsd / "config.toml"
    config.write_text(
        'mode = "yolo"\nexecute_max_retries = 1\nverify_max_iterations = 4\ntdd_max_attempts = 2\n'
        "stuck_limit = 0\nidle_limit = 8\nbudget_usd = 2.5\nmax_minutes = 60\n"
    )
    here.start("execute", "--task", "T1", "--stuck-limit", "6")
    data = here.last()["data"]
    assert (data["mode"], data["auto_loop"]) == ("yolo", True)
    assert data["limits"] == {
        "max_iterations": 20,
        "max_retries": 1,
        "max_rounds": 4,
        "tdd_max_attempts": 2,
        "stuck_limit": 6,
        "idle_limit": 8,
        "budget_usd": 2.5,
        "max_minutes": 60,
    }
    before = here.status()
    config.write_text("execute_max_retries = 9\n")
    assert here.status() == before
    here.ok("fail", "T1", "--error", "AssertionError")
    here.ok("fail", "T1", "--error", "AssertionError")
    assert here.status()["pause_code"] == "retries"


def test_config_before_first_start_shows_opti_gsd_settings(here: Here) -> None:
    (here.root / ".opti-gsd").mkdir()
    (here.root / ".opti-gsd" / "config.json").write_text('{"mode": "yolo"}')
    shown = here.ok("config", "--json").json["settings"]["mode"]
    assert shown["value"] == "yolo"
    here.ok("start", "execute", "--task", "T1")
    assert here.status()["mode"] == "yolo"
