"""Look for activity outside the journal: tool calls in a transcript, commits in a repository."""

from __future__ import annotations

from gsd_fsm.core.syscalls import is_regular, read_file
from gsd_fsm.core.system import exists, join, parent_of, system

# A tool call in a transcript. Quotes inside a JSON text are escaped, so a message cannot imitate it.
_TOOL_CALLS = (
    b'"type":"tool_use"', b'"type":"function_call"', b'"type":"custom_tool_call"',
    b'"type":"local_shell_call"', b'"functionCall"', b'"toolCalls"', b'"type":"tool.execution_start"',
)  # fmt: skip
_LONGEST = max(len(call) for call in _TOOL_CALLS)
_CHUNK = 1 << 18
# The part of a transcript that counts as new if it was never read.
_FIRST_READ = 1 << 20


def transcript_size(path: str) -> int | None:
    """Return the size of the transcript, None if there is no such file."""
    try:
        info = system.stat(path)
    except (OSError, ValueError):
        return None
    return int(info.st_size) if is_regular(info) else None


def used_a_tool(path: str, known: int | None, size: int) -> bool:
    """Return whether the part of the transcript after `known` bytes has a tool call."""
    start = max(0, size - _FIRST_READ) if known is None else known
    if start > size:
        start = 0  # the file was replaced
    try:
        while start < size:
            part = read_file(path, start, _CHUNK)
            if any(call in part for call in _TOOL_CALLS):
                return True
            if len(part) < _CHUNK:
                return False
            start += len(part) - _LONGEST
    except OSError:
        pass
    return False


def head_commit(gsd: str) -> str | None:
    """Return the commit that is checked out, "" before the first one, None without git."""
    git = join(parent_of(gsd), ".git")
    if not exists(git):
        return None
    link = _line(git)
    if link.startswith("gitdir: "):
        git = (
            link[8:] if link[8:9] in "/\\" or ":" in link[8:10] else join(parent_of(git), link[8:])
        )
    head = _line(join(git, "HEAD"))
    if not head.startswith("ref: "):
        return _hash(head)
    name = head[5:]
    shared = _line(join(git, "commondir"))
    places = [git, join(git, shared)] if shared else [git]
    for place in places:
        commit = _hash(_line(join(place, name)))
        if commit:
            return commit
    for line in _text(join(places[-1], "packed-refs")).split("\n"):
        commit, _, packed = line.partition(" ")
        if packed == name:
            return _hash(commit)
    return ""


def _hash(text: str) -> str:
    """Return the text if it is a commit hash, else "": a reference may point to any file."""
    return text if len(text) in (40, 64) and not text.strip("0123456789abcdef") else ""


def _line(path: str) -> str:
    return _text(path, 512).strip()


def _text(path: str, most: int = 1 << 22) -> str:
    try:
        return read_file(path, 0, most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
