"""Any file at all, or what lies in its place, is either loaded or refused by name."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.config import settings
from gsd_fsm.core.errors import UsageError
from tests.support import settings_files as settings_rig
from tests.support.settings_files import DEFAULTS, refused, run_python, values, values_of, written

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Fixtures
user_path = settings_rig.user_path
project_path = settings_rig.project_path
refusal = settings_rig.refusal


@pytest.mark.parametrize("content", ["", "\n", "\r\n", "# nothing", "\ufeff", " "])
def test_a_file_that_says_nothing_changes_nothing(project_path, content):
    assert values_of(project_path, content) == DEFAULTS


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(project_path):
    content = b'\xef\xbb\xbfmode = "yolo"\r\nidle_limit = 9\r\n'
    assert values_of(project_path, content) == {**DEFAULTS, "mode": "yolo", "idle_limit": 9}


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
        "import sys, pathlib\nfrom gsd_fsm.config import settings\n"
        "settings.load(pathlib.Path(sys.argv[1]))"
    )
    done = run_python(script, tmp_path, timeout=30)
    assert "UsageError" in done.stderr
    assert f"{tmp_path / 'config.toml'}: not a regular file" in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_takes_the_place_of_a_file_cannot_make_us_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    script = (
        "import os, sys\nfrom gsd_fsm.config import settings\n"
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
        path = Path(directory) / ".gsd" / "config.toml"
        path.parent.mkdir()
        written(path, content)
        try:
            loaded = settings.load(path.parent)
        except UsageError as error:
            line, _, _ = error.message.removeprefix(f"{path}:").partition(": ")
            assert 1 <= int(line) <= content.count(b"\n") + 1
            return None
        found = {name: s.value for name, s in loaded.items() if s.source == str(path)}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}
