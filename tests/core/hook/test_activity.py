"""Activity outside the journal: tool calls in a transcript, and commits."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gsd_fsm.core.hook.activity import head_commit, transcript_size, used_a_tool
from tests.support.command_line import Here
from tests.support.hook_agent import Agent
from tests.support.repositories import git

TOOL = b'{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}\n'


def uses_tool(path: Path, known: int | None) -> bool:
    size = transcript_size(str(path))
    assert size is not None
    return used_a_tool(str(path), known, size)


def test_tool_call_counts_only_in_the_new_part_of_a_transcript(tmp_path: Path) -> None:
    transcript = tmp_path / "t"
    transcript.write_bytes(TOOL)
    assert uses_tool(transcript, 0)
    assert uses_tool(transcript, None)
    assert not uses_tool(transcript, len(TOOL))
    words = {"text": '{"type":"tool_use","functionCall":1,"toolCalls":[]}'}
    transcript.write_bytes(TOOL + json.dumps(words, separators=(",", ":")).encode())
    assert not uses_tool(transcript, len(TOOL)), "words about a tool call are not one"
    transcript.write_bytes(TOOL[:-1])
    assert uses_tool(transcript, 10_000), "a shorter transcript is another one"
    transcript.write_bytes(TOOL + b"x" * (1 << 20))
    assert not uses_tool(transcript, None), "the first time, only the last megabyte counts"


def test_tool_call_is_found_in_a_long_transcript(tmp_path: Path) -> None:
    for before in range(262_100, 262_200, 9):  # around the end of a chunk
        (tmp_path / "t").write_bytes(b"x" * before + TOOL + b"y" * 700_000)
        assert uses_tool(tmp_path / "t", 0)
        assert uses_tool(tmp_path / "t", None)


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "nul", "surrogate"])
def test_irregular_transcript_is_not_activity(looping: Agent, tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "t") + {"nul": "\0", "surrogate": "\ud800"}.get(kind, "")
    if kind == "directory":
        path = str(tmp_path)
    elif kind == "fifo":
        os.mkfifo(path)
    assert transcript_size(path) is None
    looping.blocked(transcript_path=path)
    data = looping.here.last()["data"]
    assert (data["activity"], "transcript" in data) == (False, False)


def head(root: Path) -> str | None:
    return head_commit(str(root / ".gsd"))


def test_commit_is_activity(looping: Agent, repository: Here) -> None:
    looping.blocked()
    git(repository.root, "commit", "-qm", "more", "--allow-empty")
    looping.blocked()
    assert looping.here.last()["data"]["activity"] is True
    looping.blocked()
    assert looping.here.last()["data"]["activity"] is False


def test_head_commit_is_none_without_git_and_empty_without_a_commit(tmp_path: Path) -> None:
    assert head(tmp_path) is None
    git(tmp_path, "init", "-q", "--template=")
    assert head(tmp_path) == ""
    git(tmp_path, "commit", "-qm", "first", "--allow-empty")
    assert len(head(tmp_path) or "") == 40
    (tmp_path / ".git" / "HEAD").write_text("ref: ../secret\n")
    (tmp_path / "secret").write_text("A PRIVATE KEY")
    assert head(tmp_path) == ""


def test_head_commit_follows_packed_refs_detached_heads_and_worktrees(repository: Here) -> None:
    root, tree = repository.root, repository.root.parent / "tree"
    first = head(root)
    for command in (("pack-refs", "--all"), ("checkout", "-q", "--detach")):
        git(root, *command)
        assert head(root) == first
    git(root, "worktree", "add", "-q", str(tree))
    assert head(tree) == first
    for command in (("commit", "-qm", "more", "--allow-empty"), ("pack-refs", "--all")):
        git(tree, *command)
        assert head(tree) not in (first, None, "")
