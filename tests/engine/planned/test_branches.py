from __future__ import annotations

import json
from typing import Any

import pytest

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.branches import NeededSwitch, needed_switch
from tests.support.command_line import Project
from tests.support.repositories import commit, git

SETTINGS = {"branching": "milestone", "base_branch": "main", "branch_prefix": "gsd/"}


@pytest.fixture
def context(project: Project) -> Context:
    """Return a context in a repository with one commit on main."""
    git(project.root, "init", "-q", "--template=", "-b", "main")
    commit(project.root, "code")
    return Context(project.root)


def switch(context: Context, milestone: str | None, **settings: str) -> NeededSwitch | None:
    state: dict[str, Any] = {} if milestone is None else {"milestone": milestone}
    (context.project / ".opti-gsd").mkdir(exist_ok=True)
    (context.project / ".opti-gsd" / "state.json").write_text(json.dumps(state))
    return needed_switch(context, {**SETTINGS, **settings})


def test_needed_switch_on_base_branch_asks_for_that_of_the_milestone(context: Context) -> None:
    found = switch(context, "v1")
    assert found is not None
    question = "You're on main but milestone v1 exists. Switch to gsd/v1? [Y/n]"
    assert (found.branch, found.question) == ("gsd/v1", question)


def test_needed_switch_elsewhere_or_without_branching_is_none(context: Context) -> None:
    for settings, checkout in (
        ({"branching": "none"}, ["main"]),
        ({"branch_prefix": ""}, ["main"]),  # whose milestone is called main
        ({}, ["-b", "gsd/main"]),
        ({}, ["--detach"]),
    ):
        git(context.project, "checkout", "-q", *checkout)
        assert switch(context, "main", **settings) is None


def test_needed_switch_without_a_milestone_is_refused(context: Context) -> None:
    where = "No Milestone Active: You're on main with branching: milestone configured"
    for milestone in (None, ""):
        with pytest.raises(Refused) as error:
            switch(context, milestone)
        assert error.value.message == f"{where}, but no milestone is active."
        hint = 'Run: git checkout -b gsd/NAME, and set "milestone" in '
        assert error.value.hint.startswith(hint)


def test_needed_switch_to_a_name_that_git_refuses_is_a_usage_error(context: Context) -> None:
    for milestone, prefix in (("a b", "gsd/"), ("v1", "-"), ("a\0b", ""), ("lone \ud800", "")):
        with pytest.raises(UsageError, match="cannot be a branch"):
            switch(context, milestone, branch_prefix=prefix)
