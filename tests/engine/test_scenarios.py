"""Whole stories as text: command lines, then `----`, then the timeline they must lead to.

A line may begin with NAME=VALUE settings of its environment and end in `=> CODE`, the exit code
that is expected instead of 0. `{1}` is the first loop, `FILE <- TEXT` writes a file.
`GSD_RECORD=1 pytest tests/engine/test_scenarios.py` writes the timelines anew.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Here, git
from tests.support.prefixes import require_legal_prefixes

if TYPE_CHECKING:
    from tests.conftest import Project

STORIES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.txt"))
RULER = "----\n"


def play(here: Here, story: str) -> None:
    loops: list[str] = []
    for line in story.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line == "git init":
            git(here.root, "init", "-q", "--template=")
            continue
        if " <- " in line:
            name, text = line.split(" <- ", 1)
            (here.root / name).write_text(text + "\n")
            continue
        command, _, code = line.partition(" => ")
        words = shlex.split(command)
        env = {}
        while re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, _, env[name] = words.pop(0).partition("=")
        for number, loop in enumerate(loops, 1):
            words = [word.replace(f"{{{number}}}", loop) for word in words]
        answer = here.run(*words, env=env)
        assert answer.code == int(code or 0), (line, answer)
        if words[0] == "start" and answer.code == 0:
            loops.append(here.last()["loop"])


def told(here: Here) -> str:
    """The timeline and the last state, without what differs from run to run."""
    started = [event["loop"] for event in here.lines() if event["type"] == "start"]
    rows = here.ok("--loop", here.last()["loop"], "replay", "--json").json
    timeline = here.ok("replay").out.splitlines()[:-1]
    lines = [re.sub(r"  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "", line) for line in timeline]
    lines += [f"{rows['events']} events, {rows['status']}", rows["state"]["next"]]
    text = "\n".join(line.rstrip() for line in lines)
    for number, loop in enumerate(started, 1):
        text = text.replace(loop, f"{{{number}}}")
    text = re.sub(r"\bj-[a-z0-9]{12}\b", "j-…", text)
    return re.sub(r"\b[0-9a-f]{16}\b", "<digest>", text) + "\n"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_ends_as_recorded(
    path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(project.root, monkeypatch)
    story, _, expected = path.read_text(encoding="utf-8").partition(RULER)
    play(here, story)
    found = told(here)
    if os.environ.get("GSD_RECORD") == "1":
        path.write_text(story + RULER + found, encoding="utf-8")
        return
    assert found == expected


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_every_prefix_of_a_story_is_a_legal_history(
    path: Path, project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = Here(project.root, monkeypatch)
    play(here, path.read_text(encoding="utf-8").partition(RULER)[0])
    require_legal_prefixes(tmp_path / "part" / ".gsd", here.journal.read_bytes())


def test_there_are_stories() -> None:
    assert len(STORIES) >= 10
