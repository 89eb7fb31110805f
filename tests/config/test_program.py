"""How a command names its program: by name if the PATH has it, else by its path."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gsd_fsm.config.program import keep_program, program_by_path, program_here
from gsd_fsm.core.program import program_file
from tests.support.command_line import Here, Project, here

if TYPE_CHECKING:
    import pytest

__all__ = ["here"]
SCRIPT = Path(sys.executable).with_name("gsd-fsm")


def test_program_is_named_without_its_path_if_the_shell_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert program_here() == "gsd-fsm"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert program_here() == str(SCRIPT)


def test_program_by_path_is_the_called_script_else_one_beside_python_else_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = tmp_path / "my bin" / "gsd-fsm"
    called.parent.mkdir()
    called.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(called)])
    assert program_by_path() == f"'{called}'"
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert program_by_path() == str(SCRIPT)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    assert program_by_path() == f"{tmp_path}/python3 -I -m gsd_fsm"


def test_command_whose_path_lacks_it_names_itself_by_its_path(project: Project) -> None:
    env = {"PATH": "/usr/bin:/bin"}
    shown = project.ok("start", "goal", "g", "--criterion", "c", env=env)
    assert f"run `{SCRIPT} complete`" in shown.out
    command = project.ok("next", "--json", env=env).json["command"]
    assert command.startswith(f"{SCRIPT} criterion --loop ")
    refused = project.run("complete", env=env)
    assert (refused.code, f"Run: {SCRIPT} next" in refused.err) == (4, True)
    assert Path(program_file()).read_text() == f"{SCRIPT}\n"


def test_kept_program_is_replaced_and_a_failure_to_keep_it_is_ignored(here: Here) -> None:
    file = Path(program_file())
    file.parent.mkdir(parents=True)
    file.write_text("/old/gsd-fsm\n")
    keep_program()
    assert file.read_text() == f"{SCRIPT}\n"
    here.ok("uninstall", "--yes")
    assert not file.exists()
    file.mkdir()
    assert here.start("goal", "g")
