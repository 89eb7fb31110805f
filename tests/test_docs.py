"""The documents agree with the code: links, named tests, tables, examples and sessions."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from gsd_fsm.cli import COMMANDS
from gsd_fsm.config import settings
from gsd_fsm.config.keys import VIEWS
from gsd_fsm.core import errors
from gsd_fsm.core.codec import MAX_DEPTH, MAX_LINE
from gsd_fsm.core.journal.scan import Cursor, into_fold, scan
from gsd_fsm.core.loop import limits
from gsd_fsm.core.loop.events.lifecycle import PAUSE_CODES
from gsd_fsm.core.loop.fold import EVENTS, TRIGGERS, Loops
from gsd_fsm.core.loop.state import STATUSES
from gsd_fsm.engine.status import CHECK_CODES
from gsd_fsm.history.graph import mermaid
from scripts.event_notes import CAPACITY_NOTES, MEMBER_NOTES, PAUSE_NOTES
from scripts.generate import generated
from tests.support.command_line import Here, here
from tests.support.foreign_files import STATE
from tests.support.plan_loops import ready, write_plan

__all__ = ["here"]

ROOT = Path(__file__).parents[1]
NAMED = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in NAMED)]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST = re.compile(r"\btests/[\w/]+\.py(?:::\w+)?")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def fenced(name: str, language: str) -> list[str]:
    return [body for found, body in FENCE.findall(text_of(name)) if found == language]


def rows_under(name: str, header: str) -> list[list[str]]:
    """Return the cells of the tables that have this header."""
    table = rf"^\| {re.escape(header)} \|\n\|[-|]+\n((?:\|.*\n)+)"
    lines = "".join(re.findall(table, text_of(name), re.MULTILINE)).splitlines()
    assert lines, header
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def anchors(page: Path) -> set[str]:
    """Return the headings of a page as anchors of a forge."""
    titles = HEADING.findall(FENCE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def functions_of(path: Path) -> frozenset[str]:
    module = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in module.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_links_to_existing_files_and_headings_and_names_existing_tests(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert there.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors(there), target
    for named in TEST.findall(text):
        path, _, function = named.partition("::")
        assert (ROOT / path).is_file(), named
        assert not function or function in functions_of(ROOT / path), named


def test_every_guarantee_threat_and_bug_names_a_test() -> None:
    guarantee = r"^### (\d+)\. .*\n((?:(?!##).*\n)*)"
    guarantees = re.findall(guarantee, text_of("docs/guarantees.md"), re.MULTILINE)
    bugs = rows_under("docs/track-record.md", "# | bug | effect | found by | test")
    for rows in (guarantees, bugs):
        assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    threats = rows_under("SECURITY.md", "threat | defence | test")
    assert [row for row in (*guarantees, *bugs, *threats) if "::test_" not in row[-1]] == []


def test_journal_example_is_read_and_folded_and_damage_is_detected(tmp_path: Path) -> None:
    (lines,), (code,) = fenced("docs/journal.md", "jsonl"), fenced("docs/journal.md", "python")
    data, loops = lines.encode("ascii"), Loops()
    (tmp_path / "journal.jsonl").write_bytes(data)
    command = [sys.executable, "-I", "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert (done.stdout.decode(), done.stderr) == (fenced("docs/journal.md", "text")[0], b"")
    for offset in range(0, len(data) - 1, 49):
        damaged = bytearray(data)
        damaged[offset] ^= 1
        (tmp_path / "journal.jsonl").write_bytes(damaged)
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode
    end = scan(lambda at, size: data[at : at + size], len(data), Cursor(), into_fold(loops))
    assert (end.line, end.torn) == (6, 0)
    assert [loop.status for loop in loops.by_id.values()] == ["completed"]


def test_api_example_prints_the_shown_output(tmp_path: Path) -> None:
    (code,), (expected,) = fenced("docs/api.md", "python"), fenced("docs/api.md", "text")
    command = [sys.executable, "-W", "error", "-c", code]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (done.stdout.decode(), done.stderr) == (expected, b"")


def test_generated_parts_are_up_to_date_and_explain_what_exists() -> None:
    for path, text in generated().items():
        assert path.read_text("utf-8") == text, path
    for kind, notes in MEMBER_NOTES.items():
        assert notes.keys() <= EVENTS[kind].fields.keys(), kind
    assert {*PAUSE_NOTES} == {*PAUSE_CODES}
    assert {*CAPACITY_NOTES} == {name for name in vars(limits) if name.startswith("MOST_")}


def test_journal_page_explains_every_status_condition_and_line_limit() -> None:
    text = text_of("docs/journal.md")
    for status in STATUSES:
        assert f"`{status}`" in text
    for arrow in (arrow for trigger in TRIGGERS.values() for arrow in trigger.arrows):
        assert arrow.when is None or f"`{arrow.when.__name__}`:" in text
    limits_shown = dict(rows_under("docs/journal.md", "what | limit"))
    assert f"{MAX_LINE:,} bytes" in limits_shown["a line, newline included"]
    depth = "depth: objects and lists inside each other, the line itself included"
    assert limits_shown[depth] == str(MAX_DEPTH)


def test_pages_explain_every_command_and_exit_code() -> None:
    rows = rows_under("docs/commands.md", "command | what it does")
    assert [row[0].strip("`") for row in rows] == list(COMMANDS)
    classes = [c for c in vars(errors).values() if isinstance(c, type)]
    codes = {0, 130, *(c.exit_code for c in classes if issubclass(c, errors.GsdError))}
    explained = rows_under("docs/commands.md", "exit code | meaning")
    assert {int(row[0]) for row in explained} == codes
    of_check = rows_under("docs/journal.md", "code | meaning")
    assert {int(row[0].strip("`")) for row in of_check} == codes | set(CHECK_CODES.values())


def test_settings_table_equals_the_keys() -> None:
    shown = rows_under("docs/settings.md", "key | value | default | meaning")
    defaults = ["not set" if it.default is None else json.dumps(it.default) for it in settings.KEYS]
    keys = zip(settings.KEYS, defaults, strict=True)
    expected = [[key.name, key.rule.words, default, key.description] for key, default in keys]
    assert [[cell.replace("`", "") for cell in row] for row in shown] == expected


def test_architecture_page_names_every_package_and_module() -> None:
    page = text_of("docs/architecture.md")
    package = ROOT / "gsd_fsm"
    modules = {path for path in package.rglob("[!_]*.py") if path.parent != package}
    for folder in {path.parent for path in modules}:
        assert f"{folder.name}/" in page, folder
    # The commands are listed in cli/__init__.py, and use cases have the names of commands.
    for path in modules:
        listed = path.parent.name in {"cli", "engine", "events"}
        assert listed or re.search(rf"\b{path.stem}\b", page), path


@pytest.mark.parametrize("form", ["md", "json"])
def test_guide_plan_is_executed_and_verified_as_shown(form: str, here: Here) -> None:
    plan = fenced("docs/guide.md", {"md": "markdown", "json": "json"}[form])[0]
    write_plan(here, plan, f".gsd/plans/phase-1/plan.{form}")
    here.ok("plan", "check", "--phase", "1")
    here.ok("start", "execute", "--phase", "1", "--mode", "yolo")
    sessions = without_ids("".join(fenced("docs/guide.md", "console")))
    assert "$ gsd-fsm next\n" + without_ids(here.ok("next").out) in sessions
    (here.root / "hello.py").write_text('print("hello")\n')
    (here.root / "README").write_text("python3 hello.py\n")
    for number in ("01", "02"):
        assert ready(here) == [f"T{number}"]
        here.ok("report", number, stdin=b"TASK COMPLETE\n")
    assert "## Phase 1 Complete!" in here.ok("complete").out
    here.ok("start", "verify", "--phase", "1", "--mode", "yolo")
    verified = here.ok("verify").out.replace(str(here.root), "/home/me/greeting")
    assert "$ gsd-fsm verify\n" + without_ids(verified) in sessions
    judge = next(line for line in sessions.splitlines() if "--verdict" in line)
    judged = without_ids(here.ok(*shlex.split(judge)[2:]).out)
    assert f"{judge}\n{judged}" in sessions
    assert "Proven: 1 verification. Claimed: 1 verdict." in here.ok("complete").out


def test_guide_commands_work_as_shown(here: Here) -> None:
    subprocess.run(["git", "init", "-q"], cwd=here.root, check=True)
    here.configure(views=VIEWS)
    (here.root / "SHAPE.md").write_text(fenced("docs/guide.md", "markdown")[1])
    (here.root / "auth.py").write_text("def validate(token): ...\n")
    ends = []
    for block in fenced("docs/guide.md", "sh"):
        if "gsd-fsm import" in block:
            (here.root / ".loop" / "state.json").write_text(json.dumps(STATE))
        for line in block.splitlines():
            run_line(here, line)
        ends.append(here.status()["status"])
    assert ends == ["cancelled", "completed", "cancelled", "running"]


def run_line(here: Here, line: str) -> None:
    """Run one command of the guide; its answer contains the texts quoted in the comment."""
    program, *arguments = shlex.split(line, comments=True)
    assert program == "gsd-fsm"
    comment = line.partition("  # ")[2]
    answer = here.run(*arguments)
    assert answer.code == (4 if comment.startswith("refused") else 0), (line, answer)
    for words in re.findall(r'"([^"]+)"', comment):
        assert words in answer.out + answer.err, (line, answer)


def test_readme_shows_the_transitions_and_an_excerpt_of_the_demo() -> None:
    assert f"```mermaid\n{mermaid()}\n```" in text_of("README.md")
    command = [sys.executable, str(ROOT / "scripts" / "demo.py")]
    demo = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for part in "\n\n".join(map(str.strip, fenced("README.md", "text"))).split("\n\n"):
        assert without_ids(part) in without_ids(demo)


def without_ids(text: str) -> str:
    """Replace ids, heads, times and durations, which differ from run to run."""
    text = re.sub(r"\b(lp|j)-\w+", r"\1-ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z)?", "TIME", text)
    text = re.sub(r" · \d+ s\b", "", text)
    return re.sub(r"head (\d+):[0-9a-f]{16}", r"head \1:SUM", text)


def test_pages_stay_short() -> None:
    docs = {"docs/guide": 33_000, "docs/guarantees": 28_000, "docs/journal": 60_000}
    most = {"README": 8_800, **docs}
    assert [name for name in most if len(text_of(f"{name}.md").encode()) > most[name]] == []
