from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.install import interpreter
from gsd_fsm.install.interpreter import ask, choose, flaw, is_store_stub, risk
from tests.support.client_settings import program
from tests.support.command_line import Here


def test_choose_finds_the_base_of_the_running_python() -> None:
    found = choose(None)
    assert flaw(found.path) == ""
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.tag == sys.implementation.cache_tag
    assert Path(found.path).samefile(sys.executable)


def test_choose_resolves_a_virtual_environment_to_its_base(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    inside = tmp_path / "env" / "bin" / "python"
    assert "virtual environment" in flaw(str(inside))
    found = choose(str(inside))
    assert flaw(found.path) == ""
    assert not found.path.startswith(str(tmp_path))


def test_choose_resolves_a_shim_to_the_python_it_starts(here: Here) -> None:
    for name in ("python.bat", "python3.CMD"):
        assert "shim" in flaw(str(program(here.root / name, "@echo off\n")))
    real = choose(None).path
    shim = program(here.root / "python3", f'#!/bin/sh\nexec "{real}" "$@"\n')
    assert "shim" in flaw(str(shim))
    here.patch.setenv("PATH", f"{here.root}:{os.environ['PATH']}")
    assert choose("python3").path == real


def test_choose_takes_a_conda_environment_only_if_there_is_nothing_else(here: Here) -> None:
    lasting = choose(None).path
    inside = here.root / "conda" / "bin" / "python3"
    inside.parent.mkdir(parents=True)
    inside.symlink_to(lasting)
    (here.root / "conda" / "conda-meta").mkdir()
    here.patch.setattr(sys, "_base_executable", str(inside), raising=False)
    here.patch.setattr(sys, "executable", str(inside))
    here.patch.setenv("PATH", f"{inside.parent}:{Path(lasting).parent}")
    assert not risk(choose(None).path)
    here.patch.setenv("PATH", str(inside.parent))
    assert choose(None).path == str(inside)
    assert "conda" in risk(str(inside))


def test_choose_without_a_suitable_python_names_every_candidate(here: Here) -> None:
    here.patch.setattr(sys, "_base_executable", str(here.root / "gone"), raising=False)
    here.patch.setattr(sys, "executable", str(program(here.root / "liar", "#!/bin/sh\necho hi\n")))
    here.patch.setenv("PATH", str(here.root))
    with pytest.raises(UsageError) as caught:
        choose(None)
    assert "gone cannot be run" in caught.value.message
    assert "liar is not a Python interpreter" in caught.value.message
    assert "--python" in caught.value.hint


@pytest.mark.parametrize("wrong", ["no-such-program", "/etc/passwd", "/"])
def test_choose_refuses_a_path_that_is_not_a_program(wrong: str) -> None:
    with pytest.raises(UsageError, match="is not a program"):
        choose(wrong)


def test_ask_refuses_a_python_that_is_too_old_or_never_answers(here: Here) -> None:
    old = 'echo \'[[3, 7, 17], "cpython-37", "/usr/bin/python3.7"]\''
    with pytest.raises(UsageError, match=r"is Python 3\.7\.17; the hook needs 3\.8"):
        ask(str(program(here.root / "old", f"#!/bin/sh\n{old}\n")))
    here.patch.setattr(interpreter, "PATIENCE", 0.2)
    with pytest.raises(UsageError, match="is not a Python interpreter"):
        ask(str(program(here.root / "slow", "#!/bin/sh\nexec sleep 60\n")))


def test_flaw_names_a_path_that_is_not_a_real_interpreter() -> None:
    for path, problem in (
        (r"C:\Users\me\AppData\Local\Microsoft\WindowsApps\python.exe", "Store"),
        (r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.12\python.exe", "Store"),
        (r"C:\Users\me\AppData\Local\Programs\Python\Python312\python.exe", "absolute"),
        ("python3", "not an absolute path"),
        ("/no/such/python", "does not exist"),
    ):
        assert problem in flaw(path)
        assert is_store_stub(path) is (problem == "Store")
