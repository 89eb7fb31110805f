"""Hostile and damaged files of other tools: taken or refused at once, and always by name."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.config import settings
from gsd_fsm.core.errors import UsageError
from tests.support import settings_files as settings_rig
from tests.support.settings_files import (
    DEFAULTS,
    gsd_of,
    refused,
    run_python,
    values,
    values_of,
    written,
)

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
foreign_path = settings_rig.foreign_path
markdown_path = settings_rig.markdown_path


@pytest.fixture(params=["config.json", "config.md"])
def path(request, foreign_path, markdown_path):
    return foreign_path if request.param == "config.json" else markdown_path


def refusal_of(path, content):
    """What load says about a file after the file's name."""
    message = refused(path, content).message
    assert message.startswith(f"{path}:"), message
    assert message.isprintable()
    return message[len(f"{path}:") :]


# What lies in the place of a file


def test_a_file_may_have_256_kib_and_no_byte_more(path):
    fitting = b"{}" + b" " * (256 * 1024 - 2)
    assert values_of(path, fitting) == DEFAULTS
    assert refusal_of(path, fitting + b" ") == " larger than 256 KiB"


def test_a_directory_in_place_of_the_file_is_refused(path):
    path.mkdir()
    with pytest.raises(UsageError) as caught:
        settings.load(gsd_of(path))
    assert caught.value.message == f"{path}: not a regular file"


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(path):
    os.mkfifo(path)
    script = (
        "import sys, pathlib\nfrom gsd_fsm.config import settings\n"
        "settings.load(pathlib.Path(sys.argv[1]))"
    )
    done = run_python(script, gsd_of(path), timeout=30)
    assert f"UsageError: {path}: not a regular file" in done.stderr


def test_a_device_is_refused(path):
    path.symlink_to("/dev/zero")
    with pytest.raises(UsageError) as caught:
        settings.load(gsd_of(path))
    assert caught.value.message == f"{path}: not a regular file"


def test_a_link_to_a_file_is_followed_and_one_that_leads_nowhere_is_refused(path, tmp_path):
    path.symlink_to("nowhere")
    with pytest.raises(UsageError) as caught:
        settings.load(gsd_of(path))
    assert caught.value.message.startswith(f"{path}: cannot be read: ")
    path.unlink()
    content = "loop:\n  tdd_max_attempts: 9" if path.suffix == ".md" else '{"tdd_max_attempts": 9}'
    path.symlink_to(written(tmp_path / "elsewhere", content))
    assert settings.load(gsd_of(path))["tdd_max_attempts"] == ("tdd_max_attempts", 9, str(path))


def test_a_directory_of_the_planning_tool_that_is_a_file_holds_no_settings(project_path):
    written(project_path.parent.with_name(".opti-gsd"), "{")
    assert values(project_path.parent) == DEFAULTS


def test_bytes_that_are_not_utf_8_are_refused_on_their_line(path):
    assert refusal_of(path, b'{"a":\n\n"\xff"}') == "3: not valid UTF-8"
    assert refusal_of(path, "loop:".encode("utf-16")) == "1: not valid UTF-8"


# JSON


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(foreign_path):
    content = b'\xef\xbb\xbf{\r\n"mode":\r\n"yolo"\r\n}\r\n'
    assert values_of(foreign_path, content) == {**DEFAULTS, "mode": "yolo"}
    assert refusal_of(foreign_path, content.replace(b'"yolo"', b"1")).startswith("2: mode must be ")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "1:1"),
        ("\n", "2:1"),
        ("{", "1:2"),
        ('{"mode": "yolo"\n  "ci": {}}', "2:3"),
        ('{"mode": "yolo"}\n}', "2:1"),
        ("{'mode': 1}", "1:2"),
        ('{"a": 1}\n// comment', "2:1"),
        ('{\n "a": "\0"}', "2:8"),
        ('{"a": "x\ny"}', "1:9"),
        ('{"NaN": "-Infinity \\" NaN",\n "a": NaN}', "2:7"),
        ('{"a": [1,\n-Infinity]}', "2:1"),
        ("mode: yolo", "1:1"),
        ("\ufeff\ufeff{}", "1:1"),
    ],
)
def test_damaged_json_is_refused_with_its_line_and_column(foreign_path, content, place):
    assert refusal_of(foreign_path, content).startswith(f"{place}: not valid JSON: ")


@pytest.mark.parametrize("content", ["[]", "null", '"mode"', "5", "[{}]"])
def test_another_value_than_an_object_is_refused(foreign_path, content):
    assert refusal_of(foreign_path, content) == "1: not a JSON object"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_an_abyss_is_refused(foreign_path, opening):
    message = refusal_of(foreign_path, '{"a":' + opening * 40_000)
    assert " not valid JSON: " in message


