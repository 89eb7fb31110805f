"""How the hook names the program, so that the shell of its client can run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_fsm.core.program import is_on_path, program_file
from tests.support.command_line import here
from tests.support.hook_agent import Agent, agent, start
from tests.support.repositories import posix_only

__all__ = ["agent", "here"]
pytestmark = posix_only


@pytest.mark.parametrize(
    ("kind", "found"),
    [("program", True), ("not executable", False), ("directory", False), ("relative", False)],
)
def test_program_is_on_path_if_an_absolute_directory_has_it(
    kind: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "gsd-fsm"
    program.parent.mkdir()
    if kind == "directory":
        program.mkdir()
    else:
        program.touch(0o644 if kind == "not executable" else 0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"/nowhere::{'bin' if kind == 'relative' else program.parent}")
    assert is_on_path() is found


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        ("'{0}/a b'\n", "'{0}/a b'"),
        ("{0}/py -I -m gsd_fsm\n", "{0}/py -I -m gsd_fsm"),
        ("\x1b[2J", "gsd-fsm"),
        ("", "gsd-fsm"),
        (None, "gsd-fsm"),
    ],
)
def test_hook_names_the_kept_program_if_the_path_lacks_it(
    agent: Agent, tmp_path: Path, kept: str | None, named: str
) -> None:
    for name in ("a b", "py"):
        (tmp_path / name).touch(0o755)
    kept, named = kept and kept.format(tmp_path), named.format(tmp_path)
    loop = start(agent, "goal", "g", "--criterion", "c")
    file = Path(program_file())
    file.unlink() if kept is None else file.write_text(kept)
    without = {"PATH": "/usr/bin:/bin"}
    text = agent.blocked(env=without)
    assert f"Run: {named} criterion --loop {loop} 1 met" in text
    assert f"run: {named} pause --loop {loop}" in text
    assert f"run `{named} complete`" in agent.starts("resume", env=without)
    assert "Run: gsd-fsm criterion" in agent.blocked()  # the PATH has it
