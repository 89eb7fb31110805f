"""What a loop does in a git repository: look, switch, commit, set checkpoints, go back to them."""

from gsd_fsm.repository.branches import NoMilestone, Switch, branch_switch
from gsd_fsm.repository.checkpoints import checkpoint_tag
from gsd_fsm.repository.messages import co_author, fix_message, metadata_message, task_message
from gsd_fsm.repository.repo import Repository

__all__ = [
    "NoMilestone",
    "Repository",
    "Switch",
    "branch_switch",
    "checkpoint_tag",
    "co_author",
    "fix_message",
    "metadata_message",
    "task_message",
]
