from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm import settings
from gsd_fsm.core.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULTS = {
    "mode": "interactive",
    "execute_max_retries": 3,
    "verify_max_iterations": 20,
    "tdd_max_attempts": 5,
    "auto_loop": True,
    "max_iterations": None,
    "stuck_limit": 5,
    "idle_limit": 3,
    "budget_usd": None,
    "max_minutes": None,
    "check_timeout_seconds": 600,
}
WHOLE_FROM_ZERO = (
    "execute_max_retries",
    "verify_max_iterations",
    "max_iterations",
    "stuck_limit",
    "idle_limit",
)
WHOLE_FROM_ONE = ("tdd_max_attempts", "check_timeout_seconds")
AMOUNTS = ("budget_usd", "max_minutes")


@pytest.fixture(autouse=True)
def user_path(tmp_path, monkeypatch):
    """The user's file lies in a directory of the test, never in the real home."""

    def user_config_dir(name, *, appauthor):
        assert appauthor is False
        return str(tmp_path / "user" / name)

    monkeypatch.setattr(platformdirs, "user_config_dir", user_config_dir)
    path = tmp_path / "user" / "gsd-fsm" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def project_path(tmp_path):
    path = tmp_path / "repository" / ".gsd" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def refusal(project_path):
    """Write the project's file, and return what load says about it after the file's name."""

    def refuse(content):
        error = refused(project_path, content)
        assert error.hint
        assert error.message.startswith(f"{project_path}:")
        return error.message[len(f"{project_path}:") :]

    return refuse


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def values(project_dir, **options):
    return {name: s.value for name, s in settings.load(project_dir, **options).items()}


def values_of(path, content):
    return values(written(path, content).parent)


def refused(path, content):
    written(path, content)
    with pytest.raises(UsageError) as caught:
        settings.load(path.parent)
    assert caught.value.exit_code == 2
    return caught.value


# Sources


def test_without_any_file_every_setting_has_its_default():
    loaded = settings.load(None)
    assert {name: s.value for name, s in loaded.items()} == DEFAULTS
    assert all(s.name == name and s.source == "default" for name, s in loaded.items())
    assert type(loaded["auto_loop"].value) is bool


def test_the_project_wins_over_the_user_who_wins_over_the_defaults(user_path, project_path):
    written(user_path, "stuck_limit = 7\nidle_limit = 8\n")
    written(project_path, 'idle_limit = 9\nmode = "yolo"\n')
    loaded = settings.load(project_path.parent)
    assert loaded["stuck_limit"] == ("stuck_limit", 7, str(user_path))
    assert loaded["idle_limit"] == ("idle_limit", 9, str(project_path))
    assert loaded["mode"] == ("mode", "yolo", str(project_path))
    assert loaded["auto_loop"] == ("auto_loop", True, "default")


def test_settings_come_in_the_order_of_the_table_whatever_the_files_say(project_path):
    written(project_path, "max_minutes = 1\nstuck_limit = 1\n")
    assert list(settings.load(project_path.parent)) == list(DEFAULTS)


def test_without_a_project_only_the_user_is_asked(user_path):
    written(user_path, "budget_usd = 2.5")
    assert values(None)["budget_usd"] == 2.5


def test_an_untrusted_project_is_ignored_even_if_its_file_is_broken(user_path, project_path):
    written(user_path, "stuck_limit = 7")
    written(project_path, b"\xff")
    assert values(project_path.parent, trusted=False) == {**DEFAULTS, "stuck_limit": 7}


def test_an_untrusted_project_does_not_excuse_a_broken_user_file(user_path, project_path):
    written(user_path, "\nstuck = 7")
    with pytest.raises(UsageError) as caught:
        settings.load(project_path.parent, trusted=False)
    assert caught.value.message.startswith(f"{user_path}:2: unknown key 'stuck'")


def test_the_user_file_is_where_platformdirs_says(user_path):
    assert settings.user_file() == user_path


def test_the_table_of_keys_describes_every_default_in_one_sentence():
    assert {key.name: key.default for key in settings.KEYS} == DEFAULTS
    for key in settings.KEYS:
        assert key.default is None or key.rule.accepts(key.default)
        assert not key.rule.accepts(None)
        assert key.description[0].isupper()
        assert key.description.endswith(".")
        assert key.description.count(".") == 1


# Values


@pytest.mark.parametrize("name", WHOLE_FROM_ZERO + WHOLE_FROM_ONE)
def test_a_whole_number_is_taken(project_path, name):
    taken = values_of(project_path, f"{name} = 1")[name]
    assert taken == 1
    assert type(taken) is int


