"""A mistake in a file of settings is named with the line it is on."""

from __future__ import annotations

import pytest

from gsd_fsm.config import settings
from tests.support import settings_files as settings_rig
from tests.support.settings_files import DEFAULTS, refused, values_of

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
refusal = settings_rig.refusal


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_known_key(project_path):
    error = refused(project_path, "auto_loop = true\n\nexecute_max_retry = 3\n")
    assert error.message == (
        f"{project_path}:3: unknown key 'execute_max_retry' (did you mean 'execute_max_retries'?)"
    )
    assert all(name in error.hint for name in DEFAULTS)


def test_a_key_in_capitals_is_unknown_but_recognised(refusal):
    assert refusal("AUTO_LOOP = true") == "1: unknown key 'AUTO_LOOP' (did you mean 'auto_loop'?)"


def test_a_key_like_no_other_gets_no_suggestion(refusal):
    assert refusal("zzz = 1") == "1: unknown key 'zzz'"


def test_a_control_character_in_a_key_is_not_printed_raw(refusal):
    assert refusal('"\\u001b[2J" = 1') == "1: unknown key '\\x1b[2J'"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n[loop]\nmode = 1", "2: unknown table 'loop'"),
        ("\n[loop.more]", "2: unknown table 'loop'"),
        ("\n[[loop]]", "2: unknown table 'loop'"),
        ("\nloop.mode = 1", "2: unknown table 'loop'"),
        ("\nloop = {mode = 1}", "2: unknown table 'loop'"),
        ("\nloop = [\n1,\n2]", "2: unknown key 'loop' (did you mean 'auto_loop'?)"),
        ("\n[modes]", "2: unknown table 'modes'"),
        ("\n[mode]", '2: mode must be "interactive" or "yolo", not {}'),
        ("\nmode.loop = 1", '2: mode must be "interactive" or "yolo", not {"loop": 1}'),
    ],
)
def test_there_are_no_tables(refusal, content, message):
    assert refusal(content) == message


@pytest.mark.parametrize("second", ["mode", '"mode"', "'mode'", '"m\\u006fde"'])
def test_a_key_given_twice_is_refused_on_its_second_line(refusal, second):
    content = f'mode = "yolo"\n# mode\n{second} = "yolo"\n'
    assert refusal(content) == "3: duplicate key 'mode'"


@pytest.mark.parametrize("spelling", ['"mode"', "'mode'", ' "m\\u006fde" '])
def test_a_quoted_key_is_the_same_key(project_path, spelling):
    assert values_of(project_path, f'{spelling} = "yolo"')["mode"] == "yolo"


@pytest.mark.parametrize(
    "before",
    [
        "# wrong = 1\n",
        "# \"\"\" ''' \" ' [ {\n",
        'mode = """\\\n  yolo"""\n',
        "mode = '''\nyolo'''\n",
        'mode = """\nyolo\\\n\n\n   """ # """\n',
        "auto_loop = true # '''\n",
        'auto_loop = true # [ " {\n',
        '"auto_loop" = true # \\\n',
        "\r\n\r\nauto_loop = true\r\n",
        "\t \n \t\n",
        "\ufeff# only one mark\n",
    ],
)
def test_nothing_before_a_wrong_key_misleads_about_its_line(refusal, before):
    line = before.count("\n") + 1
    assert refusal(before + "wrong = 1\n") == f"{line}: unknown key 'wrong'"


@pytest.mark.parametrize(
    "value",
    [
        '"""\nwrong = 1\n"""',
        "'''\nwrong = 1 # '''",
        '"""\nwrong = 1 # \\"""\nwrong = 2\n"""',
        "'''\n[wrong]'''''",
        '"""""a"""""',
        '"""\n"""',
        "[\n\"wrong = ]\",\n'''\nwrong = 1 # '''\n]",
        "[ # ]\nwrong\n]".replace("wrong", "1"),
        "[\n[1],\n{a = ']'}\n]",
    ],
)
def test_a_value_over_many_lines_is_refused_on_the_line_of_its_key(refusal, value):
    message = refusal(f"stuck_limit = 1\nidle_limit = {value}\nwrong = 1\n")
    assert message.startswith("2: idle_limit must be ")


@pytest.mark.parametrize("string", ['""""a""""', '"""""a"""""', "''''a''''", "'''''a'''''"])
def test_quotes_beside_the_end_of_a_long_string_belong_to_it(string):
    statements = [f"x = [{string}] # [\n", "y = 1\n", ""]
    assert list(settings._statements("".join(statements))) == list(enumerate(statements, 1))


def test_the_first_mistake_of_a_file_is_the_one_reported(refusal):
    assert refusal("aaa = 1\nbbb = 1\n= 1").startswith("1: unknown key 'aaa'")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("auto_loop = true\nmode\n", 2),
        ("auto_loop = true\nmode =", 2),
        ("auto_loop = true\nmode = yolo\nidle_limit = 1", 2),
        ("\n\nmode = 'yolo\n", 3),
        ('\nmode = """yolo\n\n', 2),
        ("\nmode = '''yolo\n\n", 2),
        ("\nmode = [\n1,\n\n", 2),
        ("\nmode = [\n1,\n?]\n", 4),
        ('mode = """\n\\q"""\n', 2),
        ("\n]\nidle_limit = 1", 2),
        ("idle_limit = 1 stuck_limit = 1", 1),
        ("auto_loop = true\rmode = 1", 1),
        ("\n\ufeffmode = 1", 2),
        ("\nmode = 'a\x00b'", 2),
    ],
)
def test_a_syntax_error_is_reported_on_its_line(refusal, content, line):
    assert refusal(content).startswith(f"{line}: not valid TOML: ")


def test_bytes_that_are_not_utf_8_are_refused_on_their_line(refusal):
    assert refusal(b"\xef\xbb\xbf# fine\n# \xe9t\xe9\n") == "2: not valid UTF-8"
    assert refusal("mode = 'yolo'".encode("utf-16")) == "1: not valid UTF-8"
