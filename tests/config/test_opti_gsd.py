"""The settings in the planning tool's config.json, and in the loop section of config.md."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from gsd_fsm.config import settings
from gsd_fsm.config.opti_gsd import LOOP, MEMBERS
from tests.support.settings_files import DEFAULTS, gsd_of, refused, values_of, written

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
# Two good values for each setting, as config.json writes them.
SAMPLES = {
    **dict.fromkeys(MEMBERS, ("one", "two")), **dict.fromkeys(LOOP, (1, 2)),
    **dict.fromkeys(("auto_loop", "browser"), (True, False)), "mcps": (["one"], ["two"]),
    "mode": ("interactive", "yolo"), "branching": ("none", "milestone"),
}  # fmt: skip


def put(document, member, value):
    """Return the document with this value at the dotted member."""
    section, _, inner = member.rpartition(".")
    if not section:
        return {**document, inner: value}
    return {**document, section: {**document.get(section, {}), inner: value}}


def taken(path, content):
    """Return the settings that a file with this content changes."""
    written(path, content if isinstance(content, str) else json.dumps(content))
    loaded = settings.load(gsd_of(path))
    assert {s.source for s in loaded.values()} <= {"default", str(path)}
    return {name: s.value for name, s in loaded.items() if s.source == str(path)}


def refusal_of(path, content):
    """Return the error message after the name of the file."""
    message = refused(path, content if isinstance(content, str) else json.dumps(content)).message
    assert message.startswith(f"{path}:"), message
    assert message.isprintable()
    assert len(message) - len(str(path)) < 200
    return message[len(f"{path}:") :]


def test_json_takes_every_known_member_and_ignores_others(foreign_path):
    document = {
        "project": {"app_type": "web", "mode": 7}, "mode": "yolo", "budgets": {"executor": 50},
        "git": {"branching": "milestone", "prefix": "work/", "commits": 5},
        "ci": {"package_manager": "npm", "test": "npm test", "e2e": None}, "mcps": ["github"],
        "loop": {"tdd_max_attempts": 7, "auto_loop": False, "active": 1}, "": 9e999,
    }  # fmt: skip
    assert taken(foreign_path, json.dumps(document).replace("Infinity", "9" * 120_000)) == {
        "branching": "milestone", "branch_prefix": "work/", "mode": "yolo", "ci_test": "npm test",
        "mcps": ("github",), "tdd_max_attempts": 7, "auto_loop": False,
    }  # fmt: skip
    strange = {"": 1, "modes": 2, "ci_test": "no", "stuck_limit": "x", "project": {"ci": 5}}
    for document in ({}, strange, {"ci": {}, "loop": None, "git": {"x": 1}, "mcps": None}):
        assert taken(foreign_path, document) == {}


def test_json_takes_every_spelling_in_any_case_and_rejects_bad_values(foreign_path):
    for name, member in ((key, it) for key, members in MEMBERS.items() for it in members):
        value = True if member == "branching.enabled" else SAMPLES[name][1]
        expected = tuple(value) if isinstance(value, list) else value
        expected = "milestone" if name == "branching" else expected
        camel = re.sub("_(.)", lambda found: found[1].upper(), member)
        for spelling in (member, camel, member.replace("_", "-"), member.upper()):
            assert taken(foreign_path, put({}, spelling, value)) == {name: expected}
        assert taken(foreign_path, put({}, member, None)) == {}
        document = json.dumps(put({"first": 1}, member, 0.5), indent=1)
        message = refusal_of(foreign_path, document)
        assert message.startswith(f"{3 + member.count('.')}: {member} must be ")
        assert message.endswith(", not 0.5")


def test_json_takes_the_first_spelling_that_is_given(foreign_path):
    pairs = [(name, *two) for name in MEMBERS for two in itertools.combinations(MEMBERS[name], 2)]
    for name, first, second in pairs:
        if first.startswith(f"{second}.") or second.startswith(f"{first}."):
            continue  # no file has both: one is the section of the other
        one, two = (False, True) if "branching.enabled" in (first, second) else SAMPLES[name]
        expected = taken(foreign_path, put({}, first, one))
        assert taken(foreign_path, put(put({}, second, two), first, one)) == expected
        assert taken(foreign_path, put(put({}, first, None), second, two)) != expected


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        *(({"branching": word}, {"branching": "none"}) for word in ("phase", "", "MILESTONES")),
        *(({"branching": word}, {"branching": "milestone"}) for word in ("Milestone", True)),
        ({"git": {"branching": "trunk"}}, {"branching": "none"}),
        ({"branching": False}, {"branching": "none"}),
        ({"branching": {"enabled": True}}, {"branching": "milestone"}),
        ({"branching": {"enabled": False, "pattern": "x"}}, {"branching": "none"}),
        *((put({}, member, nothing), {})
          for member in ("ci.test", "ci.e2e", "deploy.target", "base_url", "urls.local")
          for nothing in ("", " ", "None")),
        ({"mcps": []}, {"mcps": ()}),
        ({"mcps": [{"name": "github", "url": 5}, "browser"]}, {"mcps": ("github", "browser")}),
        ({"mcps": {"a": "DOCKER", "b": False, "c": None, "d": {"enabled": False},
                   "e": {"enabled": True}, "f": {}}}, {"mcps": ("a", "e", "f")}),
    ],
)  # fmt: skip
def test_json_values_are_translated(foreign_path, document, expected):
    assert taken(foreign_path, document) == expected


@pytest.mark.parametrize(
    ("document", "message"),
    [
        *(({"branching": value}, '1: branching must be "none" or ') for value in (5, ["milestone"])),
        *(({"branching": {"enabled": value}}, '1: branching.enabled must be "none" or ')
          for value in ("yes", 1)),
        *(({"mcps": value}, "1: mcps must be a list of ")
          for value in ("github", 1, True, [1], [{}], [{"name": 1}], [[]], {"": 1})),
        *(({section: value}, f"1: {section} must be an object")
          for section in ("ci", "loop", "git", "urls", "deployment") for value in ("x", True, [])),
        *((put({}, member, "--upload-pack=x"), f"1: {member} must be ")
          for member in ("base", "prefix", "git.base", "git.prefix")),
        ({"base": 5, "base_branch": "main"}, "1: base must be a branch name "),
        ({"mode": "x" * 200_000}, "1: mode must be "),
        ('{"loop":\n{"tdd-max-attempts": ' + "9" * 120_000 + "}}", "2: loop.tdd-max-attempts must "),
        ('{"mode": "yolo"\n  "ci": {}}', "2:3: not valid JSON: "),
        ("[]", "1: not a JSON object"),
    ],
)  # fmt: skip
def test_json_mistake_is_reported_with_member_and_line(foreign_path, document, message):
    assert refusal_of(foreign_path, document).startswith(message)


SECTION = """loop:
  execute_max_retries: 2      # Max retries per failed task
  verify_max_iterations: 9
  tdd_max_attempts: 7

  auto_loop: false
