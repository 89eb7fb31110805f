"""The documents, skills and issues of a project that prompts contain."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.subagents import context
from gsd_fsm.subagents.context import ISSUES, SKILL, Context, is_open, open_issues, read_context
from tests.support.prompts import a_task, between, prompt_of, write


def overview(project: Path, text: str) -> str:
    write(project / ".gsd/PROJECT.md", text)
    path, found = read_context(project, {}).project
    assert path == ".gsd/PROJECT.md"
    return found


def test_context_of_a_bare_project_is_empty(tmp_path: Path) -> None:
    nothing = Context(tmp_path, None, None, None, (), False, None, "pytest", ())
    assert read_context(tmp_path, {}) == nothing


def test_overview_is_the_section_of_that_name(tmp_path: Path) -> None:
    for heading in ("## Overview", "# OVERVIEW", "### 1. overview:", "## **Overview** ##"):
        level = heading.split(maxsplit=1)[0]
        section = f"It is this.\n\n{level}# Part\nof it\n```\n# code\n```"
        text = f"# Name\n\nIntro.\n\n{heading}\n\n{section}\n{level} Other\n\nNot this.\n"
        assert overview(tmp_path, text) == section


def test_overview_without_such_a_section_is_the_beginning(tmp_path: Path) -> None:
    for text in ("No headings.", "# Overviews\n\ntext", "## Overview\n\n## Next\n\ntext"):
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


def test_documents_are_decoded_and_those_of_the_planning_tool_come_first(tmp_path: Path) -> None:
    assert overview(tmp_path, "\ufeffone\r\ntwo\rthree") == "one\ntwo\nthree"
    write(tmp_path / ".gsd/PROJECT.md", b" \n")
    assert read_context(tmp_path, {}).project is None
    write(tmp_path / ".opti-gsd/PROJECT.md", b"caf\xe9")
    assert read_context(tmp_path, {}).project == (".opti-gsd/PROJECT.md", "caf\ufffd")


def test_unreadable_documents_are_left_out_and_noted(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(tmp_path / "secret.md", "SECRET")
    write(project / ".gsd/PROJECT.md", b"\0\1\2")
    (project / ".gsd/codebase").mkdir()
    (project / ".gsd/codebase/CONVENTIONS.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(project / ".gsd/ISSUES.md")
    (project / ".gsd/issues").symlink_to("/dev")
    found = read_context(project, {})
    assert (found.project, found.conventions, found.issues) == (None, None, None)
    assert found.notes == (
        ".gsd/PROJECT.md: not a text file (NUL byte)",
        ".gsd/codebase/CONVENTIONS.md: points outside the project",
        ".gsd/ISSUES.md: not a regular file",
    )
    prompt = prompt_of(project)
    assert between(prompt, "left_out").splitlines() == list(found.notes)
    assert "SECRET" not in prompt


def test_huge_document_is_cut_with_a_note(tmp_path: Path) -> None:
    write(tmp_path / "docs/style.md", "é" * 5_000_000)
    (tmp_path / ".gsd/codebase").mkdir(parents=True)
    (tmp_path / ".gsd/codebase/CONVENTIONS.md").symlink_to("../../docs/style.md")
    text = read_context(tmp_path, {}).conventions.text
    assert text.endswith("é\n…[cut here; the rest is in .gsd/codebase/CONVENTIONS.md]")
    assert len(text) <= 16_000


SKILLS = (".claude/skills/review/SKILL.md", ".opti-gsd/skills/review.md", "skills/review/SKILL.md",
          "skills/review.md")  # fmt: skip


def test_skill_is_found_in_every_skill_directory(tmp_path: Path) -> None:
    (tmp_path / SKILLS[3]).mkdir(parents=True)
    prompt = prompt_of(tmp_path, a_task(skills=("review",)))
    assert "[not read: skills/review.md: not a regular file]" in prompt
    (tmp_path / SKILLS[3]).rmdir()
    for path in SKILLS[::-1]:  # the last one that is written has precedence
        write(tmp_path / path, f"Review {path}.")
        assert read_context(tmp_path, {}).skill("review") == (path, f"Review {path}.")
    body = between(prompt_of(tmp_path, a_task(skills=("review", "other"))), "skills")
    assert body.startswith(f'<skill name="review">Review {SKILLS[0]}.</skill>')
    assert '<skill name="other">This project has no file for it.' in body
    write(tmp_path / SKILLS[0], "long\n" * 10_000)
    assert 0 < len(read_context(tmp_path, {}).skill("review").text) <= SKILL


def test_skill_name_cannot_be_a_path(tmp_path: Path) -> None:
    write(tmp_path / "secret.md", "SECRET")
    write(tmp_path / "skills/a/b.md", "SECRET")
    for name in ("../secret", "a/b", "", ".", "..", "/etc/passwd", "a\0b", "x" * 300):
        assert read_context(tmp_path, {}).skill(name) is None
        assert "SECRET" not in prompt_of(tmp_path, a_task(skills=(name,)))


def test_test_command_is_the_setting_or_the_usual_one(tmp_path: Path) -> None:
    command_of = context.test_command
    assert command_of(tmp_path, {}) == "pytest"
    write(tmp_path / "package.json", "{}")
    assert command_of(tmp_path, {"ci_test": None}) == "npm test"
    assert command_of(tmp_path, {"ci_test": "make test"}) == "make test"


def test_issues_come_from_the_list_and_from_files(tmp_path: Path) -> None:
    write(tmp_path / ".gsd/ISSUES.md", "- [ ] a leak\n- [x] a crash\n")
    write(tmp_path / ".gsd/issues/2.md", "---\nstatus: open\n---\n# Slow start\n\nVery.")
    write(tmp_path / ".gsd/issues/1.md", "# Old\n\n**Status:** resolved")
    write(tmp_path / ".gsd/issues/notes.txt", "status: open")
    listed = "- [ ] a leak\n\n.gsd/issues/2.md:\n# Slow start\n\nVery."
    assert read_context(tmp_path, {}).issues == (".gsd/ISSUES.md", listed)
    assert "a leak" in between(prompt_of(tmp_path), "known_issues")


def test_many_issues_are_counted_and_long_ones_cut(tmp_path: Path) -> None:
    for number in range(25):
        write(tmp_path / f".gsd/issues/{number:02}.md", "Status: open\n" + "long line\n" * 10)
    assert "[5 more open issues in .gsd/issues]" in read_context(tmp_path, {}).issues.text
    write(tmp_path / ".gsd/ISSUES.md", "- [ ] " + "x" * 60_000)
    assert 0 < len(read_context(tmp_path, {}).issues.text) <= ISSUES


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


def test_closed_sections_and_their_subsections_are_left_out() -> None:
    text = (
        "# Issues\n\n## Open\n\n### One\n**Status:** open\n\n### Two\n- Status: resolved\nwords\n"
        "#### More\nof two\n\n## Resolved\n\n### Three\nwords\n\n## Later\n- four\n"
    )
    assert open_issues(text) == "### One\n**Status:** open\n## Later\n- four"
    assert open_issues("# Issues\n\n- [x] a\n") == ""
    assert open_issues("# Issues\n\n---\n\n## Closed\n- a\n") == ""


def test_issue_file_is_open_if_its_status_is() -> None:
    for text in ("status: open", "a\n**Status:** Open\nb", "- Status — open", "| status | open |"):
        assert is_open(text)
    for text in ("", "open", "status: opened", "status:\nopen", "the status: open"):
        assert not is_open(text)


def test_long_issue_list_is_read_in_linear_time() -> None:
    for text in ("~", "\n", "- [", "(", " ", "fixed ", "|", "#", ", ", "- [ ] x\n"):
        long = text * (65_536 // len(text))
        assert isinstance(open_issues(long + "x"), str)
        assert not is_open(long)
