"""Write the commit messages of a loop, and recognise those of its tasks."""

from __future__ import annotations

import re

from gsd_fsm.core.text.sanitize import display
from gsd_fsm.plans.phase_name import Phase, same_phase

SUBJECT_CHARACTERS = 72
CLAUDE = "Claude <noreply@anthropic.com>"
# Lines that git and tools that count authors read as trailers.
TRAILER = re.compile(r"^[ \t]*(?=[\w-]+-by[ \t]*:|\(cherry picked from)", re.IGNORECASE)
PREFIX = re.compile(r"[a-z]+\([^()]*\)!?:\s*", re.IGNORECASE)
_SUBJECT = re.compile(r"[a-z]+\((?P<scope>[^()]+)\)!?: ", re.IGNORECASE)


def task_message(  # noqa: PLR0917 - one argument for each part of the message
    commit_type: str,
    phase: int | str | None,
    task_number: str,
    description: str,
    details: str = "",
    co_author: str = "",
) -> str:
    """Return the message of a task's commit: type(phase-task): description, details, trailer.

    The texts cannot add lines to the subject or trailers to the message.
    """
    scope = task_number if phase is None else f"{phase}-{task_number}"
    plain = PREFIX.sub("", _one_line(description), count=1) or "no description"
    subject = _cut(f"{_one_line(commit_type)}({_one_line(scope)}): {plain}")
    trailer = f"Co-Authored-By: {_one_line(co_author)}" if co_author else ""
    return "\n\n".join(part for part in (subject, _details(details), trailer) if part)


def task_of(subject: str, phase: Phase | None) -> str | None:
    """Return the number of the task of this phase whose commit has this subject; None if of none."""
    found = _SUBJECT.match(subject)
    if found is None:
        return None
    scope: str = found["scope"]
    if phase is None:
        return scope
    dashes = (at for at, sign in enumerate(scope) if sign == "-")
    return next((scope[at + 1 :] for at in dashes if same_phase(scope[:at], phase)), None)


def metadata_message(phase: int | str | None) -> str:
    """Return the message of the commit with the summary of a phase."""
    return _cut("docs: complete phase" + ("" if phase is None else f" {_one_line(str(phase))}"))


def co_author(client: str | None) -> str:
    """Return the co-author of commits made by this client, "" if none."""
    return CLAUDE if client == "claude" else ""


def _one_line(text: str) -> str:
    return display(" ".join(text.split()))


def _cut(subject: str) -> str:
    """Return the subject, truncated at a word if it is too long."""
    if len(subject) <= SUBJECT_CHARACTERS:
        return subject
    room = subject[: SUBJECT_CHARACTERS - 1]
    head, blank, _ = room.rpartition(" ")
    # A single word longer than the limit is truncated, not dropped.
    return (head if blank and not head.endswith("):") else room) + "…"


def _details(text: str) -> str:
    plain = display(text.replace("\r\n", "\n").replace("\r", "\n"), lines=True)
    lines = [TRAILER.sub("- ", line.rstrip()) for line in plain.split("\n")]
    return "\n".join(lines).strip("\n")
