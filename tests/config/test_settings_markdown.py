"""The loop section of a Markdown file: where it is found, what is taken of it, what is refused."""

from __future__ import annotations

import pytest

from gsd_fsm.config import settings
from tests.support import settings_files as settings_rig
from tests.support.settings_files import refused, written

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
markdown_path = settings_rig.markdown_path

SECTION = """loop:
  execute_max_retries: 2      # Max retries per failed task
  verify_max_iterations: 9
  tdd_max_attempts: 7

  auto_loop: false
"""
MEANT = {
    "execute_max_retries": 2,
    "verify_max_iterations": 9,
    "tdd_max_attempts": 7,
    "auto_loop": False,
}
FLOW = "execute_max_retries: 2, verify_max_iterations: 9,\n tdd_max_attempts: 7, auto_loop: no"
OTHER = "loop:\n  execute_max_retries: 99\n"


@pytest.fixture
def taken(markdown_path):
    """Write the file, and return what it changes."""

    def take(content):
        written(markdown_path, content)
        loaded = settings.load(markdown_path.parent)
        assert {s.source for s in loaded.values()} <= {"default", str(markdown_path)}
        return {name: s.value for name, s in loaded.items() if s.source == str(markdown_path)}

    return take


@pytest.fixture
def refusal(markdown_path):
    def refuse(content):
        message = refused(markdown_path, content).message
        assert message.startswith(f"{markdown_path}:"), message
        return message[len(f"{markdown_path}:") :]

    return refuse


# Where the section is


@pytest.mark.parametrize(
    "content",
    [
        SECTION,
        f"# Settings\n\nSome words.\n\n{SECTION}\n# Next\n\n    code\n",
        f"---\nmode: yolo\n\n# Loop Settings\n{SECTION}---\n\n{OTHER}",
        f"---\n{SECTION}# comment\nmodels:\n  default: x\n---\n# Text\n",
        f"---\nmode: yolo\n---\n# Text\n\n{SECTION}",
        f"---\nmode: yolo\n...\n{SECTION}",
        f"--- \n{SECTION}",
        f"Text\n\n```yaml\nother: 1\n{SECTION}after: 2\n```\n\n{OTHER}",
        f"   ```yml\n{SECTION}   ```\n{OTHER}",
        f"~~~ YAML\n{SECTION}~~~\n{OTHER}",
        f"```\n{SECTION}```\n{OTHER}",
        f"```yaml\n{SECTION}",
        f"````markdown\n```yaml\n{OTHER}```\n````\n{SECTION}",
        f"```bash\n{OTHER}```\n{SECTION}",
        f"```json\n```\n{SECTION}",
        f"<!-- {OTHER}-->\n{SECTION}",
        f"<!--\n{OTHER}\n-->\n{SECTION}{OTHER}",
        f"Write `<!--` before a comment.\n\n{SECTION}",
        f"```yaml\n# {OTHER}#  x\n```\n{SECTION}",
        f"# {OTHER}\n{SECTION}",
        f" {OTHER}\n{SECTION}",
        f"sub{OTHER}\n{SECTION}",
        f"loops:\n  execute_max_retries: 99\n{SECTION}",
        f"loop:x\n{SECTION}",
        f"loop:#\n{SECTION}",
        f"loop: see below\n\n{SECTION}",
        f"{SECTION}{OTHER}",
        SECTION.replace("loop:", "loop:   # all about it", 1),
        SECTION.replace("\n", "\r\n"),
        "\ufeff---\r\n" + SECTION.replace("\n", "\r\n") + "---\r\n",
        f"---\nloop: {{{FLOW}\n}}\n---\n",
        f"```yaml\nloop: {{{FLOW}}}\n```\n",
        SECTION.replace("  tdd", "# A comment at the margin\n\n  tdd").join(["---\n", "---\n"]),
    ],
)
def test_the_first_section_outside_of_comments_and_other_code_counts(taken, content):
    assert taken(content) == MEANT


