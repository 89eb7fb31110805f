"""Where settings come from, which values they take, and what loading them costs."""

from __future__ import annotations

import sys

import pytest

from gsd_fsm.config import settings
from gsd_fsm.core.errors import UsageError
from tests.support import settings_files as settings_rig
from tests.support.settings_files import DEFAULTS, refused, run_python, values, values_of, written

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
refusal = settings_rig.refusal

WHOLE_FROM_ZERO = (
    "execute_max_retries",
    "verify_max_iterations",
    "max_iterations",
    "stuck_limit",
    "idle_limit",
)
WHOLE_FROM_ONE = ("tdd_max_attempts", "check_timeout_seconds")
AMOUNTS = ("budget_usd", "max_minutes")


# Sources


def test_without_any_file_every_setting_has_its_default():
    loaded = settings.load(None)
    assert {name: s.value for name, s in loaded.items()} == DEFAULTS
    assert list(loaded) == list(DEFAULTS)
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
def test_a_count_refuses_what_is_no_whole_number_from_zero(refusal, name):
    for value in ("-1", "true", "false", "1.0", '"1"', "[1]", "1000000001", "nan"):
        message = refusal(f"\n{name} = {value}")
        assert message.startswith(f"2: {name} must be a whole number from 0 ")


@pytest.mark.parametrize("name", WHOLE_FROM_ONE)
@pytest.mark.parametrize("value", ["0", "-1", "true", "1.0"])
def test_a_positive_count_refuses_zero(refusal, name, value):
    assert refusal(f"\n{name} = {value}").startswith(f"2: {name} must be a whole number from 1 ")


@pytest.mark.parametrize("name", AMOUNTS)
def test_an_amount_refuses_what_is_no_finite_number_from_zero(refusal, name):
    for value in ("nan", "inf", "-inf", "1e999", "-0.01", "-1", "true", '"5"'):
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


# Start-up


def test_without_files_neither_a_parser_nor_anything_for_mistakes_is_imported(tmp_path):
    script = (
        "import sys\nfrom gsd_fsm.config import settings\n"
        "assert 'platformdirs' not in sys.modules\n"
        "settings.load(None)\nprint(*sys.modules)"
    )
    done = run_python(script, tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "platformdirs" in loaded
    assert loaded.isdisjoint({"tomllib", "tomli", "difflib", "json", "yaml"})
    assert "gsd_fsm.config.opti_gsd" not in loaded


@pytest.mark.parametrize(
    ("file", "content", "imported"),
    [
        (".gsd/config.toml", "idle_limit = 9", "tomllib"),
        (".opti-gsd/config.json", "{}", "json"),
        (".gsd/config.md", "loop:\n  auto_loop: no", "yaml"),
        (".gsd/config.md", "# No such section", ""),
    ],
)
def test_a_parser_is_imported_for_its_own_file_only(tmp_path, file, content, imported):
    (tmp_path / file).parent.mkdir()
    written(tmp_path / file, content)
    script = (
        "import sys, pathlib\nfrom gsd_fsm.config import settings\n"
        "settings.load(pathlib.Path(sys.argv[1]) / '.gsd')\nprint(*sys.modules)"
    )
    done = run_python(script, tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = {name.replace("tomli", "tomllib") for name in done.stdout.split()}
    assert loaded & {"tomllib", "json", "yaml"} == {imported} - {""}


@pytest.mark.skipif(sys.platform != "linux", reason="XDG directories are for Linux")
def test_on_linux_the_user_file_follows_xdg_config_home(tmp_path):
    (tmp_path / "gsd-fsm").mkdir()
    written(tmp_path / "gsd-fsm" / "config.toml", "idle_limit = 9")
    done = run_python(
        "from gsd_fsm.config import settings\nprint(*settings.load(None)['idle_limit'])", tmp_path
    )
    assert done.stdout.split() == ["idle_limit", "9", str(tmp_path / "gsd-fsm" / "config.toml")]
