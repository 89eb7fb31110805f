"""A prompt has its limit: documents give way first, then skills, never the task itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.subagents.context import Document, shortened
from gsd_fsm.subagents.prompt import MAX_PROMPT
from tests.support.prompts import a_task, an_error, between, prompt_of, write

LONG = "A line of some length that says little.\n" * 1_600  # nearly all that is read of a file
CUT = "…[cut here; the rest is in {}]"
LEFT_OUT = "[left out for want of room; read {}]"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A project with much to read."""
    write(tmp_path / ".gsd/PROJECT.md", f"# Overview\n{LONG}")
    write(tmp_path / ".gsd/codebase/CONVENTIONS.md", LONG)
    write(tmp_path / ".gsd/ISSUES.md", f"- [ ] one\n  {LONG}".replace("\n", "\n  "))
    for name in ("one", "two", "three", "four"):
        write(tmp_path / f"skills/{name}.md", LONG)
    return tmp_path


def essentials(prompt: str) -> dict[str, str]:
    return {name: between(prompt, name) for name in ("action", "verify", "done", "rules", "output")}


def test_documents_stay_whole_while_there_is_room(tmp_path: Path) -> None:
    write(tmp_path / ".gsd/codebase/CONVENTIONS.md", "c" * 15_000)
    write(tmp_path / "skills/one.md", "s" * 15_000)
    prompt = prompt_of(tmp_path, a_task(skills=("one",), action="a" * 20_000))
    assert "c" * 15_000 in prompt
    assert "s" * 15_000 in prompt
    assert "cut here" not in prompt


def test_documents_are_cut_before_skills(library: Path) -> None:
    prompt = prompt_of(library, a_task(skills=("one", "two", "three")))
    assert len(prompt) <= MAX_PROMPT
    assert between(prompt, "skills").count(LONG[:15_000]) == 3
    assert CUT.format(".gsd/PROJECT.md") in between(prompt, "project")
    assert len(between(prompt, "conventions")) < 5_000
    assert ".gsd/codebase/CONVENTIONS.md" in between(prompt, "conventions")
    assert ".gsd/ISSUES.md" in between(prompt, "known_issues")


def test_skills_are_cut_when_nothing_else_is_left(library: Path) -> None:
    prompt = prompt_of(library, a_task(skills=("one", "two", "three", "four")))
    assert len(prompt) <= MAX_PROMPT
    assert between(prompt, "project") == LEFT_OUT.format(".gsd/PROJECT.md")
    assert between(prompt, "conventions") == LEFT_OUT.format(".gsd/codebase/CONVENTIONS.md")
    assert CUT.format("skills/four.md") in between(prompt, "skills")


@pytest.mark.parametrize("size", [0, 30_000, 50_000, 55_000, 59_000, 200_000])
def test_what_is_to_be_done_is_never_cut(library: Path, tmp_path: Path, size: int) -> None:
    task = a_task(action="Do this. " + "a" * size, skills=("one", "two"))
    state: dict[str, Any] = {"errors": [an_error("e" * 5_000)] * 3, "retries": 1}
    prompt = prompt_of(library, task, state=state)
    bare = prompt_of(tmp_path / "nowhere", task, state=state)
    assert essentials(prompt) == essentials(bare)
    assert prompt.count("<error>") == 3
    assert len(prompt) <= max(MAX_PROMPT, len(bare) + 1_000)


@pytest.mark.parametrize("room", [400, 401, 1_000, 5_000])
def test_a_shortened_document_fits_and_ends_at_a_line(room: int) -> None:
    text = shortened(Document("a.md", LONG), room)
    assert len(text) <= room
    kept = text.removesuffix("\n" + CUT.format("a.md"))
    assert LONG.startswith(kept + "\n")
    assert len(shortened(Document("a.md", "x" * 9_999), room)) == room


def test_a_document_that_fits_is_left_alone() -> None:
    assert shortened(Document("a.md", "x" * 500), 500) == "x" * 500
    assert shortened(Document("a.md", "short"), 5) == "short"
    assert shortened(Document("a.md", "x" * 500), -1) == LEFT_OUT.format("a.md")