"""
IN_SECTION = {"execute_max_retries": 2, "verify_max_iterations": 9, "tdd_max_attempts": 7,
              "auto_loop": False}  # fmt: skip
FLOW = "execute_max_retries: 2, verify_max_iterations: 9,\n tdd_max_attempts: 7, auto_loop: no"
OTHER = "loop:\n  execute_max_retries: 99\n"


@pytest.mark.parametrize(
    "content",
    [
        f"# Settings\n\nSome words.\n\n{SECTION}\n# Next\n\n    code\n",
        f"---\nmode: yolo\n\n# Loop Settings\n{SECTION}---\n\n{OTHER}",
        f"---\nmode: yolo\nci:\n  test: npm\nbroken: [\n---\n# Text\n\n{SECTION}",
        f"--- \n{SECTION}",
        f"Text\n\n```yaml\nother: 1\n{SECTION}after: 2\n```\n\n{OTHER}",
        f"   ```yml\n{SECTION}   ```\n{OTHER}",
        f"```\n{SECTION}```\n{OTHER}",
        f"```yaml\n{SECTION}",
        f"```bash\n{OTHER}```\n{SECTION}",
        f"<!--\n{OTHER}\n-->\n{SECTION}{OTHER}",
        f"```yaml\n# {OTHER}#  x\n```\n{SECTION}",
        f" {OTHER}\nsub{OTHER}\nloops:\n  tdd_max_attempts: 99\nloop:x\nloop: see below\n{SECTION}",
        SECTION.replace("loop:", "loop:   # all about it", 1),
        "\ufeff---\r\n" + SECTION.replace("\n", "\r\n") + "---\r\n",
        f"---\nloop: {{{FLOW}\n}}\n---\n",
        SECTION.replace("  tdd", "# A comment at the margin\n\n  tdd").join(["---\n", "---\n"]),
        f"{SECTION}  mode: 5\n  other: [1, {{a: b}}]\n  text: |\n    auto_loop: 9\n  5: 6\n",
    ],
)
def test_markdown_takes_the_first_loop_section_outside_of_comments_and_code(markdown_path, content):
    assert taken(markdown_path, content) == IN_SECTION


@pytest.mark.parametrize(
    "content",
    [
        *("", "\n", "# Nothing\n", "mode: yolo\n", "---\n", "---\n---\n", "\ufeff", "loop"),
        *("loop:", "loop: \n\nText\n", "loop:\nexecute_max_retries: 9\n", "loop: # nothing\n"),
        *("---\nloop: null\n---\n", "---\nloop: ~\n---\n", "loop:\n  # only this\n"),
        *(f"<!-- {OTHER}", f"```bash\n{OTHER}", f" {OTHER}", f"- {OTHER}", f"> {OTHER}"),
        *("loop: the way we work\n", "loop:\n# Heading\n    code\n", "---\nloop: {}\n---\n"),
        "loop:\n  auto_loop:\n  tdd_max_attempts: null\n  execute_max_retries: ~\n",
        *(trap * (200_000 // len(trap)) for trap in ("`", "```\n", "<!--", "---\n", "loop:\n")),
    ],
)
def test_markdown_without_loop_section_changes_nothing(markdown_path, content):
    assert taken(markdown_path, content) == {}


def test_markdown_switch_accepts_the_words_of_yaml(markdown_path):
    for word, expected in (("yes", True), ("off", False), ("True", True)):
        assert taken(markdown_path, f"loop:\n  auto_loop: {word}\n") == {"auto_loop": expected}


def test_markdown_value_that_is_invalid_is_reported_with_its_line(markdown_path):
    for value in (
        *("three", "'3'", "-1", "1.0", "true", "[3]", "[]", "{a: 1}", "1000000001", ".nan", "3 4"),
        *("2001-02-31", "1:30.5", "=", "|\n    3", "9" * 5_000, "\n    - 3", '"\\x1b[2J"'),
    ):
        content = f"# Text\n\nloop:\n  auto_loop: on\n  execute_max_retries: {value}\n"
        words = "5: loop.execute_max_retries must be a whole number from 0 to 1000000000, not "
        assert refusal_of(markdown_path, content).startswith(words)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((f"---\nloop:\n  {name}: often\n---\n", f"3: loop.{name} must be ") for name in LOOP),
        ("loop:\n  tdd_max_attempts: 0\n", "2: loop.tdd_max_attempts must be "),
        ("---\n\nloop: [1]\n---\n", "3: loop must be a mapping"),
        ("```yaml\nloop: yes\n```", "2: loop must be a mapping"),
        ("loop:\n  - execute_max_retries\n", "1: loop must be a mapping"),
        ("\nloop:\n  a: 1\n   b: 2", "4: not valid YAML: "),
        ("\nloop:\n  #" + "x" * 16 * 1024, "2: the loop section is larger than 16 KiB"),
    ],
)
def test_markdown_mistake_is_reported_with_its_line(markdown_path, content, message):
    assert refusal_of(markdown_path, content).startswith(message)


def test_page_lists_every_spelling():
    table = PAGE.read_text("utf-8").partition("| setting | members |\n|---|---|\n")[2]
    rows = [line.split("|")[1:3] for line in table.partition("\n\n")[0].splitlines()]
    found = {cells[0].strip(" `"): tuple(re.findall("`([^`]+)`", cells[1])) for cells in rows}
    assert found == MEMBERS


def test_examples_of_the_page_are_valid_files(project_path, foreign_path, markdown_path):
    for path, language in ((project_path, "toml"), (foreign_path, "json"), (markdown_path, "yaml")):
        examples = re.findall(
            rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        assert examples
        for example in examples:
            assert values_of(path, example) != DEFAULTS
            path.unlink()
