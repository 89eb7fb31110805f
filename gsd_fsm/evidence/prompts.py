"""Look for prompts of the user in the transcript of Claude Code.

An agent can feed a forged prompt to the hook; the transcript shows whether a user typed it. Every
row of a prompt is written after its signal. Transcripts of other clients are not read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

from gsd_fsm.core.hook.activity import transcript_size
from gsd_fsm.core.hook.clients import prompt_digest
from gsd_fsm.core.loop.records import Prompt
from gsd_fsm.core.syscalls import read_file
from gsd_fsm.core.system import home

# The client writes its rows a moment late; a model usually takes longer to act on a prompt.
_PAUSES = (0.0, 0.05, 0.1, 0.15, 0.3, 0.4)
# The row of a prompt follows its signal closely.
_MOST_READ = 16 << 20
_MARKS = (b'"user"', b'"queue-operation"', b'"queued_command"')
# Rows that a user caused without sending a message to the model.
_NO_MESSAGE = (
    "<bash-",
    "<local-command",
    "<command-name>",
    "<task-notification",
    "<system-reminder",
)
_BY_MACHINE = ("system", "sdk")


# Programs whose signals name another client.
_ALIASES = {"kilo": "opencode"}


class Weighed(NamedTuple):
    """Whether a prompt is verified; `problem` is why no prompt counts, "" if one does."""

    verified: bool
    problem: str = ""


class Found(Enum):
    """What the transcript says about a prompt."""

    YES = "yes"
    NO = "no"
    NO_TRANSCRIPT = "no transcript"


def weigh(
    prompts: Sequence[Prompt],
    transcripts: Mapping[str, str],
    client: str | None,
    pids: Collection[int],
) -> Weighed:
    """Return whether an agent of this client, below these processes, can rely on one of the prompts.

    `transcripts`: the ones that were named first, by session. No `pids`: they are not known.
    """
    problems = []
    is_unverified = False
    for prompt in prompts:
        problem = _mismatch(prompt, _ALIASES.get(client or "", client), pids)
        if not problem and not _is_of_claude(prompt, client):
            is_unverified = True
            continue
        if not problem and not belongs_to_session(prompt, transcripts.get(prompt.session or "")):
            problem = "the user's message names a transcript of another session"
        found = Found.NO if problem else find_prompt(prompt)
        if found is Found.YES:
            return Weighed(verified=True)
        is_unverified = is_unverified or found is Found.NO_TRANSCRIPT
        problems.append(problem or "the client's transcript does not have the user's message")
    return Weighed(verified=False, problem="" if is_unverified else problems[0])


def _mismatch(prompt: Prompt, client: str | None, pids: Collection[int]) -> str:
    """Return why a prompt was not sent to the caller, "" if it may have been."""
    if prompt.client and client not in (None, "agent", prompt.client):
        return "the user's message was sent to another client"
    if prompt.pid and pids and prompt.pid not in pids:
        return "the user's message was sent to another process of the client"
    return ""


def _is_of_claude(prompt: Prompt, client: str | None) -> bool:
    """Return whether Claude Code has a transcript of this prompt; others may look like it."""
    return client == "claude" or (client in (None, "agent") and prompt.client == "claude")


def find_prompt(prompt: Prompt) -> Found:
    """Return whether the transcript has this prompt; wait a moment for rows that are due."""
    for pause in _PAUSES:
        sleep(pause)
        size = transcript_size(prompt.file or "")
        if not size or size < prompt.offset:
            return Found.NO_TRANSCRIPT  # never written, or begun anew
        found = _judge(_new_rows(prompt), prompt)
        if found is not None:
            return found
    return Found.YES if _is_queued(_new_rows(prompt), prompt) else Found.NO


def belongs_to_session(prompt: Prompt, known: str | None) -> bool:
    """Return whether a prompt names the transcript of its own session.

    `known`: the one that was named first. If Claude Code has one for this session, only that counts.
    """
    path = Path(prompt.file or "")
    if path.name != f"{prompt.session}.jsonl":
        return False
    existing = [it for projects in _project_folders() for it in projects.glob(f"*/{path.name}")]
    if existing:
        return path.exists() and any(path.samefile(other) for other in existing)
    return known in (None, prompt.file)


def _project_folders() -> list[Path]:
    """Return where Claude Code keeps transcripts."""
    places = [Path(home(), ".claude")]
    if sys.platform != "win32":
        import pwd

        # HOME is a variable that an agent can set.
        places.append(Path(pwd.getpwuid(os.geteuid()).pw_dir, ".claude"))
    if chosen := os.environ.get("CLAUDE_CONFIG_DIR"):
        places.append(Path(chosen))
    return [place / "projects" for place in places]


# rows


def _new_rows(prompt: Prompt) -> list[dict[str, Any]]:
    """Return the rows since the signal of the prompt that may be about prompts."""
    try:
        data = read_file(prompt.file or "", prompt.offset, _MOST_READ)
    except (OSError, ValueError):
        return []
    rows = []
    for line in data.split(b"\n"):
        if any(mark in line for mark in _MARKS):
            try:
                row = json.loads(line)
            except ValueError:
                continue  # still being written
            if isinstance(row, dict):
                rows.append(row)
    return rows


def _judge(rows: Sequence[dict[str, Any]], prompt: Prompt) -> Found | None:
    """Return whether a user or the client itself sent the prompt, None if no row tells."""
    by_client = False
    for row in rows:
        text = _delivered(row)
        if text is None:
            continue
        is_by_user = _is_by_user(row)
        if prompt.digest is None:
            if is_by_user and not text.startswith(_NO_MESSAGE):
                return Found.YES
        elif prompt_digest(text) == prompt.digest:
            if is_by_user:
                return Found.YES
            by_client = True  # for example a scheduled task
        elif is_by_user and prompt.id is not None and row.get("promptId") == prompt.id:
            return Found.YES
    return Found.NO if by_client else None


def _is_by_user(row: dict[str, Any]) -> bool:
    """Return whether a user typed what this row delivers."""
    attachment = row.get("attachment")
    source = attachment if isinstance(attachment, dict) else row
    origin = source.get("origin")
    if isinstance(origin, dict):
        is_human = origin.get("kind") == "human"
    else:
        is_human = not row.get("isMeta") and row.get("promptSource") not in _BY_MACHINE
    return is_human and not str(row.get("entrypoint", "")).startswith("sdk-")


def _is_queued(rows: Sequence[dict[str, Any]], prompt: Prompt) -> bool:
    """Return whether the prompt waits for the model to finish what it does."""
    queued = [row.get("content") for row in rows if row.get("operation") == "enqueue"]
    return any(isinstance(it, str) and prompt_digest(it) == prompt.digest for it in queued)


def _delivered(row: dict[str, Any]) -> str | None:
    """Return the prompt that this row delivers to the model, None if it delivers none."""
    attachment = row.get("attachment")
    if isinstance(attachment, dict):
        queued = attachment.get("type") == "queued_command"
        return _text(attachment.get("prompt")) if queued else None
    message = row.get("message")
    if row.get("type") != "user" or row.get("isSidechain") or not isinstance(message, dict):
        return None
    text = _text(message.get("content"))
    return None if text is None else _as_typed(text)


def _text(content: Any) -> str | None:
    """Return the text of a message, None if it is the result of a tool."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part for part in content if isinstance(part, dict)]
    if any(part.get("type") == "tool_result" for part in parts):
        return None
    return "\n".join(
        str(part["text"]) for part in parts if part.get("type") == "text" and "text" in part
    )


def _as_typed(text: str) -> str:
    """Return a slash command as the user typed it."""
    if "<command-name>" not in text:
        return text
    words = [_between(text, f"<{tag}>", f"</{tag}>") for tag in ("command-name", "command-args")]
    return " ".join(filter(None, words)) if text.startswith("<command-message>") else text


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0].strip()
