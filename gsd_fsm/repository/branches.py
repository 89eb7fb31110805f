"""On which branch a loop works: the base, or one of its milestone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.repository.repo import Repository


class NoMilestone(Refused):
    """A milestone has a branch of its own, and there is none to work on."""

    def __init__(self, base: str, prefix: str) -> None:
        super().__init__(
            f"No Milestone Active: You're on {base} with branching: milestone configured, "
            "but no milestone is active.",
            f'git checkout -b {prefix}NAME, and set "milestone" in .opti-gsd/state.json; '
            'or branching = "none" in .gsd/config.toml',
        )


class Switch(NamedTuple):
    """A branch that should be checked out before the work begins, and how to ask for it."""

    branch: str
    exists: bool
    question: str
    declined: str


def branch_switch(
    repository: Repository, settings: Mapping[str, Any], milestone: str | None
) -> Switch | None:
    """The branch to go to, None where all is well; NoMilestone where there is none to go to.

    `settings` tells branching, base_branch and branch_prefix.
    """
    base, prefix = str(settings["base_branch"]), str(settings["branch_prefix"])
    if settings["branching"] != "milestone" or repository.branch() != base:
        return None
    if not milestone:
        raise NoMilestone(base, prefix)
    branch = f"{prefix}{milestone}"
    if branch == base:
        return None
    if not repository.is_branch_name(branch):
        raise UsageError(
            f"the milestone {milestone!r} cannot be a branch: git would refuse {branch!r}",
            'give "milestone" in .opti-gsd/state.json letters, digits and dashes only',
        )
    return Switch(
        branch,
        repository.has_branch(branch),
        f"You're on {base} but milestone {milestone} exists. Switch to {branch}? [Y/n]",
        f"Continuing on {base}. Changes will be on base branch.",
    )
