"""Texts, branch names, commands and lists: what these settings take, and what they refuse."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.config.keys import KEYS, is_branch
from tests.support import settings_files as settings_rig
from tests.support.settings_files import DEFAULTS, values_of

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
refusal = settings_rig.refusal

COMMANDS = ("ci_lint", "ci_typecheck", "ci_test", "ci_build", "ci_e2e")
TEXTS = ("deploy_target", "base_url")
SWITCHES = ("auto_loop", "browser", "commit", "checkpoints", "state_md")
BAD_BRANCHES = (
    *("", " ", "-", "-x", "--force", "a b", "a\tb", "a\nb", "a\x7fb", "a\0b", "a\x1b[2Jb"),
    *("..", "a..b", ".", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "/a", "a/", "a//b", "/"),
    *("a~", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a@{b"),
)
# What git takes for something else, what nobody can see, and what is no name any more.
MISLEADING = (
    *("@", "@{-1}", "HEAD"),
    *("a\u00a0b", "a\u3000b", "a\u200bb", "a\u202eb", "x" * 201),
)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_can_be_on_and_off_and_nothing_else(project_path, refusal, name):
    for value in (True, False):
        taken = values_of(project_path, f"{name} = {str(value).lower()}")
        assert taken == {**DEFAULTS, name: value}
    for value in ("1", "0", '"true"', "[]", '""'):
        assert refusal(f"\n{name} = {value}").startswith(f"2: {name} must be true or false, not ")


@pytest.mark.parametrize("value", ["none", "milestone"])
def test_branching_knows_two_words(project_path, value):
    assert values_of(project_path, f'branching = "{value}"')["branching"] == value


@pytest.mark.parametrize("value", ['"phase"', '"Milestone"', '""', "true", "1", "[]", "{}"])
def test_branching_refuses_any_other_word(refusal, value):
    message = refusal(f"branching = {value}")
    assert message.startswith('1: branching must be "none" or "milestone", not ')


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_taken_as_it_is(project_path, name):
    command = ' npm run "a b" -- --fix\t&& echo é > $HOME '
    assert values_of(project_path, f"{name} = '{command}'")[name] == command
    longest = "x" * 8_000
    assert values_of(project_path, f"{name} = '{longest}'")[name] == longest


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_one_visible_line(refusal, name):
    for value in (
        *('""', '"  "', '"\\t"', "1", "true", '["npm", "test"]', '"""a\nb"""', '"a\\nb"'),
        *('"a\\rb"', '"a\\u0000b"', '"a\\u001b[2Jb"', '"a\\u2028b"', '"a\\u202eb"', '"a\\u0085b"'),
        '"' + "x" * 8_001 + '"',
    ):
        message = refusal(f"\n{name} = {value}")
        limit = "a command in one line of at most 8000 characters"
        assert message.startswith(f"2: {name} must be {limit}"), value
        assert len(message) < 200


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_one_visible_line(project_path, refusal, name):
    assert values_of(project_path, f"{name} = 'http://é.example/?a=1'")[name]
    for value in ('""', '" "', "1", "[]", '"a\\nb"', '"a\\tb"', '"a\\u0000"', f"'{'x' * 2_001}'"):
        assert refusal(f"\n{name} = {value}").startswith(
            f"2: {name} must be a text in one line of "
        )


# Branches


def by_git(name):
    done = subprocess.run(
        ["git", "check-ref-format", "--branch", name], capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.mark.parametrize("name", ["master", "main", "origin/main", "gsd/v1.0.0", "é", "a@b", "x-"])
def test_a_branch_that_git_takes_is_taken(project_path, name):
    assert by_git(name)
    assert values_of(project_path, f"base_branch = '{name}'")["base_branch"] == name


@pytest.mark.parametrize("name", BAD_BRANCHES + MISLEADING)
def test_a_branch_that_git_would_refuse_or_misunderstand_is_refused(refusal, name):
    assert name in MISLEADING or "\0" in name or not by_git(name)
    quoted = "".join(f"\\U{ord(letter):08x}" for letter in name)
    message = refusal(f'\nbase_branch = "{quoted}"')
    assert message.startswith(
        "2: base_branch must be a branch name of at most 200 characters, not "
    )


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*"ax1-_./@{}~^:?*[\\ é", ".lock"]), max_size=8).map("".join))
def test_every_branch_that_we_take_is_taken_by_git(name):
    assert not is_branch(name) or by_git(name)


@pytest.mark.parametrize("prefix", ["gsd/", "", "gsd", "a/b/", "a.", "x" * 199])
def test_a_prefix_is_the_beginning_of_a_branch(project_path, prefix):
    assert values_of(project_path, f"branch_prefix = '{prefix}'")["branch_prefix"] == prefix
    assert by_git(prefix + "v1")


@pytest.mark.parametrize(
    "prefix",
    ["-", "--", " ", "/", "a//", "a b/", "..", "a..", ".", "a/.", "a.lock/", "a~", "x" * 200],
)
def test_a_prefix_that_begins_no_branch_is_refused(refusal, prefix):
    message = refusal(f"branch_prefix = '{prefix}'")
    assert message.startswith("1: branch_prefix must be the beginning of a branch name, ")


# Lists


def test_a_list_of_names_is_kept_in_its_order_and_cannot_be_changed(project_path):
    taken = values_of(project_path, "mcps = [\n  'postgres', # first\n  'github',\n]")["mcps"]
    assert taken == ("postgres", "github")
    assert values_of(project_path, "mcps = []")["mcps"] == ()
    assert len(values_of(project_path, f"mcps = {['x' * 200] * 100}")["mcps"]) == 100


@pytest.mark.parametrize(
    "value",
    [
        *('"github"', "1", "{}", "[1]", "['']", "[' ']", "[['a']]", "['a', true]", "['a\\nb', 1]"),
        *(f"['{'x' * 201}']", str(["x"] * 101), '["a\\nb"]', '["a\\u001bb"]'),
    ],
)
def test_a_list_of_names_holds_a_few_visible_names_only(refusal, value):
    message = refusal(f"\nmcps = {value}")
    assert message.startswith(
        "2: mcps must be a list of at most 100 names of at most 200 characters"
    )


# Any value at all

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(ANY)
def test_no_rule_fails_on_any_value(value):
    for key in KEYS:
        assert type(key.rule.accepts(value)) is bool
        error = key.refusal("FILE:1", key.name, value)
        assert error.message.startswith(f"FILE:1: {key.name} must be {key.rule.words}, not ")