@pytest.mark.parametrize("name", WHOLE_FROM_ZERO + AMOUNTS)
def test_zero_is_taken_where_it_has_a_meaning(project_path, name):
    assert values_of(project_path, f"{name} = 0")[name] == 0


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("number", ["2", "0.25", "1e3"])
def test_an_amount_may_have_decimals(project_path, name, number):
    assert values_of(project_path, f"{name} = {number}")[name] == float(number)


def test_a_switch_can_be_off(project_path):
    assert values_of(project_path, "auto_loop = false")["auto_loop"] is False


@pytest.mark.parametrize("name", WHOLE_FROM_ZERO)
@pytest.mark.parametrize("value", ["-1", "true", "false", "1.0", '"1"', "[1]", "1000000001", "nan"])
def test_a_count_refuses_what_is_no_whole_number_from_zero(refusal, name, value):
    assert refusal(f"\n{name} = {value}").startswith(f"2: {name} must be a whole number from 0 ")


@pytest.mark.parametrize("name", WHOLE_FROM_ONE)
@pytest.mark.parametrize("value", ["0", "-1", "true", "1.0"])
def test_a_positive_count_refuses_zero(refusal, name, value):
    assert refusal(f"\n{name} = {value}").startswith(f"2: {name} must be a whole number from 1 ")


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "-0.01", "-1", "true", '"5"'])
def test_an_amount_refuses_what_is_no_finite_number_from_zero(refusal, name, value):
    assert refusal(f"\n{name} = {value}").startswith(f"2: {name} must be a number from 0 ")


@pytest.mark.parametrize("value", ["1", "0", '"true"', "[]"])
def test_a_switch_refuses_what_is_neither_true_nor_false(refusal, value):
    assert refusal(f"auto_loop = {value}").startswith("1: auto_loop must be true or false, not ")


@pytest.mark.parametrize("value", ['"fast"', '"YOLO"', '""', "true", "1", "[[]]", "1979-05-27"])
def test_a_mode_refuses_any_other_word(refusal, value):
    message = refusal(f"mode = {value}")
    assert message.startswith('1: mode must be "interactive" or "yolo", not ')


def test_a_refused_value_is_shown_as_it_would_be_written(project_path):
    error = refused(project_path, "execute_max_retries = true")
    assert error.message.endswith(
        "1: execute_max_retries must be a whole number from 0 to 1000000000, not true"
    )
    assert error.hint == "Retries of one failed task before the loop pauses."


def test_a_number_too_long_to_be_shown_is_refused_with_its_line(refusal):
    for digits in ("9" * 5000, "0x" + "f" * 50_000):
        assert refusal(f"\nbudget_usd = {digits}").startswith("2: ")


def test_a_value_nested_too_deeply_is_refused_with_its_line(refusal):
    assert refusal("\nmode = " + "[" * 20_000 + "]" * 20_000).startswith("2: ")


def test_a_long_name_or_value_does_not_flood_the_message(refusal):
    assert len(refusal("k" * 60_000 + " = 1")) < 200
    assert len(refusal('mode = "' + "k" * 60_000 + '"')) < 200


# Keys, and the lines they are on


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


# Files


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


@pytest.mark.parametrize("content", ["", "\n", "\r\n", "# nothing", "\ufeff", " "])
def test_a_file_that_says_nothing_changes_nothing(project_path, content):
    assert values_of(project_path, content) == DEFAULTS


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(project_path):
    content = b'\xef\xbb\xbfmode = "yolo"\r\nidle_limit = 9\r\n'
    assert values_of(project_path, content) == {**DEFAULTS, "mode": "yolo", "idle_limit": 9}


def test_bytes_that_are_not_utf_8_are_refused_on_their_line(refusal):
    assert refusal(b"\xef\xbb\xbf# fine\n# \xe9t\xe9\n") == "2: not valid UTF-8"
    assert refusal("mode = 'yolo'".encode("utf-16")) == "1: not valid UTF-8"


def test_a_file_may_have_64_kib_and_no_byte_more(project_path):
    fitting = b"#" * (64 * 1024)
    assert values_of(project_path, fitting) == DEFAULTS
    assert refused(project_path, fitting + b"#").message == f"{project_path}: larger than 64 KiB"


