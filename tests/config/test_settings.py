"""Which file decides about a setting, how files are read, and how mistakes are reported."""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.config import settings
from gsd_fsm.core.errors import UsageError
from tests.support.settings_files import DEFAULTS, refused, run_python, values, values_of, written

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# In order of precedence, each with another value for the same setting.
CONTENTS = {
    "project": "tdd_max_attempts = 11\n",
    "foreign": '{"loop": {"tdd_max_attempts": 12}}\n',
    "markdown": "loop:\n  tdd_max_attempts: 13\n",
    "user": "tdd_max_attempts = 14\n",
}
VALUES = {"project": 11, "foreign": 12, "markdown": 13, "user": 14}


@pytest.fixture
def paths(project_path, foreign_path, markdown_path, user_path):
    return dict(zip(CONTENTS, (project_path, foreign_path, markdown_path, user_path), strict=True))


def refusal_from(gsd):
    with pytest.raises(UsageError) as caught:
        settings.load(gsd)
    return caught.value.message


def test_load_without_files_returns_defaults_in_the_order_of_the_table():
    loaded = settings.load(None)
    assert [(name, s.value) for name, s in loaded.items()] == list(DEFAULTS.items())
    assert all(s.name == name and s.source == "default" for name, s in loaded.items())


def test_load_takes_a_setting_from_the_file_of_highest_precedence(paths):
    gsd = paths["project"].parent
    for names in (it for count in range(1, 5) for it in itertools.combinations(CONTENTS, count)):
        for name in names:
            written(paths[name], CONTENTS[name])
        decided = settings.load(gsd)["tdd_max_attempts"]
        assert decided == ("tdd_max_attempts", VALUES[names[0]], str(paths[names[0]]))
        for name in names:
            paths[name].unlink()
    assert values(gsd) == DEFAULTS


@pytest.mark.parametrize("name", CONTENTS)
def test_load_rejects_a_broken_file_even_if_another_one_decides(paths, name):
    for each, content in CONTENTS.items():
        broken = content.replace("tdd_max_attempts", "auto_loop")
        written(paths[each], broken if each == name else content)
    assert refusal_from(paths["project"].parent).startswith(f"{paths[name]}:")


def test_load_opens_no_file_of_an_untrusted_project(paths):
    written(paths["user"], CONTENTS["user"])
    for name in ("project", "foreign", "markdown"):
        paths[name].mkdir()  # an error once it is opened
    assert values(paths["project"].parent, trusted=False) == {**DEFAULTS, "tdd_max_attempts": 14}
    for name in ("markdown", "foreign", "project"):
        assert refusal_from(paths["project"].parent) == f"{paths[name]}: not a regular file"
        paths[name].rmdir()


def test_load_without_project_reads_only_the_user_file(paths, monkeypatch):
    for name, content in CONTENTS.items():
        written(paths[name], content)
    monkeypatch.chdir(paths["project"].parent.parent)
    assert values(None) == {**DEFAULTS, "tdd_max_attempts": 14}