@pytest.mark.parametrize(
    "content",
    [
        *(
            "",
            "\n",
            "# Nothing\n",
            "mode: yolo\n",
            "---\n",
            "---\n---\n",
            "\ufeff",
            "loop",
            "loop:",
        ),
        *("loop:\n", "loop: \n\nText\n", "loop:\nexecute_max_retries: 9\n", "loop: # nothing\n"),
        *("---\nloop: null\n---\n", "---\nloop: ~\n---\n", "loop:\n  # only this\n", "loop: {}\n"),
        *(f"<!-- {OTHER}", f"```bash\n{OTHER}", f" {OTHER}", f"- {OTHER}", f"> {OTHER}"),
        *("loop: the way we work\n", "loop:\n# Heading\n    code\n", "---\nloop: {}\n---\n"),
    ],
)
def test_a_file_without_such_a_section_changes_nothing(taken, content):
    assert taken(content) == {}


# What is in it


def test_nothing_but_the_loop_section_is_read(taken):
    content = f"---\nmode: yolo\nbranching: 5\nci:\n  test: npm test\n{SECTION}broken: [\n---\n"
    assert taken(content) == MEANT


def test_what_is_not_ours_is_ignored_whatever_it_is(taken):
    content = (
        f"{SECTION}  mode: 5\n  stuck_limit: x\n  other: [1, {{a: b}}]\n  when: 2001-02-31\n"
        "  ? [a]\n  : 1\n  ? {b: c}\n  : 2\n  5: 6\n  ~: 1\n  text: |\n    auto_loop: 9\n  '=': =\n"
    )
    assert taken(content) == MEANT


def test_a_value_left_empty_says_nothing(taken):
    assert taken("loop:\n  auto_loop:\n  tdd_max_attempts: null\n  execute_max_retries: ~\n") == {}


@pytest.mark.parametrize(("word", "meant"), [("yes", True), ("off", False), ("True", True)])
def test_a_switch_may_be_any_word_of_yaml(taken, word, meant):
    assert taken(f"loop:\n  auto_loop: {word}\n") == {"auto_loop": meant}


def test_the_last_of_a_name_given_twice_counts(taken):
    content = "loop:\n  tdd_max_attempts: 1\n  'tdd_max_attempts': 2\n"
    assert taken(content) == {"tdd_max_attempts": 2}


@pytest.mark.parametrize(
    "value",
    [
        *("three", "'3'", "-1", "1.0", "true", "[3]", "[]", "{a: 1}", "1000000001", ".nan", "3 4"),
        *("2001-02-31", "2001-02-28", "0x_", "1:30.5", "=", "|\n    3", "1" + ":59" * 4_000),
        *("9" * 5_000, "1" + ":1" * 400 + ".5", "\n    - 3", '"\\x1b[2J"'),
    ],
)
def test_a_bad_value_is_refused_on_its_line(refusal, value):
    message = refusal(f"# Text\n\nloop:\n  auto_loop: on\n  execute_max_retries: {value}\n")
    words = "loop.execute_max_retries must be a whole number from 0 to 1000000000, not "
    assert message.startswith(f"5: {words}")
    assert len(message) < 200
    assert message.isprintable()


def test_every_name_of_the_section_has_its_rule(refusal):
    for name in ("execute_max_retries", "verify_max_iterations", "tdd_max_attempts", "auto_loop"):
        assert refusal(f"---\nloop:\n  {name}: often\n---\n").startswith(f"3: loop.{name} must be ")
    assert refusal("loop:\n  tdd_max_attempts: 0\n").startswith("2: loop.tdd_max_attempts must be ")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("---\nloop: 5\n---\n", 2),
        ("---\n\nloop: [1]\n---\n", 3),
        ("```yaml\nloop: yes\n```", 2),
        ("loop:\n  - execute_max_retries\n", 1),
        ("loop:\n  once more\n", 1),
    ],
)
def test_a_section_that_is_no_mapping_is_refused(refusal, content, line):
    assert refusal(content) == f"{line}: loop must be a mapping"
