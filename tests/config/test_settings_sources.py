"""Which file decides about a setting that several files give."""

from __future__ import annotations

import itertools

import pytest

from gsd_fsm.config import settings
from gsd_fsm.core.errors import UsageError
from tests.support import settings_files as settings_rig
from tests.support.settings_files import DEFAULTS, values, written

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
foreign_path = settings_rig.foreign_path
markdown_path = settings_rig.markdown_path

# From the highest to the lowest, each with another value for the same setting.
CONTENTS = {
    "project": "tdd_max_attempts = 11\n",
    "foreign": '{"loop": {"tdd_max_attempts": 12}}\n',
    "markdown": "loop:\n  tdd_max_attempts: 13\n",
    "user": "tdd_max_attempts = 14\n",
}
VALUES = {"project": 11, "foreign": 12, "markdown": 13, "user": 14}


@pytest.fixture
def paths(project_path, foreign_path, markdown_path, user_path):
    return {
        "project": project_path,
        "foreign": foreign_path,
        "markdown": markdown_path,
        "user": user_path,
    }


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_of_any_files_the_highest_decides(paths, count):
    gsd = paths["project"].parent
    for names in itertools.combinations(CONTENTS, count):
        for name in names:
            written(paths[name], CONTENTS[name])
        decided = settings.load(gsd)["tdd_max_attempts"]
        assert decided == ("tdd_max_attempts", VALUES[names[0]], str(paths[names[0]]))
        for name in names:
            paths[name].unlink()
    assert values(gsd) == DEFAULTS


def test_each_file_decides_about_what_no_higher_one_gives(paths):
    written(paths["user"], "stuck_limit = 7\nauto_loop = true\nci_test = 'make'\nidle_limit = 1\n")
    written(paths["markdown"], "loop:\n  auto_loop: no\n  execute_max_retries: 8\n")
    written(
        paths["foreign"],
        '{"ci": {"test": "npm test", "lint": null}, "loop": {"execute_max_retries": 9}}',
    )
    written(paths["project"], "idle_limit = 2\n")
    loaded = settings.load(paths["project"].parent)
    assert list(loaded) == list(DEFAULTS)
    assert {s.name: (s.value, s.source) for s in loaded.values() if s.source != "default"} == {
        "execute_max_retries": (9, str(paths["foreign"])),
        "auto_loop": (False, str(paths["markdown"])),
        "stuck_limit": (7, str(paths["user"])),
        "idle_limit": (2, str(paths["project"])),
        "ci_test": ("npm test", str(paths["foreign"])),
    }


def test_what_a_file_leaves_open_is_left_to_the_files_below(paths):
    written(paths["user"], "ci_e2e = 'make e2e'\nbase_url = 'http://localhost'\n")
    written(paths["foreign"], '{"ci": {"e2e": null}, "base_url": "none"}')
    loaded = settings.load(paths["project"].parent)
    assert loaded["ci_e2e"] == ("ci_e2e", "make e2e", str(paths["user"]))
    assert loaded["base_url"] == ("base_url", "http://localhost", str(paths["user"]))


def test_what_is_false_or_empty_is_given_all_the_same(paths):
    written(paths["user"], "mcps = ['github']\nbrowser = true\nbranch_prefix = 'mine/'\n")
    written(paths["foreign"], '{"mcps": [], "browser": false, "prefix": ""}')
    loaded = values(paths["project"].parent)
    assert (loaded["mcps"], loaded["browser"], loaded["branch_prefix"]) == ((), False, "")


@pytest.mark.parametrize("name", ["project", "foreign", "markdown", "user"])
def test_a_broken_file_is_refused_whatever_a_higher_one_says(paths, name):
    for each, content in CONTENTS.items():
        written(
            paths[each],
            content.replace("tdd_max_attempts", "auto_loop") if each == name else content,
        )
    with pytest.raises(UsageError) as caught:
        settings.load(paths["project"].parent)
    assert caught.value.message.startswith(f"{paths[name]}:")


def test_no_file_of_an_untrusted_project_is_looked_at(paths):
    written(paths["user"], CONTENTS["user"])
    for name in ("project", "foreign", "markdown"):
        paths[name].mkdir()  # refused wherever it is looked at
    loaded = values(paths["project"].parent, trusted=False)
    assert loaded == {**DEFAULTS, "tdd_max_attempts": 14}
    for name in ("markdown", "foreign", "project"):
        with pytest.raises(UsageError) as caught:
            settings.load(paths["project"].parent)
        assert caught.value.message == f"{paths[name]}: not a regular file"
        paths[name].rmdir()
    assert values(paths["project"].parent) == loaded


def test_without_a_project_no_file_but_the_users_is_read(paths, monkeypatch):
    for name, content in CONTENTS.items():
        written(paths[name], content)
    monkeypatch.chdir(paths["project"].parent.parent)
    assert values(None) == {**DEFAULTS, "tdd_max_attempts": 14}


def test_the_files_of_a_project_are_told_from_the_highest_to_the_lowest(paths):
    found = settings.project_files(paths["project"].parent)
    assert found == (paths["project"], paths["foreign"], paths["markdown"])
