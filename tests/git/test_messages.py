"""Commit messages: subject, details, and no trailer but ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.git.messages import co_author, metadata_message, task_message, task_of
from tests.support.repositories import git

CLAUDE = "Claude <noreply@anthropic.com>"


def test_task_message_has_subject_details_and_trailer():
    message = task_message("feat", 1, "01", "add the hook", "Two files.\n\nOne more.", CLAUDE)
    assert message == (
        "feat(1-01): add the hook\n\nTwo files.\n\nOne more.\n\n"
        "Co-Authored-By: Claude <noreply@anthropic.com>"
    )
    assert task_message("feat", 1, "1", "it", "", CLAUDE).count("\n\n") == 1


def test_task_message_subject_has_type_scope_and_short_description():
    for parts, subject in (
        (("test", "2.1", "03", "cover it"), "test(2.1-03): cover it"),
        (("fix", 1, "G2", "the stub in a.py"), "fix(1-G2): the stub in a.py"),
        (("feat", None, "03", "it"), "feat(03): it"),
        (("feat", 1, "01", "feat(1-01): add it"), "feat(1-01): add it"),
        (("feat", 1, "01", "fix: keep this"), "feat(1-01): fix: keep this"),
        (("feat", 1, "01", " \n"), "feat(1-01): no description"),
        (("feat", 1, "01", "word " * 30), "feat(1-01): " + " ".join(["word"] * 11) + "…"),
        (("feat", 1, "01", "x" * 200), "feat(1-01): " + "x" * 59 + "…"),
        (("feat", 1, "01", "x" * 60), "feat(1-01): " + "x" * 60),
    ):
        assert task_message(*parts) == subject


@pytest.mark.parametrize(("phase", "words"), [(3, " 3"), ("beta\none", " beta one"), (None, "")])
def test_metadata_message_names_phase(phase, words):
    assert metadata_message(phase) == "docs: complete phase" + words


def test_co_author_is_given_for_claude_only():
    assert co_author("claude") == CLAUDE
    assert [co_author(client) for client in ("codex", "", None)] == ["", "", ""]


@pytest.mark.parametrize("author", [CLAUDE, ""])
def test_task_message_details_cannot_add_trailers(repo, author):
    for line in (
        "Co-Authored-By: Eve <e@x>", "co-authored-by : Eve <e@x>", "  \tCO-AUTHORED-BY: Eve <e@x>",
        "Signed-off-by: Eve <e@x>", "(cherry picked from commit Eve)", "Reviewed-by:Eve",
    ):  # fmt: skip
        message = task_message("feat", 1, "01", "it", f"words\r\n\r\n{line}\r{line}", author)
        parsed = git(repo, "interpret-trailers", "--parse", input=message)
        assert parsed == (f"Co-Authored-By: {CLAUDE}" if author else ""), line
        assert message.count("Eve") == 2


texts = st.text(st.characters(), max_size=200)


@given(texts, texts, texts, texts)
def test_task_message_of_any_text_has_one_subject_and_last_trailer(kind, number, words, details):
    message = task_message(kind, "1", number, words, details, CLAUDE)
    lines = message.split("\n")
    assert 0 < len(lines[0]) <= 72
    assert lines[1] == ""
    assert lines[-1] == f"Co-Authored-By: {CLAUDE}"
    assert sum(line.lower().lstrip().startswith("co-authored-by") for line in lines) == 1
    assert message.encode("utf-8")
    assert "\0" not in message
    assert "\r" not in message


@pytest.mark.parametrize(
    ("subject", "phase", "number"),
    [
        (task_message("feat", 1, "01", "it"), 1, "01"),
        (task_message("fix", "auth-flow", "G-1", "it"), "auth-flow", "G-1"),
        (task_message("feat", None, "03", "it"), None, "03"),
        ("Test(Phase-01-2)!: it", 1, "2"),
        *((subject, 1, None) for subject in (
            "feat(2-01): it", "feat(11-01): it", "feat(01): it", "feat(1-01) it", "feat: it",
            'Revert "feat(1-01): it"', "feat(1-01):it",
        )),
    ],
)  # fmt: skip
def test_task_of_a_subject_is_that_of_the_phase(subject, phase, number):
    assert task_of(subject, phase) == number