@pytest.mark.parametrize(
    ("file", "content", "imported"),
    [("other", "", set()), (".gsd/config.toml", "idle_limit = 9", {"tomllib"}),
     (".opti-gsd/config.json", "{}", {"json"}), (".gsd/config.md", "# No such section", set()),
     (".gsd/config.md", "loop:\n  auto_loop: no", {"yaml"})],
)  # fmt: skip
def test_load_imports_a_parser_only_for_its_own_file(tmp_path, file, content, imported):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    written(tmp_path / file, content)
    script = (
        "import sys, pathlib\nfrom gsd_fsm.config import settings\n"
        "settings.load(pathlib.Path(sys.argv[1]) / '.gsd')\nprint(*sys.modules)"
    )
    done = run_python(script, tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = {name.replace("tomli", "tomllib") for name in done.stdout.split()}
    assert loaded & {"tomllib", "json", "yaml", "difflib"} == imported


@pytest.mark.parametrize(
    ("name", "kib"), [("project", 64), ("foreign", 256), ("markdown", 256), ("user", 64)]
)
def test_load_rejects_a_file_above_its_limit(paths, name, kib):
    fitting = ("{}" if name == "foreign" else "").ljust(kib * 1024)
    written(paths[name], fitting)
    assert values(paths["project"].parent) == DEFAULTS
    written(paths[name], f"{fitting} ")
    assert refusal_from(paths["project"].parent) == f"{paths[name]}: larger than {kib} KiB"


def test_load_ignores_a_missing_directory_and_a_file_in_its_place(tmp_path, project_path):
    assert values(tmp_path / "missing") == DEFAULTS
    assert values(written(tmp_path / "file", "mode = 'yolo'")) == DEFAULTS
    written(project_path.parent.with_name(".opti-gsd"), "{")
    assert values(project_path.parent) == DEFAULTS


def test_toml_may_be_empty_or_have_a_byte_order_mark_and_crlf(project_path):
    for empty in ("", "\n", "\r\n", "# nothing", "\ufeff", " "):
        assert values_of(project_path, empty) == DEFAULTS
    content = b'\xef\xbb\xbfmode = "yolo"\r\n"idle_limit" = 9\r\nmcps = [\r\n"a", # b\r\n]'
    expected = {**DEFAULTS, "mode": "yolo", "idle_limit": 9, "mcps": ("a",)}
    assert values_of(project_path, content) == expected


def test_hint_lists_the_known_keys_or_describes_the_key(project_path):
    hint = refused(project_path, "execute_max_retry = 3\n").hint
    assert all(name in hint for name in DEFAULTS)
    hint = refused(project_path, "execute_max_retries = true").hint
    assert hint == "Retries of a failed task before the loop pauses."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n\nexecute_max_retry = 3\n",
         "3: unknown key 'execute_max_retry' (did you mean 'execute_max_retries'?)"),
        ("\nexecute_max_retries = true",
         "2: execute_max_retries must be a whole number from 0 to 1000000000, not true"),
        ("AUTO_LOOP = true", "1: unknown key 'AUTO_LOOP' (did you mean 'auto_loop'?)"),
        ("zzz = 1", "1: unknown key 'zzz'"),
        ('"\\u001b[2J" = 1', " unknown key '\\x1b[2J'"),
        *((f"\n{table}", "2: unknown table 'loop'")
          for table in ("[loop]\nmode = 1", "loop.mode = 1", "loop = {mode = 1}")),
        ("\n[mode]", '2: mode must be "interactive" or "yolo", not {}'),
        ("# stuck_limit\n 'stuck_limit' = -1", "2: stuck_limit must be a whole number "),
        ("stuck_limit_ = 1", "1: unknown key 'stuck_limit_' (did you mean 'stuck_limit'?)"),
        ("idle_limit = 1\nstuck_limit = '''\n1'''", "2: stuck_limit must be a whole number "),
        ("mode = 1979-05-27", '1: mode must be "interactive" or "yolo", not "1979-05-27"'),
        ("k" * 60_000 + " = 1", "1: unknown key 'kkkk"),
        ("auto_loop = true\nmode = yolo\nidle_limit = 1", "2: not valid TOML: "),
        ('mode = """\n\\q"""\n', "2: not valid TOML: "),
        ("mode = 'yolo'\nmode = 'yolo'", "2: not valid TOML: "),
        ("\nmode = [\n1,\n", "4: not valid TOML: "),
        (b"# fine\n# \xe9t\xe9\n", "2: not valid UTF-8"),
        ("\nbudget_usd = " + "9" * 5_000, " too many digits or brackets"),
        ("\nmode = " + "[" * 20_000 + "]" * 20_000, " too many digits or brackets"),
    ],
)  # fmt: skip
def test_mistake_in_toml_is_reported_on_one_short_line(refusal, content, message):
    found = refusal(content)
    assert found.startswith(message)
    assert len(found) < 200
    assert found.isprintable()


FRAGMENTS = (
    *DEFAULTS,
    *("=", " = ", "\n", "\r\n", "\r", ".", ",", "#", "\\", " ", "[", "]", "[[", "]]", "{", "}"),
    *("'", '"', "'''", '"""', "'yolo'", '"""yolo"""', "'''\nyolo'''", "1", "0", "true", "nan"),
    *("mode = 'yolo'\n", "idle_limit = 1\n", "auto_loop = false # [\n", "x", "é"),
)
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join)


@given(st.binary(max_size=300) | TEXTS.map(str.encode))
def test_toml_is_loaded_exactly_if_it_has_only_valid_settings(content):
    rules = {key.name: key.rule for key in settings.KEYS}
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        expected = tomllib.loads(text)
        is_valid = all(it in rules and rules[it].accepts(expected[it]) for it in expected)
    except ValueError:
        is_valid = False
    with tempfile.TemporaryDirectory() as directory:
        path = written(Path(directory) / "config.toml", content)
        if not is_valid:
            assert refusal_from(path.parent).startswith(f"{path}:")
            return
        loaded = settings.load(path.parent)
        found = {name: s.value for name, s in loaded.items() if s.source == str(path)}
    assert {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()} == expected


def test_load_refuses_a_setting_of_the_user_in_the_file_of_a_project(paths):
    written(paths["user"], "prove_tasks = false\n")
    gsd = paths["project"].parent
    assert settings.load(gsd)["prove_tasks"].value is False
    written(paths["project"], "prove_tasks = false\n")
    assert "prove_tasks is not allowed in the settings of a project" in refusal_from(gsd)