def test_a_number_of_any_length_is_ignored_where_it_is_not_ours_and_refused_where_it_is(
    foreign_path,
):
    digits = "9" * 120_000
    assert values_of(foreign_path, f'{{"a": {digits}, "b": -{digits}.5}}') == DEFAULTS
    message = refusal_of(foreign_path, f'{{\n"loop":\n{{"tdd-max-attempts": {digits}}}}}')
    assert message.startswith("3: loop.tdd-max-attempts must be a whole number ")
    assert len(message) < 200


def test_a_deep_value_of_ours_is_refused_whatever_can_be_shown_of_it(foreign_path):
    for depth in range(1, 1_200, 7):
        content = '{\n"mode": ' + "[" * depth + "]" * depth + "}"
        message = refusal_of(foreign_path, content)
        assert message.startswith(("2: mode must be ", " mode must be ", " not valid JSON: "))


def test_a_long_value_does_not_flood_the_message(foreign_path):
    assert len(refusal_of(foreign_path, '{"mode": "' + "x" * 200_000 + '"}')) < 200


# Markdown


@pytest.mark.parametrize(
    ("block", "line"),
    [
        ("  a: 1\n   b: 2", 5),
        ("\ta: 1", 4),
        ("  a: 'open", 4),
        ("  a: b: c", 4),
        ("  a: [1", 4),
        ("  a: \x00", 4),
        ("  a: 1\n  b: \x1b", 5),
        ("  a: %x", 4),
        ("  a: 1\n  - b", 5),
    ],
)
def test_a_damaged_section_is_refused_on_its_line(markdown_path, block, line):
    message = refusal_of(markdown_path, f"# Text\n\nloop:\n{block}")
    assert message.startswith(f"{line}: not valid YAML: ")


@pytest.mark.parametrize(
    ("block", "line"),
    [
        ("  a: &x [1, 2]\n  b: *x", 4),
        ("  a: &x 1\n  auto_loop: *x", 4),
        ("  a: &x {b: 1}\n  <<: *x", 4),
        ("  a: !!python/object/apply:os.system [x]", 3),
        ("  a: 1\n  b: !!bool maybe", 4),
        ("  a: ! x", 3),
        ("  a: " + "[" * 8_000, 3),
        ("  " + "- " * 8_000, 3),
        ("  " + "? " * 8_000, 3),
        ("  a: " + "{a: " * 4_000, 3),
        ("  " + "[\n  " * 4_000, 22),
    ],
)
def test_tricks_are_refused_at_once(markdown_path, block, line):
    message = refusal_of(markdown_path, f"\nloop:\n{block}\n")
    assert message == f"{line}: the loop section is too deep, or has an alias or a tag"


def test_a_section_may_have_16_kib_and_no_more(markdown_path):
    section = "loop:\n  auto_loop: off\n  #"
    fitting = section + "x" * (16 * 1024 - len(section))
    assert values_of(markdown_path, fitting) == {**DEFAULTS, "auto_loop": False}
    message = refusal_of(markdown_path, f"\n{fitting}x")
    assert message == "2: the loop section is larger than 16 KiB"


@pytest.mark.parametrize(
    "trap",
    [
        *("`", "```\n", "~~~~\n", "<!--", "-->", "---\n", "loop:\n", "` ", "   ```a\n", "``\n"),
        *("```yaml\nloop:\n", "loop: \n\n", "````\n```\n", "\x00", "\r", "\r\n", "loop:\r"),
    ],
)
def test_a_file_full_of_beginnings_is_read_at_once(markdown_path, trap):
    assert values_of(markdown_path, trap * (200_000 // len(trap))) == DEFAULTS


# Any file at all

FRAGMENTS = (
    *(
        "loop:",
        "loop: ",
        "\n",
        "\n  ",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
        " ",
        "  auto_loop: no\n",
        "\x85",
    ),
    *(
        "```",
        "```yaml\n",
        "~~~\n",
        "---\n",
        "<!--",
        "-->",
        "#",
        "`",
        "\ufeff",
        "\x00",
        "é",
        "\u2028",
    ),
    *("{", "}", "[", "]", ":", ": ", "- ", "? ", "&a ", "*a", "!", "|", ">", "'", '"', "%", ","),
    *("execute_max_retries: ", "auto_loop: ", "true", "1", "1:30", "2001-02-31", "~", "=", "<<: "),
)


TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=20).map("".join)


@given(st.binary(max_size=200) | TEXTS.map(str.encode) | TEXTS.map(lambda t: f"loop:{t}".encode()))
def test_any_markdown_is_either_taken_or_refused_by_name(content):
    with tempfile.TemporaryDirectory() as directory:
        path = written(Path(directory) / "config.md", content)
        try:
            loaded = values(path.parent)
        except UsageError as error:
            line, _, _ = error.message.removeprefix(f"{path}:").partition(": ")
            assert 1 <= int(line) <= content.count(b"\n") + 1
            return
        for key in settings.KEYS:
            assert loaded[key.name] is None or key.rule.accepts(loaded[key.name])
