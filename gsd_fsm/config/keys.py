"""Every setting that exists: the values it accepts, its default and its description."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.usage.prices import PRICE_KINDS

# Far beyond any sensible limit, yet safe as a timeout in seconds and exact in every JSON reader.
LARGEST = 1_000_000_000
LONGEST_COMMAND = 8_000
LONGEST_TEXT = 2_000
LONGEST_NAME = 200
MOST_NAMES = 100


class Rule(NamedTuple):
    """The accepted values: in words for messages, and as a test that never raises."""

    words: str
    accepts: Callable[[Any], bool]


class Key(NamedTuple):
    """One setting; a default of None means that it is not set.

    `user_only`: a project, which agents can edit, must not decide it.
    """

    name: str
    default: bool | int | float | str | tuple[str, ...] | None
    description: str
    rule: Rule
    user_only: bool = False

    def refusal(self, where: str, member: str, value: object) -> UsageError:
        """Return the error for a rejected value, with the member's name as the file spells it."""
        import json

        try:
            shown = json.dumps(value, default=str)[:80]
        except (ValueError, RecursionError):
            shown = "a value with too many digits or brackets"
        return UsageError(
            f"{where}: {member} must be {self.rule.words}, not {shown}", self.description
        )


def is_line(value: Any, longest: int) -> bool:
    """Return whether this is one line of text with visible characters only."""
    return (
        type(value) is str and len(value) <= longest and value.isprintable() and value.strip() != ""
    )


def is_branch(name: Any) -> bool:
    """Return whether git accepts this as a branch name, and never takes it for an option."""
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


def _list_of(accepts: Callable[[Any], bool], most: int = MOST_NAMES) -> Callable[[Any], bool]:
    return lambda value: (
        type(value) in (list, tuple) and len(value) <= most and all(map(accepts, value))
    )


def _number(words: str, least: int, *types: type, most: int = LARGEST) -> Rule:
    # By type(), because True is an instance of int; and NaN is not between any two numbers.
    return Rule(
        f"{words} from {least} to {most}",
        lambda value: type(value) in types and least <= value <= most,
    )


def _one_of(*words: str) -> Rule:
    return Rule(" or ".join(f'"{word}"' for word in words), lambda value: value in words)


def _is_price(price: Any) -> bool:
    """Return whether this has prices for input and output, and otherwise only for the cache."""
    return (
        type(price) is dict
        and set(PRICE_KINDS[:2]) <= price.keys() <= set(PRICE_KINDS)
        and all(map(_AMOUNT.accepts, price.values()))
    )


VIEWS = ("workflow-state", "state", "progress", "status-block", "report")
_COUNT = _number("a whole number", 0, int)
_POSITIVE = _number("a whole number", 1, int)
_RERUNS = _number("a whole number", 0, int, most=100)
_AMOUNT = _number("a number", 0, int, float)
_SWITCH = Rule("true or false", lambda value: type(value) is bool)
_BRANCH = Rule(f"a branch name of at most {LONGEST_NAME} characters", is_branch)
_PREFIX = Rule(
    f"the beginning of a branch name, fewer than {LONGEST_NAME} characters",
    lambda value: type(value) is str and is_branch(value + "x"),
)
_COMMAND = Rule(
    f"a one-line command of at most {LONGEST_COMMAND} characters",
    lambda value: type(value) is str and is_line(value.replace("\t", " "), LONGEST_COMMAND),
)
_TEXT = Rule(
    f"one line of text, at most {LONGEST_TEXT} characters",
    lambda value: is_line(value, LONGEST_TEXT),
)
_PROGRAM = Rule(
    f"the absolute path of a program, at most {LONGEST_TEXT} characters",
    lambda value: is_line(value, LONGEST_TEXT) and Path(value).is_absolute(),
)
_NAMES = Rule(
    f"a list of at most {MOST_NAMES} names of at most {LONGEST_NAME} characters",
    _list_of(lambda name: is_line(name, LONGEST_NAME)),
)
_PRICES = Rule(
    f"a table for each model with numbers for input and output, and optionally {', '.join(PRICE_KINDS[2:])}",
    lambda value: (
        type(value) is dict
        and len(value) <= MOST_NAMES
        and all(is_line(name, LONGEST_NAME) and _is_price(price) for name, price in value.items())
    ),
)
_VIEWS = Rule(f"a list of views, each one of {', '.join(VIEWS)}", _list_of(VIEWS.__contains__))

