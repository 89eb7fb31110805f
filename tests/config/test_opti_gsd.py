"""The file of the planning tool: what is taken of it, what is ignored, what is refused."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.config import opti_gsd as foreign_settings
from gsd_fsm.config import settings
from gsd_fsm.core.errors import UsageError
from tests.support import settings_files as settings_rig
from tests.support.settings_files import DEFAULTS, refused, values, values_of, written

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
foreign_path = settings_rig.foreign_path
markdown_path = settings_rig.markdown_path

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
WHOLE = {
    "project": {"app_type": "web", "mode": 7},
    "git": {"branching": "milestone", "prefix": "work/", "base": "main", "commits": 5},
    "mode": "yolo",
    "budgets": {"executor": 50},
    "ci": {
        "package_manager": "npm",
        "lint": "npm run lint",
        "typecheck": "tsc --noEmit",
        "test": "npm test",
        "build": "npm run build",
        "e2e": None,
    },
    "urls": {"local": "http://localhost:3000", "api": None},
    "deploy": {"target": "vercel", "production_branch": "main"},
    "browser": {"enabled": True},
    "mcps": ["github", "context7"],
    "loop": {"tdd_max_attempts": 7, "execute_max_retries": 2, "auto_loop": False, "active": 1},
}
MEANT = {
    "branching": "milestone",
    "branch_prefix": "work/",
    "base_branch": "main",
    "mode": "yolo",
    "ci_lint": "npm run lint",
    "ci_typecheck": "tsc --noEmit",
    "ci_test": "npm test",
    "ci_build": "npm run build",
    "base_url": "http://localhost:3000",
    "deploy_target": "vercel",
    "browser": True,
    "mcps": ("github", "context7"),
    "tdd_max_attempts": 7,
    "execute_max_retries": 2,
    "auto_loop": False,
}
# Two good values for each setting that can stand in the file, as the file writes them.
SAMPLES = {
    **dict.fromkeys(foreign_settings.LOOP, (1, 2)),
    **{name: ("one", "two") for name in foreign_settings.MEMBERS if name.startswith("ci_")},
    "auto_loop": (True, False),
    "mode": ("interactive", "yolo"),
    "branching": ("none", "milestone"),
    "base_branch": ("one", "two"),
    "branch_prefix": ("one/", "two/"),
    "deploy_target": ("one", "two"),
    "browser": (True, False),
    "base_url": ("one", "two"),
    "mcps": (["one"], ["two"]),
}
SPELLED = [(name, m) for name, members in foreign_settings.MEMBERS.items() for m in members]


def put(document, member, value):
    """The document with this value at the dotted member."""
    section, _, inner = member.rpartition(".")
    if not section:
        return {**document, inner: value}
    return {**document, section: {**document.get(section, {}), inner: value}}


def taken(path, document):
    """What the file changes, each setting with the file as its source."""
    written(path, json.dumps(document))
    loaded = settings.load(settings_rig.gsd_of(path))
    assert {s.source for s in loaded.values()} <= {"default", str(path)}
    return {name: s.value for name, s in loaded.items() if s.source == str(path)}


def test_a_whole_file_is_understood_and_what_is_not_ours_is_ignored(foreign_path):
    assert taken(foreign_path, WHOLE) == MEANT


def test_a_file_that_says_nothing_of_ours_changes_nothing(foreign_path):
    strange = {"": 1, "modes": 2, "ci_test": "no", "stuck_limit": "x", "project": {"ci": 5}}
    for document in ({}, strange, {"ci": {}, "loop": None, "git": {"x": 1}, "mcps": None}):
        assert taken(foreign_path, document) == {}


def test_every_spelling_is_taken_whatever_its_case_and_dashes(foreign_path):
    for name, member in SPELLED:
        value = True if member == "branching.enabled" else SAMPLES[name][1]
        meant = tuple(value) if isinstance(value, list) else value
        meant = "milestone" if name == "branching" else meant
        camel = re.sub("_(.)", lambda found: found[1].upper(), member)
        for spelling in (member, camel, member.replace("_", "-"), member.upper()):
            assert taken(foreign_path, put({}, spelling, value)) == {name: meant}
            assert taken(foreign_path, put({}, spelling, None)) == {}


def test_a_bad_value_is_refused_with_its_member_and_line_in_every_spelling(foreign_path):
    for _, member in SPELLED:
        document = put({"first": 1}, member, 0.5)
        error = refused(foreign_path, json.dumps(document, indent=1))
        line = 3 + member.count(".")
        assert error.message.startswith(f"{foreign_path}:{line}: {member} must be ")
        assert error.message.endswith(", not 0.5")


@pytest.mark.parametrize("name", foreign_settings.MEMBERS)
def test_the_first_spelling_that_stands_there_counts(foreign_path, name):
    members = foreign_settings.MEMBERS[name]
    for first, second in itertools.combinations(members, 2):
        if first.startswith(f"{second}.") or second.startswith(f"{first}."):
            continue  # no file has both: one is the section of the other
        one, two = SAMPLES[name]
        one, two = (False, True) if "branching.enabled" in (first, second) else (one, two)
        expected = taken(foreign_path, put({}, first, one))
        document = put(put({}, second, two), first, one)
        assert taken(foreign_path, document) == expected
        assert taken(foreign_path, put(put({}, first, None), second, two)) != expected


def test_a_bad_value_is_no_better_beside_a_good_one(foreign_path):
    error = refused(foreign_path, '{"base": 5, "base_branch": "main"}')
    assert error.message.startswith(f"{foreign_path}:1: base must be a branch name ")


# Words of the other tool


@pytest.mark.parametrize("word", ["phase", "", "none", "MILESTONES", "trunk"])
def test_another_way_of_branching_is_none_of_ours(foreign_path, word):
    assert taken(foreign_path, {"branching": word}) == {"branching": "none"}
    assert taken(foreign_path, {"git": {"branching": word}}) == {"branching": "none"}


@pytest.mark.parametrize("word", ["milestone", "Milestone", True, {"enabled": True}])
def test_a_branch_for_each_milestone_can_be_said_in_several_ways(foreign_path, word):
    assert taken(foreign_path, {"branching": word}) == {"branching": "milestone"}


@pytest.mark.parametrize("word", [False, {"enabled": False, "pattern": "gsd/v{milestone}"}])
def test_branching_can_be_switched_off(foreign_path, word):
    assert taken(foreign_path, {"branching": word}) == {"branching": "none"}


@pytest.mark.parametrize("branching", [5, ["milestone"], {"enabled": "yes"}, {"enabled": 1}])
def test_branching_that_is_neither_word_nor_switch_is_refused(foreign_path, branching):
    error = refused(foreign_path, json.dumps({"branching": branching}))
    assert '"none" or "milestone"' in error.message


@pytest.mark.parametrize("nothing", [None, "", " ", "none", "None"])
@pytest.mark.parametrize("member", ["ci.test", "ci.e2e", "deploy.target", "base_url", "urls.local"])
def test_no_command_target_or_address_can_be_said_in_several_ways(foreign_path, member, nothing):
    assert taken(foreign_path, put({}, member, nothing)) == {}


@pytest.mark.parametrize(
    ("mcps", "meant"),
    [
        ([], ()),
        (["github", "browser"], ("github", "browser")),
        ([{"name": "github", "url": 5}, "browser"], ("github", "browser")),
        ({"github": "DOCKER", "browser": {}}, ("github", "browser")),
        ({"a": True, "b": False, "c": None, "d": {"enabled": False}, "e": {"enabled": True}}, "ae"),
    ],
)
def test_servers_may_be_a_list_or_an_object(foreign_path, mcps, meant):
    assert taken(foreign_path, {"mcps": mcps}) == {"mcps": tuple(meant)}


@pytest.mark.parametrize("mcps", ["github", 1, True, [1], [{}], [{"name": 1}], [[]], {"": 1}])
def test_servers_that_are_no_names_are_refused(foreign_path, mcps):
    error = refused(foreign_path, json.dumps({"mcps": mcps}))
    assert error.message.startswith(f"{foreign_path}:1: mcps must be a list of ")


@pytest.mark.parametrize("section", ["ci", "loop", "git", "urls", "deployment"])
@pytest.mark.parametrize("value", ["npm test", 5, True, ["a"], []])
def test_a_section_is_an_object(foreign_path, section, value):
    error = refused(foreign_path, json.dumps({"mode": "yolo", section: value}, indent=1))
    assert error.message == f"{foreign_path}:3: {section} must be an object"


@pytest.mark.parametrize("name", ["--upload-pack=x", "a b", "a..b", "a~1", "a\nb", "", "\ud800"])
def test_a_branch_that_could_be_misunderstood_is_refused_here_too(foreign_path, name):
    for member in ("base", "prefix", "git.base", "git.prefix"):
        if name or member.endswith("base"):
            error = refused(foreign_path, json.dumps(put({}, member, name)))
            assert error.message.startswith(f"{foreign_path}:1: {member} must be ")


def test_the_last_of_a_member_given_twice_counts_as_for_every_reader(foreign_path):
    content = '{"mode": 5,\n"mode": "yolo"}'
    assert values_of(foreign_path, content) == {**DEFAULTS, "mode": "yolo"}
    error = refused(foreign_path, '{"mode": "yolo",\n\n"mode": 5}')
    assert error.message.startswith(f"{foreign_path}:3: mode must be ")


# Any file at all

NAMES = st.sampled_from([*sorted({part for _, m in SPELLED for part in m.split(".")}), "x"])
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
INNER = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(NAMES, SCALARS, max_size=3)


@given(st.dictionaries(NAMES, INNER, max_size=5))
def test_any_object_is_either_taken_or_refused_by_name(document):
    load_or_refuse(json.dumps(document, indent=1).encode())


@given(st.binary(max_size=200) | st.text('{}[]":,\\ \nmodeciNa1.-', max_size=60).map(str.encode))
def test_any_bytes_are_either_taken_or_refused_by_name(content):
    load_or_refuse(content)


def load_or_refuse(content):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / ".opti-gsd" / "config.json"
        path.parent.mkdir()
        written(path, content)
        try:
            loaded = values(Path(directory) / ".gsd")
        except UsageError as error:
            line, _, _ = error.message.removeprefix(f"{path}:").partition(":")
            assert 1 <= int(line) <= content.count(b"\n") + 1
            return
        assert isinstance(json.loads(content.decode("utf-8-sig")), dict)
        for key in settings.KEYS:
            assert loaded[key.name] is None or key.rule.accepts(loaded[key.name])


# The page


def test_the_page_tells_every_spelling():
    table = PAGE.read_text("utf-8").partition("| setting | members |\n|---|---|\n")[2]
    rows = [line.split("|")[1:3] for line in table.partition("\n\n")[0].splitlines()]
    told = {cells[0].strip(" `"): tuple(re.findall("`([^`]+)`", cells[1])) for cells in rows}
    assert told == foreign_settings.MEMBERS


def test_the_examples_of_the_page_are_good_files(project_path, foreign_path, markdown_path):
    for path, language in ((project_path, "toml"), (foreign_path, "json"), (markdown_path, "yaml")):
        (example,) = re.findall(
            rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        assert values_of(path, example) != DEFAULTS
        path.unlink()
