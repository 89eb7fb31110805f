"""Every setting that exists: what it may be, what it is without a file, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gsd_fsm.core.errors import UsageError

# Far beyond any sensible limit, yet safe as a timeout in seconds and exact in everybody's JSON.
LARGEST = 1_000_000_000
LONGEST_COMMAND = 8_000
LONGEST_TEXT = 2_000
LONGEST_NAME = 200
MOST_NAMES = 100


class Rule(NamedTuple):
    """What a value must be: in words for people, and as a test that never raises."""

    words: str
    accepts: Callable[[Any], bool]


class Key(NamedTuple):
    """One setting that exists; a default of None means that absence has its own meaning."""

    name: str
    default: bool | int | float | str | tuple[str, ...] | None
    description: str
    rule: Rule

    def refusal(self, where: str, member: str, value: object) -> UsageError:
        """The error for a value that the rule does not accept, as the file names and writes it."""
        import json

        try:
            shown = json.dumps(value, default=str)[:80]
        except (ValueError, RecursionError):
            shown = "a value with too many digits or brackets"
        return UsageError(
            f"{where}: {member} must be {self.rule.words}, not {shown}", self.description
        )


def is_branch(name: Any) -> bool:
    """Whether git takes this for the name of a branch, and no program takes it for an option."""
    return (
        is_line(name, LONGEST_NAME)
        and not set(name) & set(" ~^:?*[\\")
        and not name.startswith("-")
        and not name.endswith(".")
        and ".." not in name
        and "@{" not in name
        and name not in ("@", "HEAD")
        and all(
            part and not part.startswith(".") and not part.endswith(".lock")
            for part in name.split("/")
        )
    )


def is_line(value: Any, longest: int) -> bool:
    """Whether this is a text in one line, with something to see and nothing that hides in it."""
    return (
        type(value) is str and len(value) <= longest and value.isprintable() and value.strip() != ""
    )


def _is_command(value: Any) -> bool:
    return type(value) is str and is_line(value.replace("\t", " "), LONGEST_COMMAND)


def _is_list_of_names(value: Any) -> bool:
    return (
        type(value) in (list, tuple)
        and len(value) <= MOST_NAMES
        and all(is_line(name, LONGEST_NAME) for name in value)
    )


def _number(words: str, least: int, *types: type) -> Rule:
    # By type(), because True is an instance of int; and NaN is not between any two numbers.
    return Rule(
        f"{words} from {least} to {LARGEST}",
        lambda value: type(value) in types and least <= value <= LARGEST,
    )


_COUNT = _number("a whole number", 0, int)
_POSITIVE = _number("a whole number", 1, int)
_AMOUNT = _number("a number", 0, int, float)
_SWITCH = Rule("true or false", lambda value: type(value) is bool)
_MODE = Rule('"interactive" or "yolo"', lambda value: value in ("interactive", "yolo"))
_BRANCHING = Rule('"none" or "milestone"', lambda value: value in ("none", "milestone"))
_BRANCH = Rule(f"a branch name of at most {LONGEST_NAME} characters", is_branch)
_PREFIX = Rule(
    f"the beginning of a branch name, less than {LONGEST_NAME} characters",
    lambda value: type(value) is str and is_branch(value + "x"),
)
_COMMAND = Rule(f"a command in one line of at most {LONGEST_COMMAND} characters", _is_command)
_TEXT = Rule(
    f"a text in one line of at most {LONGEST_TEXT} characters",
    lambda value: is_line(value, LONGEST_TEXT),
)
_NAMES = Rule(
    f"a list of at most {MOST_NAMES} names of at most {LONGEST_NAME} characters",
    _is_list_of_names,
)

VIEWS = ("workflow-state", "state", "progress", "status-block", "report")
_VIEWS = Rule(
    f"a list of views, each one of {', '.join(VIEWS)}",
    lambda value: type(value) in (list, tuple) and all(name in VIEWS for name in value),
)

# The single truth: validation, the `config` command and the documentation all read this table.
KEYS: tuple[Key, ...] = (
    Key("mode", "interactive", "Whether a loop asks first (interactive) or not (yolo).", _MODE),
    Key("execute_max_retries", 3, "Retries of one failed task before the loop pauses.", _COUNT),
    Key("verify_max_iterations", 20, "Rounds of a verify loop; 0 means unlimited.", _COUNT),
    Key("tdd_max_attempts", 5, "Attempts to make the tests of one task pass.", _POSITIVE),
    Key("auto_loop", True, "Whether the agent is kept going until its loop ends.", _SWITCH),
    Key(
        "max_iterations",
        None,
        "Iterations; absent means 20 (execute loop: max(20, 3 × tasks)); 0 means unlimited.",
        _COUNT,
    ),
    Key("stuck_limit", 5, "Iterations without progress before a pause; 0 means off.", _COUNT),
    Key("idle_limit", 3, "Blocks in a row without activity before a pause; 0 means off.", _COUNT),
    Key("budget_usd", None, "US dollars a loop may spend; absent means no limit.", _AMOUNT),
    Key("max_minutes", None, "Active minutes a loop may take; absent means no limit.", _AMOUNT),
    Key("check_timeout_seconds", 600, "Seconds that one check may run.", _POSITIVE),
    Key("branching", "none", "Whether each milestone has a branch of its own.", _BRANCHING),
    Key("base_branch", "master", "The branch that milestones begin at and return to.", _BRANCH),
    Key("branch_prefix", "gsd/", "What stands before the milestone in its branch.", _PREFIX),
    Key("ci_lint", None, "The command that checks the style; absent means none.", _COMMAND),
    Key("ci_typecheck", None, "The command that checks the types; absent means none.", _COMMAND),
    Key("ci_test", None, "The command that runs the tests; absent means none.", _COMMAND),
    Key("ci_build", None, "The command that builds the project; absent means none.", _COMMAND),
    Key("ci_e2e", None, "The command that runs the end-to-end tests; absent means none.", _COMMAND),
    Key("deploy_target", None, "Where a push is deployed to; absent means nowhere.", _TEXT),
    Key("browser", False, "Whether tasks may use a browser.", _SWITCH),
    Key("base_url", None, "The address that a browser begins at; absent means unknown.", _TEXT),
    Key("mcps", (), "The MCP servers that tasks may use.", _NAMES),
    Key("commit", False, "Whether the engine may commit what tasks and fixes change.", _SWITCH),
    Key("checkpoints", True, "Whether the engine tags commits that one can go back to.", _SWITCH),
    Key("counsel", None, "What an agent is told after a failed verification.", _TEXT),
    Key("views", (), "What shows a goal loop to people and other programs.", _VIEWS),
    Key(
        "task_list",
        None,
        "The client's task list that a goal mirrors: its id, auto or none; absent: one with a name.",
        _TEXT,
    ),
    Key("max_tokens", None, "Tokens a loop may use; absent means no limit.", _COUNT),
    Key("state_md", True, "Whether the state is also kept in a file for people to read.", _SWITCH),
)
KEY_NAMED = {key.name: key for key in KEYS}
