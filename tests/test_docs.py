"""The documents say what is: links lead somewhere, tables equal the code, the example runs."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from gsd_fsm.config import settings
from gsd_fsm.core import errors
from gsd_fsm.core.codec import MAX_DEPTH, MAX_LINE
from gsd_fsm.core.journal.fast_fold import into_fold
from gsd_fsm.core.journal.scan import Position, scan
from gsd_fsm.core.loop import capacity
from gsd_fsm.core.loop.events.criteria import EVIDENCE
from gsd_fsm.core.loop.events.lifecycle import CRITERIA, PAUSE_CODES, TASKS
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.records import LIMITS, Limits
from gsd_fsm.core.loop.state import ACTIVE, LIVE, STATUSES
from gsd_fsm.core.loop.table import EVENTS, TRIGGERS
from gsd_fsm.engine.status import CHECK_CODES
from gsd_fsm.evidence import classify
from scripts.generate import MEMBER_NOTES, generated
from tests.cli.conftest import Here, here

__all__ = ["here"]

ROOT = Path(__file__).parents[1]
NAMED = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in NAMED)]
names = [str(page.relative_to(ROOT)) for page in PAGES]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST = re.compile(r"\btests/[\w/]+\.py(?:::\w+)?")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def fenced(name: str, language: str) -> list[str]:
    return [body for found, body in FENCE.findall(text_of(name)) if found == language]


def rows_under(name: str, header: str) -> list[list[str]]:
    """The cells of the tables that have this header."""
    found = []
    for table in re.findall(
        rf"^\| {re.escape(header)} \|\n\|[-|]+\n((?:\|.*\n)+)", text_of(name), re.MULTILINE
    ):
        for line in table.splitlines():
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            found.append([cell.strip() for cell in cells])
    assert found, header
    return found


def plain(cell: str) -> str:
    return cell.strip("`")


def anchors(page: Path) -> set[str]:
    """The headings of a page as a forge names them."""
    titles = HEADING.findall(FENCE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def functions_of(path: Path) -> frozenset[str]:
    module = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in module.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert there.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_test_that_is_named_exists(page: Path) -> None:
    for named in TEST.findall(page.read_text("utf-8")):
        path, _, function = named.partition("::")
        assert (ROOT / path).is_file(), named
        assert not function or function in functions_of(ROOT / path), named


def test_every_guarantee_names_a_test() -> None:
    guarantees = re.findall(
        r"^### (\d+)\. .*\n((?:(?!##).*\n)*)", text_of("docs/guarantees.md"), re.MULTILINE
    )
    assert [int(number) for number, _ in guarantees] == list(range(1, len(guarantees) + 1))
    for _, text in guarantees:
        assert "::test_" in text, text


def test_every_threat_of_the_security_page_names_a_test() -> None:
    assert all("::test_" in row[2] for row in rows_under("SECURITY.md", "threat | defence | test"))


def test_every_bug_of_the_track_record_has_its_own_row_and_a_test() -> None:
    header = "# | bug | what it would have cost | found by | reproduced by"
    rows = rows_under("docs/track-record.md", header)
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert all("::test_" in row[4] for row in rows)


def test_the_worked_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (lines,), (code,) = fenced("docs/journal.md", "jsonl"), fenced("docs/journal.md", "python")
    (tmp_path / "journal.jsonl").write_text(lines, "ascii")
    command = [sys.executable, "-I", "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.stderr == b""
    assert done.stdout.decode() == fenced("docs/journal.md", "text")[0]
    assert len(code.splitlines()) == 10
    for offset in range(0, len(lines) - 1, 49):
        hurt = bytearray(lines, "ascii")
        hurt[offset] ^= 1
        (tmp_path / "journal.jsonl").write_bytes(hurt)
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode


def test_the_worked_example_is_a_journal_that_folds() -> None:
    (lines,) = fenced("docs/journal.md", "jsonl")
    data, loops = lines.encode("ascii"), Loops()
    end = scan(lambda at, size: data[at : at + size], len(data), Position(), into_fold(loops))
    assert (end.line, end.torn) == (6, 0)
    assert [loop.status for loop in loops.by_id.values()] == ["completed"]


def test_api_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (code,), (expected,) = fenced("docs/api.md", "python"), fenced("docs/api.md", "text")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    assert done.stdout.decode() == expected


def test_generated_parts_are_up_to_date() -> None:
    for path, text in generated().items():
        assert path.read_text("utf-8") == text, path


def test_member_notes_are_about_declared_members() -> None:
    for kind, notes in MEMBER_NOTES.items():
        assert notes.keys() <= EVENTS[kind].fields.keys(), kind


def test_the_table_of_events_is_that_of_the_code() -> None:
    rows = rows_under("docs/journal.md", "type | field | required | value")
    told = [(plain(kind), plain(field), needed) for kind, field, needed, _ in rows]
    real = [
        (kind, field, "yes" if field in declared.required else "no")
        for kind, declared in EVENTS.items()
        for field in declared.fields
    ]
    assert len(set(told)) == len(told)
    assert set(told) == set(real)


def test_the_words_a_field_may_hold_are_all_named() -> None:
    rows = rows_under("docs/journal.md", "type | field | required | value")
    for kind, name, _, value in rows:
        field = EVENTS[plain(kind)].fields[plain(name)]
        if isinstance(field, type):
            assert value.startswith({str: "text", bool: "flag"}[field]), (kind, name)
        elif plain(name) not in ("code", "action"):
            named = set(re.findall(r"`([\w-]+)`", value)) - {"running"}
            assert not field.words or named == set(field.words) - {"running"}, (kind, name)


def test_the_table_of_objects_is_that_of_the_code() -> None:
    rows = rows_under("docs/journal.md", "object | field | required | value")
    told = {(kind, plain(field), needed) for kind, field, needed, _ in rows}
    known = {"limits": LIMITS, "criterion": CRITERIA, "task": TASKS, "evidence": EVIDENCE}
    assert told == {
        (kind, name, "yes" if name in field.required else "no")
        for kind, field in known.items()
        for name in field.members or ()
    }
    for kind, field, _, value in rows:
        if kind == "limits" and getattr(Limits(), plain(field)) is not None:
            assert f"default {getattr(Limits(), plain(field))}" in value


def test_the_table_of_transitions_is_that_of_the_code() -> None:
    sets = {"active": ACTIVE, "live": LIVE}
    told = []
    for trigger, sources, dest, condition, _, _ in rows_under(
        "docs/journal.md", "trigger | from | to | condition | command | rules"
    ):
        listed = [s for word in sources.split(", ") for s in sets.get(word, (word,))]
        told.append((plain(trigger), tuple(listed), dest, plain(condition)))
    rows = [
        (name, arrow.sources, arrow.dest, arrow.when.__name__ if arrow.when else "")
        for name, trigger in TRIGGERS.items()
        for arrow in trigger.arrows
    ]
    assert sorted(told) == sorted(rows)
    for *_, condition in rows:
        assert not condition or f"`{condition}`:" in text_of("docs/journal.md")


def test_every_status_pause_code_and_exit_code_is_explained() -> None:
    text = text_of("docs/journal.md")
    for status in STATUSES:
        assert f"`{status}`" in text
    told = [
        plain(row[0]) for row in rows_under("docs/journal.md", "code | the loop paused because")
    ]
    assert sorted(told) == sorted(PAUSE_CODES)
    classes = [c for c in vars(errors).values() if isinstance(c, type)]
    codes = {0, 130, *(c.exit_code for c in classes if issubclass(c, errors.GsdError))}
    told = [plain(row[0]) for row in rows_under("docs/journal.md", "code | meaning")]
    assert {int(code) for code in told} == codes | set(CHECK_CODES.values())


def test_the_limits_are_those_of_the_code() -> None:
    told = dict(rows_under("docs/journal.md", "what | limit"))
    assert f"{MAX_LINE:,} bytes" in told["a line, newline included"]
    depth = "depth: objects and lists inside each other, the line itself included"
    assert told[depth] == str(MAX_DEPTH)


def test_limits_of_a_loop_are_those_of_the_code() -> None:
    told = dict(rows_under("docs/journal.md", "what a loop may hold | at most"))
    assert told == {
        "tasks": f"{capacity.MOST_TASKS:,}",
        "dependencies of one task": f"{capacity.MOST_DEPENDENCIES:,}",
        "dependencies of all its tasks": f"{capacity.MOST_DEPENDENCIES_IN_ALL:,}",
        "criteria": f"{capacity.MOST_CRITERIA:,}",
        "must-nots": f"{capacity.MOST_MUST_NOTS:,}",
        "gaps, open or closed": f"{capacity.MOST_GAPS:,}",
        "notes that are not delivered yet": f"{capacity.MOST_NOTES:,}",
        "reviews": f"{capacity.MOST_REVIEWS:,}",
        "checkpoints": f"{capacity.MOST_CHECKPOINTS:,}",
        "live loops in one journal": f"{capacity.MOST_LIVE_LOOPS:,}",
    }


def test_the_published_patterns_are_those_that_decide() -> None:
    rows = [
        f"{number}. {kind}: {what}\n   {regex}\n"
        for number, (kind, regex, what) in enumerate(classify.PATTERNS, 1)
    ]
    blocks = fenced("docs/journal.md", "text")
    assert "".join(rows) in blocks
    assert classify._NAMES.pattern + "\n" in blocks


def test_the_table_of_settings_is_that_of_the_code() -> None:
    told = rows_under("docs/settings.md", "key | value | default | meaning")
    assert [[cell.replace("`", "") for cell in row] for row in told] == [
        [
            key.name,
            key.rule.words,
            "absent" if key.default is None else json.dumps(key.default),
            key.description,
        ]
        for key in settings.KEYS
    ]


def test_architecture_page_names_every_package_and_core_module() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    package = ROOT / "gsd_fsm"
    folders = {path.parent for path in package.rglob("*.py") if path.parent != package}
    for folder in folders:
        assert f"{folder.name}/" in page, folder
    for path in (package / "core").rglob("[!_]*.py"):
        assert path.parent.name == "events" or path.stem in page, path


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_the_plans_of_the_page_are_carried_out_and_proven(form: str, here: Here) -> None:
    (here.root / "plan").write_text(fenced("docs/loops.md", form)[0])
    here.ok("plan", "check", "--plan", "plan")
    here.ok("start", "execute", "--plan", "plan", "--mode", "yolo")
    (here.root / "hello.py").write_text('print("hello")\n')
    (here.root / "README").write_text("python3 hello.py\n")
    for number in ("01", "02"):
        assert [it["id"] for it in here.ok("next", "--json").json["tasks"]] == [f"T{number}"]
        here.ok("report", number, stdin=b"TASK COMPLETE\n")
    assert "## Phase 1 Complete!" in here.ok("complete").out
    here.ok("start", "verify", "--plan", "plan")
    assert len(here.ok("verify", "--json").json["checks"]) == 3
