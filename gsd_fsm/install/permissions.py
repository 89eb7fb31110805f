"""Let the client run the commands that loops name without asking, and nothing that brings new ones.

A rule matches commands by their beginning. The commands of a loop run checks that the user has seen
at `start`. Left out are those with which an agent could bring a command of its own: `start`,
`import`, `run`, `hook` and `stage decompose --shape-file`, and `resume`, which accepts a changed plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gsd_fsm.config.program import program_by_path
from gsd_fsm.core.command_line import PROGRAM
from gsd_fsm.documents.json_text import append, drop, find, not_json, root
from gsd_fsm.install.hook_entries import items_of, tidy

ALLOWED = (
    "answer", "check", "complete", "criterion", "exit-signal", "fail", "gap", "next", "pause", "proof",
    "report", "restore", "review", "score", "stage executing", "stage intent", "stage review",
    "stage shape", "status", "task", "tdd", "verified", "verify",
)  # fmt: skip
# Named by texts all the same; the client asks the user.
ASKED = (
    "accept", "cancel", "doctor", "ps", "recall", "release", "replay", "resume", "stage decompose", "start",
    "trust",
)  # fmt: skip
# With it an agent can run anything: gsd-fsm start --check x=ANYTHING
EVERYTHING = f"Bash({PROGRAM}:*)"
_LIST = ("permissions", "allow")
PLACES = (_LIST[:1], _LIST)


def rules() -> list[str]:
    """Return the rules for every allowed command, by name and by path."""
    programs = dict.fromkeys((PROGRAM, program_by_path()))
    return [f"Bash({program} {verb}:*)" for program in programs for verb in ALLOWED]


def allowed_in(document: Any) -> list[str]:
    """Return the rules of these settings that let the client run a command."""
    found = dict(items_of(document, _LIST[0])).get(_LIST[1])
    return [rule for rule in found if isinstance(rule, str)] if isinstance(found, list) else []


def allow(text: str, known: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Return the settings with all rules and without EVERYTHING, and those that are ours.

    `known` are rules that an earlier call added; the others belong to the user. Raise NotJson if
    the place of the rules is taken by another value.
    """
    for path, kind, noun in zip(PLACES, (dict, list), ("an object", "a list"), strict=True):
        part = find(text, path)
        if part is not None and not isinstance(part.value, kind):
            raise not_json(text, part.value_at, f"{'.'.join(path)} is not {noun}")
    wanted = rules()
    text = disallow(narrow(text), [rule for rule in known if rule not in wanted], {})
    present = allowed_in(root(text).value)
    added = [rule for rule in wanted if rule not in present]
    for rule in added:
        text = append(text, _LIST, rule)
    return text, tuple(rule for rule in wanted if rule in added or rule in known)


def narrow(text: str) -> str:
    """Return the settings without rules that let agents run every command of this program."""
    found = allowed_in(root(text).value)
    return disallow(text, [EVERYTHING] * found.count(EVERYTHING), {})


def permits(documents: Iterable[Any]) -> bool:
    """Return whether these settings let the client run the commands of loops without asking."""
    allowed = {rule for document in documents for rule in allowed_in(document)}
    return EVERYTHING in allowed or allowed.issuperset(rules())


def disallow(text: str, known: Iterable[str], empty: dict[str, str]) -> str:
    """Return the settings without these rules, and without a list and an object that this empties.

    `empty` has the text of those that were empty before.
    """
    for rule in known:
        found = dict(items_of(root(text).value, _LIST[0])).get(_LIST[1])
        if isinstance(found, list) and rule in found:
            text = drop(text, (*_LIST, len(found) - 1 - found[::-1].index(rule)))
            if len(found) == 1:
                text = tidy(text, list(reversed(PLACES)), empty)
    return text
