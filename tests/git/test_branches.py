"""On which branch the work of a milestone belongs."""

from __future__ import annotations

import pytest

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.engine.planned.branches import NoMilestone, branch_switch
from tests.support.repositories import git


@pytest.fixture
def settings(repository):
    return {"branching": "milestone", "base_branch": repository.branch(), "branch_prefix": "gsd/"}


def test_branch_question_on_base_proposes_milestone_branch(repo, repository, settings):
    base = settings["base_branch"]
    switch = branch_switch(repository, settings, "v1")
    question = f"You're on {base} but milestone v1 exists. Switch to gsd/v1? [Y/n]"
    assert (switch.branch, switch.question) == ("gsd/v1", question)
    assert not repository.has_branch(switch.branch)
    repository.switch(switch.branch, create=True)
    assert branch_switch(repository, settings, "v1") is None
    git(repo, "checkout", "-q", base)
    again = branch_switch(repository, settings, "v1")
    assert again == switch
    repository.switch(again.branch, create=False)
    assert repository.branch() == "gsd/v1"


@pytest.mark.parametrize("milestone", [None, ""])
def test_branch_question_without_milestone_warns_about_base(repository, settings, milestone):
    with pytest.raises(NoMilestone) as caught:
        branch_switch(repository, settings, milestone)
    base = settings["base_branch"]
    assert isinstance(caught.value, Refused)
    assert caught.value.message == (
        f"No Milestone Active: You're on {base} with branching: milestone configured, "
        "but no milestone is active."
    )
    assert caught.value.hint == (
        'git checkout -b gsd/NAME, and set "milestone" in .opti-gsd/state.json; '
        'or branching = "none" in .gsd/config.toml'
    )


def test_branch_question_off_base_or_disabled_is_none(repo, repository, settings):
    assert branch_switch(repository, {**settings, "branching": "none"}, None) is None
    own = {**settings, "branch_prefix": ""}
    assert branch_switch(repository, own, settings["base_branch"]) is None
    git(repo, "checkout", "-qb", "another")
    assert branch_switch(repository, settings, None) is None
    git(repo, "checkout", "-q", "--detach")
    assert branch_switch(repository, settings, None) is None


@pytest.mark.parametrize("milestone", ["a b", "..", "x.lock", "a\nb", "a\0b", "lone \ud800", "a:b"])
def test_branch_question_reports_invalid_milestone_name(repository, settings, milestone):
    with pytest.raises(UsageError, match="cannot be a branch"):
        branch_switch(repository, settings, milestone)
    with pytest.raises(UsageError):
        branch_switch(repository, {**settings, "branch_prefix": "-"}, "v1")