# Validation, the `config` command and the documentation all read this table.
KEYS: tuple[Key, ...] = (
    Key(
        "mode",
        "interactive",
        "Ask before waves, retries and fixes (interactive), or do not ask (yolo).",
        _one_of("interactive", "yolo"),
    ),
    Key("execute_max_retries", 3, "Retries of a failed task before the loop pauses.", _COUNT),
    Key("verify_max_iterations", 20, "Rounds of a verify loop (0: unlimited).", _COUNT),
    Key("tdd_max_attempts", 5, "Attempts to make the tests of one task pass.", _POSITIVE),
    Key("auto_loop", True, "Keep the agent working until its loop ends.", _SWITCH),
    Key(
        "max_iterations",
        None,
        "Iterations of a loop (0: unlimited; not set: 20, or 3 per task of the plan if that is more).",
        _COUNT,
    ),
    Key("stuck_limit", 5, "Iterations without progress before the loop pauses (0: off).", _COUNT),
    Key("idle_limit", 3, "Consecutive blocks without activity before a pause (0: off).", _COUNT),
    Key("budget_usd", None, "US dollars that a loop may spend (not set: no limit).", _AMOUNT),
    Key(
        "prices",
        None,
        "US dollars for a million tokens, by model (not set: the table of this version).",
        _PRICES,
    ),
    Key("max_minutes", None, "Active minutes that a loop may take (not set: no limit).", _AMOUNT),
    Key(
        "prove_tasks",
        True,
        "Run the checks of a task before it is complete (false: believe the report).",
        _SWITCH,
        user_only=True,
    ),
    Key(
        "report_grace",
        2,
        "Stops without activity before a task fails whose subagent ended without a report.",
        _COUNT,
    ),
    Key("check_timeout_seconds", 600, "Seconds that one check may run.", _POSITIVE),
    Key(
        "check_reruns",
        0,
        "How often a failed check is run again; a pass on a rerun is marked as flaky.",
        _RERUNS,
    ),
    Key(
        "check_shell",
        None,
        "Shell that runs checks with -c (not set: /bin/sh, on Windows that of Git for Windows).",
        _PROGRAM,
        user_only=True,
    ),
    Key("strict_env", False, "Run checks with the variables that were set at `start`.", _SWITCH),
    Key(
        "clean_checks",
        False,
        "Before a loop completes, run its checks once more in a clean copy of the work tree.",
        _SWITCH,
    ),
    Key(
        "clean_setup",
        None,
        "Command that prepares that copy, for example by installing dependencies.",
        _COMMAND,
    ),
    Key("branching", "none", "Give each milestone its own branch.", _one_of("none", "milestone")),
    Key("base_branch", "master", "Branch that milestone branches start from.", _BRANCH),
    Key("branch_prefix", "gsd/", "Text before the milestone in the name of its branch.", _PREFIX),
    Key("ci_lint", None, "Command that checks the style.", _COMMAND),
    Key("ci_typecheck", None, "Command that checks the types.", _COMMAND),
    Key("ci_test", None, "Command that runs the tests.", _COMMAND),
    Key("ci_build", None, "Command that builds the project.", _COMMAND),
    Key("ci_e2e", None, "Command that runs the end-to-end tests.", _COMMAND),
    Key("deploy_target", None, "Platform that a push deploys to.", _TEXT),
    Key("browser", False, "Let tasks use a browser.", _SWITCH),
    Key("base_url", None, "Address that the browser opens first.", _TEXT),
    Key("mcps", (), "MCP servers that tasks may use.", _NAMES),
    Key("commit", False, "Commit the changes of each task and fix.", _SWITCH),
    Key("checkpoints", True, "Save checkpoints that rollback can return to, as tags.", _SWITCH),
    Key("counsel", None, "Advice to the agent after a failed verification.", _TEXT),
    Key("views", (), "Files that show a goal loop to people and other programs.", _VIEWS),
    Key(
        "task_list",
        None,
        "Task list of the client to mirror: its id, auto or none (not set: only a named list).",
        _TEXT,
    ),
    Key("max_tokens", None, "Tokens that a loop may use (not set: no limit).", _COUNT),
    Key("state_md", True, "Also write the state to STATE.md for people to read.", _SWITCH),
)
KEY_NAMED = {key.name: key for key in KEYS}
