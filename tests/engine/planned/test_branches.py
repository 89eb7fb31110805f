from __future__ import annotations

import json

import pytest

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.planned.branches import NeededSwitch, needed_switch
from tests.support.command_line import Project
from tests.support.repositories import commit, git
from tests.support.verification import lay

SETTINGS = {"branching": "milestone", "base_branch": "main", "branch_prefix": "gsd/"}


@pytest.fixture
def context(project: Project) -> Context:
    """Return a context in a repository with one commit on main."""
    git(project.root, "init", "-q", "--template=", "-b", "main")
    commit(project.root, "code")
    return Context(project.root)


def switch(context: Context, milestone: str, **settings: str) -> NeededSwitch | None:
    lay(context.project, {".opti-gsd/state.json": json.dumps({"milestone": milestone})})
    return needed_switch(context, {**SETTINGS, **settings})


def test_needed_switch_elsewhere_or_without_branching_is_none(context: Context) -> None:
    for settings, checkout in (
        ({"branching": "none"}, ["main"]),
        ({"branch_prefix": ""}, ["main"]),  # whose milestone is called main
        ({}, ["-b", "gsd/main"]),
        ({}, ["--detach"]),
    ):
        git(context.project, "checkout", "-q", *checkout)
        assert switch(context, "main", **settings) is None


def test_needed_switch_to_no_name_or_one_that_git_refuses_is_an_error(context: Context) -> None:
    with pytest.raises(Refused, match=r"No Milestone Active: .* but no milestone is active"):
        switch(context, "")
    for milestone, prefix in (("a b", "gsd/"), ("v1", "-"), ("a\0b", ""), ("lone \ud800", "")):
        with pytest.raises(UsageError, match="does not give a valid branch name"):
            switch(context, milestone, branch_prefix=prefix)
