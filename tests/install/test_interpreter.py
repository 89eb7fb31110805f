"""The interpreter that runs the hook is real, absolute, and outlives virtual environments."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.install import interpreter
from gsd_fsm.install.interpreter import ask, choose, flaw, fleeting, is_store_stub
from tests.install.conftest import program


def test_by_itself_it_finds_the_base_of_this_very_python() -> None:
    found = choose(None)
    assert flaw(found.path) == ""
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.tag == sys.implementation.cache_tag
    assert Path(found.path).samefile(sys.executable)


def test_behind_a_virtual_environment_stands_its_base(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    inside = tmp_path / "env" / "bin" / "python"
    assert "virtual environment" in flaw(str(inside))
    found = choose(str(inside))
    assert flaw(found.path) == ""
    assert not found.path.startswith(str(tmp_path))


def test_behind_a_shim_stands_what_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = choose(None).path
    shim = program(tmp_path / "python3", f'#!/bin/sh\nexec "{real}" "$@"\n')
    assert "shim" in flaw(str(shim))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert choose("python3").path == real


def test_a_conda_environment_is_taken_only_where_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasting = choose(None).path
    inside = tmp_path / "conda" / "bin" / "python3"
    inside.parent.mkdir(parents=True)
    inside.symlink_to(lasting)
    (tmp_path / "conda" / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "_base_executable", str(inside), raising=False)
    monkeypatch.setattr(sys, "executable", str(inside))
    monkeypatch.setenv("PATH", f"{inside.parent}:{Path(lasting).parent}")
    assert not fleeting(choose(None).path)
    monkeypatch.setenv("PATH", str(inside.parent))
    assert choose(None).path == str(inside)
    assert "conda" in fleeting(str(inside))


def test_without_a_python_that_lasts_every_candidate_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "_base_executable", str(tmp_path / "gone"), raising=False)
    monkeypatch.setattr(sys, "executable", str(program(tmp_path / "liar", "#!/bin/sh\necho hi\n")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as told:
        choose(None)
    assert "gone cannot be run" in told.value.message
    assert "liar does not answer as a Python does" in told.value.message
    assert "--python" in told.value.hint


@pytest.mark.parametrize("wrong", ["/no/such/python", "no-such-program", "/etc/passwd", "/"])
def test_what_is_no_program_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="no program that can be run"):
        choose(wrong)


def test_a_python_that_is_too_old_is_refused(tmp_path: Path) -> None:
    answer = '[[3, 7, 17], \\"cpython-37\\", \\"/usr/bin/python3.7\\"]'
    old = program(tmp_path / "python", f'#!/bin/sh\necho "{answer}"\n')
    with pytest.raises(UsageError, match=r"is Python 3\.7\.17; the hook needs 3\.8"):
        ask(str(old))


def test_a_program_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "PATIENCE", 0.2)
    silent = program(tmp_path / "python", "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(UsageError, match="does not answer"):
        ask(str(silent))


@pytest.mark.parametrize(
    ("path", "is_stub"),
    [
        (r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\python.exe", True),
        ("C:/Users/me/AppData/Local/Microsoft/WindowsApps/python3.exe", True),
        (r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.12\python.exe", True),
        (r"C:\Python312\python.exe", False),
        (r"C:\Users\me\AppData\Local\Programs\Python\Python312\python.exe", False),
        ("/usr/bin/python3", False),
    ],
)
def test_the_stand_in_of_the_store_is_known_by_its_path(path: str, is_stub: bool) -> None:
    assert is_store_stub(path) is is_stub
    if is_stub:
        assert "Store" in flaw(path)


def test_scripts_of_windows_are_shims_too(tmp_path: Path) -> None:
    for name in ("python.bat", "python3.CMD"):
        assert "shim" in flaw(str(program(tmp_path / name, "@echo off\n")))


def test_a_relative_or_missing_path_is_a_flaw() -> None:
    assert "absolute" in flaw("python3")
    assert "does not exist" in flaw("/no/such/python")
