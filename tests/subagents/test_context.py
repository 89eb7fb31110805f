"""The documents, skills and issues of a project that prompts contain."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.subagents.context import ISSUES, SKILL, Context, is_open, open_issues, read_context
from gsd_fsm.subagents.context import test_command as command_of
from tests.support.prompts import a_task, between, prompt_of, write


def overview(project: Path, text: str) -> str:
    write(project / ".gsd/PROJECT.md", text)
    found = read_context(project, {}).project
    assert found
    assert found.path == ".gsd/PROJECT.md"
    return found.text


def test_context_of_a_bare_project_is_empty(tmp_path: Path) -> None:
    assert read_context(tmp_path, {}) == Context(
        root=tmp_path,
        project=None,
        conventions=None,
        issues=None,
        mcps=(),
        browser=False,
        base_url=None,
        test_command="pytest",
        notes=(),
    )


@pytest.mark.parametrize(
    "heading", ["## Overview", "# OVERVIEW", "### 1. overview:", "## **Overview** ##"]
)
def test_overview_is_the_section_of_that_name(tmp_path: Path, heading: str) -> None:
    level = heading.split(maxsplit=1)[0]
    text = (
        f"# Name\n\nIntro.\n\n{heading}\n\nIt is this.\n\n{level}# Part\nof it\n```\n# code\n```\n"
    )
    after = f"{level} Other\n\nNot this.\n"
    assert (
        overview(tmp_path, text + after) == f"It is this.\n\n{level}# Part\nof it\n```\n# code\n```"
    )


@pytest.mark.parametrize(
    "text", ["No headings.", "# Overviews\n\ntext", "## Overview\n\n## Next\n\ntext"]
)
def test_overview_without_such_a_section_is_the_beginning(tmp_path: Path, text: str) -> None:
    assert overview(tmp_path, text) == text
    long = overview(tmp_path, text + "\nline" * 2_000)
    assert long.startswith(text)
    assert long.endswith("\n…[cut here; the rest is in .gsd/PROJECT.md]")
    assert 1_900 < len(long) <= 2_000


@pytest.mark.parametrize("name", ["CONVENTIONS.md", "conventions.md", "Conventions.MD"])
def test_conventions_file_may_be_in_any_case(tmp_path: Path, name: str) -> None:
    write(tmp_path / ".gsd/codebase" / name, "Tabs.")
    found = read_context(tmp_path, {}).conventions
    assert found == (f".gsd/codebase/{name}", "Tabs.")


def test_documents_of_the_planning_tool_come_first(tmp_path: Path) -> None:
    write(tmp_path / ".gsd/PROJECT.md", "ours")
    write(tmp_path / ".opti-gsd/PROJECT.md", "theirs")
    assert read_context(tmp_path, {}).project == (".opti-gsd/PROJECT.md", "theirs")


def test_documents_are_decoded_from_any_encoding(tmp_path: Path) -> None:
    assert overview(tmp_path, "\ufeffone\r\ntwo\rthree") == "one\ntwo\nthree"
    write(tmp_path / ".gsd/PROJECT.md", b"caf\xe9")
    assert read_context(tmp_path, {}).project == (".gsd/PROJECT.md", "caf\ufffd")
    write(tmp_path / ".gsd/PROJECT.md", b" \n")
    assert read_context(tmp_path, {}).project is None


def test_unreadable_documents_are_left_out_and_noted(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(tmp_path / "secret.md", "SECRET")
    write(project / ".gsd/PROJECT.md", b"\0\1\2")
    (project / ".gsd/codebase").mkdir()
    (project / ".gsd/codebase/CONVENTIONS.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(project / ".gsd/ISSUES.md")
    (project / ".gsd/issues").symlink_to("/dev")
    context = read_context(project, {})
    assert (context.project, context.conventions, context.issues) == (None, None, None)
    assert context.notes == (
        ".gsd/PROJECT.md: not a text file (NUL byte)",
        ".gsd/codebase/CONVENTIONS.md: points outside the project",
        ".gsd/ISSUES.md: not a regular file",
    )
    prompt = prompt_of(project)
    assert between(prompt, "left_out").splitlines() == list(context.notes)
    assert "SECRET" not in prompt


def test_link_within_the_project_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "docs/style.md", "Tabs.")
    (tmp_path / ".gsd/codebase").mkdir(parents=True)
    (tmp_path / ".gsd/codebase/CONVENTIONS.md").symlink_to("../../docs/style.md")
    assert read_context(tmp_path, {}).conventions == (".gsd/codebase/CONVENTIONS.md", "Tabs.")


def test_huge_document_is_cut_with_a_note(tmp_path: Path) -> None:
    write(tmp_path / ".gsd/codebase/CONVENTIONS.md", "é" * 5_000_000)
    found = read_context(tmp_path, {}).conventions
    assert found
    assert found.text.endswith("…[cut here; the rest is in .gsd/codebase/CONVENTIONS.md]")
    assert len(found.text) <= 16_000


@pytest.mark.parametrize(
    "path",
    [
        ".claude/skills/review/SKILL.md",
        ".opti-gsd/skills/review.md",
        "skills/review/SKILL.md",
        "skills/review.md",
    ],
)
def test_skill_is_found_in_every_skill_directory(tmp_path: Path, path: str) -> None:
    write(tmp_path / path, "Review everything.")
    assert read_context(tmp_path, {}).skill("review") == (path, "Review everything.")
    body = between(prompt_of(tmp_path, a_task(skills=("review", "other"))), "skills")
    assert body.startswith('<skill name="review">Review everything.</skill>')
    assert '<skill name="other">This project has no file for it.' in body


def test_skill_is_taken_from_the_first_directory_and_cut(tmp_path: Path) -> None:
    write(tmp_path / "skills/review.md", "second")
    write(tmp_path / ".claude/skills/review/SKILL.md", "first\n" * 10_000)
    found = read_context(tmp_path, {}).skill("review")
    assert found
    assert found.text.startswith("first\n")
    assert len(found.text) <= SKILL


@pytest.mark.parametrize(
    "name", ["../secret", "a/b", "", ".", "..", "/etc/passwd", "a\0b", "x" * 300]
)
def test_skill_name_cannot_be_a_path(tmp_path: Path, name: str) -> None:
    write(tmp_path / "secret.md", "SECRET")
    write(tmp_path / "skills/a/b.md", "SECRET")
    assert read_context(tmp_path, {}).skill(name) is None
    assert "SECRET" not in prompt_of(tmp_path, a_task(skills=(name,)))


def test_unreadable_skill_is_noted(tmp_path: Path) -> None:
    (tmp_path / "skills/review.md").mkdir(parents=True)
    prompt = prompt_of(tmp_path, a_task(skills=("review",)))
    assert "[not read: skills/review.md: not a regular file]" in prompt


def test_test_command_is_the_setting_or_the_usual_one(tmp_path: Path) -> None:
    assert command_of(tmp_path, {}) == "pytest"
    write(tmp_path / "package.json", "{}")
    assert command_of(tmp_path, {"ci_test": None}) == "npm test"
    assert command_of(tmp_path, {"ci_test": "make test"}) == "make test"


def test_issues_come_from_the_list_and_from_files(tmp_path: Path) -> None:
    write(tmp_path / ".gsd/ISSUES.md", "- [ ] a leak\n- [x] a crash\n")
    write(tmp_path / ".gsd/issues/2.md", "---\nstatus: open\n---\n# Slow start\n\nVery.")
    write(tmp_path / ".gsd/issues/1.md", "# Old\n\n**Status:** resolved")
    write(tmp_path / ".gsd/issues/notes.txt", "status: open")
    found = read_context(tmp_path, {}).issues
    assert found == (
        ".gsd/ISSUES.md",
        "- [ ] a leak\n\n.gsd/issues/2.md:\n# Slow start\n\nVery.",
    )
    assert "a leak" in between(prompt_of(tmp_path), "known_issues")


def test_many_issues_are_counted_and_long_ones_cut(tmp_path: Path) -> None:
    for number in range(25):
        write(tmp_path / f".gsd/issues/{number:02}.md", "Status: open\n" + "long line\n" * 10)
    found = read_context(tmp_path, {}).issues
    assert found
    assert "[5 more open issues in .gsd/issues]" in found.text
    write(tmp_path / ".gsd/ISSUES.md", "- [ ] " + "x" * 60_000)
    found = read_context(tmp_path, {}).issues
    assert found
    assert len(found.text) <= ISSUES


# Open issues


def test_unchecked_items_are_open_with_the_lines_below() -> None:
    text = (
        "# Issues\n\nSome words.\n\n- [ ] a leak\n  in the lexer\n\n- [x] a crash\n  at the end\n"
        "* [ ] slow\n- [X] loud\n- [ ] ~~late~~ (fixed)\nThe end.\n"
    )
    assert open_issues(text) == "- [ ] a leak\n  in the lexer\n* [ ] slow"


@pytest.mark.parametrize(
    ("is_open", "lines"),
    [
        (False, ("- a leak (fixed)", "- [RESOLVED] a leak", "- a leak: closed", "- FIXED: a leak",
                 "- ~~a leak~~", "- a leak, fixed in 1.2", "| a leak | Closed |", "Closed - a leak",
                 "- a leak — resolved", "- a leak was fixed.")),
        (True, ("- a leak", "- the fixed-width font is wide", "- a leak that must be fixed",
                "- closed sockets leak", "- not fixed", "| a leak | open |", "- it crashed")),
    ],
)  # fmt: skip
def test_line_is_open_unless_a_remark_closes_it(is_open: bool, lines: tuple[str, ...]) -> None:
    for line in lines:
        expected = f"{line}\n- another" if is_open else "- another"
        assert open_issues(f"# Issues\n\n{line}\n- another\n") == expected


def test_closed_section_is_closed_with_its_subsections() -> None:
    text = (
        "# Issues\n\n## Open\n\n### One\n**Status:** open\n\n### Two\n- Status: resolved\nwords\n"
        "#### More\nof two\n\n## Resolved\n\n### Three\nwords\n\n## Later\n- four\n"
    )
    assert open_issues(text) == "### One\n**Status:** open\n## Later\n- four"


def test_list_without_open_issues_is_empty() -> None:
    assert open_issues("# Issues\n\n- [x] a\n") == ""
    assert open_issues("# Issues\n\n---\n\n## Closed\n- a\n") == ""


def test_issue_file_is_open_if_its_status_is() -> None:
    for text in ("status: open", "a\n**Status:** Open\nb", "- Status — open", "| status | open |"):
        assert is_open(text)
    for text in ("", "open", "status: opened", "status:\nopen", "the status: open"):
        assert not is_open(text)


@pytest.mark.parametrize(
    "text", ["~", "\n", "- [", "(", " ", "fixed ", "|", "#", ", ", "- [ ] x\n"]
)
def test_long_issue_list_is_read_in_linear_time(text: str) -> None:
    long = text * (65_536 // len(text))
    assert isinstance(open_issues(long + "x"), str)
    assert not is_open(long)