@pytest.mark.parametrize("trap", ['\\"""', '\\"', '"""\\', "'''", "[", "]\n", '"', "\n[", "{"])
def test_a_file_full_of_unclosed_things_is_refused(refusal, trap):
    message = refusal(trap * (60_000 // len(trap)))
    assert ": not valid TOML: " in message or message.endswith(": too many digits or brackets")


def test_a_directory_in_place_of_the_file_is_refused(project_path):
    project_path.mkdir()
    with pytest.raises(UsageError) as caught:
        settings.load(project_path.parent)
    assert caught.value.message == f"{project_path}: not a regular file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "config.toml")
    script = (
        "import sys, pathlib\nfrom gsd_fsm import settings\n"
        "settings.load(pathlib.Path(sys.argv[1]))"
    )
    done = run_python(script, tmp_path, timeout=30)
    assert "UsageError" in done.stderr
    assert f"{tmp_path / 'config.toml'}: not a regular file" in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_takes_the_place_of_a_file_cannot_make_us_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    script = (
        "import os, sys\nfrom gsd_fsm import settings\n"
        "os.close(settings._open_at_once(sys.argv[1] + '/pipe', os.O_RDONLY))"
    )
    assert run_python(script, tmp_path, timeout=30).returncode == 0


def test_a_file_that_may_not_be_read_is_refused_with_the_reason(project_path, monkeypatch):
    def deny(path, flags):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(settings, "_open_at_once", deny)
    error = refused(project_path, "mode = 'yolo'")
    assert error.message == f"{project_path}: cannot be read: Permission denied"


def test_a_link_to_a_file_is_followed(tmp_path, project_path):
    project_path.symlink_to(written(tmp_path / "shared.toml", "idle_limit = 9"))
    loaded = settings.load(project_path.parent)
    assert loaded["idle_limit"] == ("idle_limit", 9, str(project_path))


@pytest.mark.parametrize("target", ["nowhere.toml", "config.toml"])
def test_a_link_that_leads_nowhere_is_refused_instead_of_ignored(project_path, target):
    project_path.symlink_to(target)
    with pytest.raises(UsageError) as caught:
        settings.load(project_path.parent)
    assert caught.value.message.startswith(f"{project_path}: cannot be read: ")


def test_a_directory_that_is_missing_or_is_a_file_holds_no_settings(tmp_path):
    assert values(tmp_path / "missing") == DEFAULTS
    assert values(written(tmp_path / "file", "mode = 'yolo'")) == DEFAULTS


# Start-up


def run_python(script, *arguments, timeout=60):
    home = str(arguments[0])
    environment = {
        **os.environ,
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "PYTHONPATH": str(Path(settings.__file__).parents[1]),
    }
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_without_files_neither_a_parser_nor_anything_for_mistakes_is_imported(tmp_path):
    script = (
        "import sys\nfrom gsd_fsm import settings\n"
        "assert 'platformdirs' not in sys.modules\n"
        "settings.load(None)\nprint(*sys.modules)"
    )
    done = run_python(script, tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "platformdirs" in loaded
    assert loaded.isdisjoint({"tomllib", "tomli", "difflib", "json"})


@pytest.mark.skipif(sys.platform != "linux", reason="XDG directories are for Linux")
def test_on_linux_the_user_file_follows_xdg_config_home(tmp_path):
    (tmp_path / "gsd-fsm").mkdir()
    written(tmp_path / "gsd-fsm" / "config.toml", "idle_limit = 9")
    done = run_python(
        "from gsd_fsm import settings\nprint(*settings.load(None)['idle_limit'])", tmp_path
    )
    assert done.stdout.split() == ["idle_limit", "9", str(tmp_path / "gsd-fsm" / "config.toml")]


# Any file at all

FRAGMENTS = (
    *DEFAULTS,
    *("=", " = ", "\n", "\r\n", "\r", ".", ",", "#", "\\", " ", "[", "]", "[[", "]]", "{", "}"),
    *("'", '"', "'''", '"""', "'yolo'", '"""yolo"""', "'''\nyolo'''", "1", "0", "true", "nan"),
    *("mode = 'yolo'\n", "idle_limit = 1\n", "auto_loop = false # [\n", "x", "\ufeff", "é"),
)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda t: t.encode("utf-8", "replace")))
def test_any_bytes_are_either_loaded_or_refused_by_name(content):
    load_or_refuse(content)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join))
def test_a_file_is_accepted_exactly_when_it_is_toml_with_nothing_but_valid_settings(text):
    rules = {key.name: key.rule for key in settings.KEYS}
    try:
        expected = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        expected = None
    if expected is not None and not all(
        name in rules and rules[name].accepts(value) for name, value in expected.items()
    ):
        expected = None
    assert load_or_refuse(text.encode()) == expected


def load_or_refuse(content):
    """The settings of a file with this content, or None if it is refused by its name."""
    with tempfile.TemporaryDirectory() as directory:
        path = written(Path(directory) / "config.toml", content)
        try:
            loaded = settings.load(path.parent)
        except UsageError as error:
            line, _, _ = error.message.removeprefix(f"{path}:").partition(": ")
            assert 1 <= int(line) <= content.count(b"\n") + 1
            return None
        return {name: s.value for name, s in loaded.items() if s.source == str(path)}
