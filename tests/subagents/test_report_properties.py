"""Whatever a report holds: written from a result it reads back, and its verdicts are counted."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.subagents.results import Issue, Result, read_result

# A leading w: no text is a label, a mark or an option by chance.
WORDS = st.text("abzöß日0189 .,;()/-", max_size=30).map(lambda text: f"w{text}".strip())
LINES = st.lists(WORDS, min_size=1, max_size=3).map("\n".join)
MAYBE = st.none() | LINES
PATHS = st.from_regex(r"[a-z_]{1,6}(/[a-z_]{1,6}){0,2}\.(py|md|test\.tsx)", fullmatch=True)
SEVERITIES = st.sampled_from(["low", "medium", "high", "unspecified"])
DECORATIONS = st.sampled_from(["", "## ", "- ", "> ", "* ", "1. ", "  "])
EMPHASES = st.sampled_from(["", "**", "_", "`"])
VERDICTS = {"complete": "TASK COMPLETE", "failed": "TASK FAILED", "checkpoint": "CHECKPOINT"}


@st.composite
def results(draw: st.DrawFn) -> Result:
    verdict = draw(st.sampled_from(list(VERDICTS)))
    options = draw(st.lists(WORDS, max_size=3)) if verdict == "checkpoint" else []
    return Result(
        verdict,
        draw(LINES),
        "\n\n".join(draw(st.lists(LINES, max_size=3))),
        issues=tuple(draw(st.lists(st.builds(Issue, SEVERITIES, LINES), max_size=2))),
        fixes=tuple(draw(st.lists(LINES, max_size=2))),
        commit_message=draw(MAYBE),
        files=tuple(draw(st.lists(PATHS, max_size=4, unique=True))),
        tests=draw(MAYBE),
        analysis=draw(MAYBE),
        suggested_fix=draw(MAYBE),
        options=tuple(f"{'ABC'[n]}) {text}" for n, text in enumerate(options)),
        recommendation=draw(MAYBE),
    )


def rendered(result: Result, decoration: str, emphasis: str) -> list[str]:
    """The result as the blocks of a report, in any order of which it means the same."""

    def mark(words: str, text: str) -> str:
        return f"{decoration}{emphasis}{words}:{emphasis} {text}"

    blocks = [mark(VERDICTS[result.verdict], result.reason)]
    for issue in result.issues:
        severity = "" if issue.severity == "unspecified" else f"[{issue.severity.upper()}] "
        blocks.append(mark("NEW ISSUE", severity + issue.text))
    blocks += [mark("AUTO-FIX", text) for text in result.fixes]
    labelled = {
        "Commit message": result.commit_message,
        "files modified": "".join(f"\n- {path}" for path in result.files),
        "TESTS": result.tests,
        "Root cause": result.analysis,
        "Suggested fix": result.suggested_fix,
        "Recommendation": result.recommendation,
    }
    blocks += [mark(label, text) for label, text in labelled.items() if text]
    if result.options:
        blocks.append("\n".join(f"{decoration}{option}" for option in result.options))
    return blocks


@given(results(), DECORATIONS, EMPHASES, st.randoms())
def test_a_result_that_is_written_down_reads_back(
    result: Result, decoration: str, emphasis: str, chance: random.Random
) -> None:
    blocks = rendered(result, decoration, emphasis)
    issues_and_fixes = blocks[1 : 1 + len(result.issues) + len(result.fixes)]
    others = [block for block in blocks if block not in issues_and_fixes]
    chance.shuffle(others)
    text = "\n\n".join([*others[:1], *issues_and_fixes, *others[1:], result.details])
    assert read_result(text) == result
    assert read_result(text.replace("\n", "\r\n")) == result


def outcome(text: str) -> Result | UsageError:
    try:
        return read_result(text)
    except UsageError as error:
        return error


POOL = st.sampled_from(
    ["TASK COMPLETE", "TASK FAILED: a", "CHECKPOINT: b", "TASK FAILED", "```", "~~~", "````", "",
     "text", "NEW ISSUE: [low] c", "Files:", "Options:", "- item", "A) option", "Tests: d", "## e"]
)  # fmt: skip


@given(st.lists(POOL, max_size=12))
def test_a_report_is_read_exactly_if_it_has_one_verdict_outside_of_fences(lines: list[str]) -> None:
    found = []
    fence = ""
    for line in lines:
        if line[:3] in ("```", "~~~") and (not fence or line.startswith(fence)):
            fence = "" if fence else line
        elif not fence and line.startswith(("TASK", "CHECKPOINT")):
            found.append(line)
    read = outcome("\n".join(lines))
    if isinstance(read, Result):
        assert len(found) == 1
        assert VERDICTS[read.verdict] in found[0]
    elif len(found) == 1:
        assert found == ["TASK FAILED"]
        assert "has nothing after it" in read.message
    elif found:
        assert f"{len(found)} verdicts" in read.message
    else:
        assert "no verdict" in read.message or "empty" in read.message


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_text_is_a_result_or_a_refusal(before: str, after: str) -> None:
    read = outcome(f"{before}\nTASK COMPLETE\n{after}")
    assert read.verdict == "complete" if isinstance(read, Result) else read.hint
