"""The hook file: made of core, byte for byte, and in need of nothing but an old Python."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.build_hook import HOME, build, doors_to
from tests.cli.conftest import Here, here
from tests.test_determinism import interpreters

__all__ = ["here"]

ROOT = Path(__file__).parents[1]
HOOK = ROOT / "gsd_fsm" / "gsd_fsm_hook.py"
STOP = {"hook_event_name": "Stop", "session_id": "s-1", "last_assistant_message": "Done."}
IMPORTS = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook; gsd_fsm_hook.main()"
)
SESSION = {"CLAUDE_CODE_SESSION_ID": "s-1"}


def call(python: str, cwd: Path, *start: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-I", "-S", *start],
        input=json.dumps({**STOP, "cwd": str(cwd)}),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def looping(here: Here) -> Here:
    here.start("goal", "Be done", "--mode", "yolo", env=SESSION)
    return here


def test_the_committed_file_is_what_core_makes() -> None:
    assert HOOK.read_bytes() == build().encode("utf-8")


def test_every_module_of_core_is_in_it_or_is_of_no_use_to_it() -> None:
    left = {path.stem for path in (ROOT / "gsd_fsm" / "core").glob("*.py")} - set(HOME)
    assert left == {"__init__", "repair"}


def test_what_waits_in_a_later_part_can_only_be_called() -> None:
    def doors(text: str) -> dict[str, str]:
        node = ast.parse("from gsd_fsm.core." + text).body[0]
        assert isinstance(node, ast.ImportFrom)
        return doors_to("hook", node, {"World": "fold"})

    assert doors("sessions import Talk, concerned") == {"Talk": "rare", "concerned": "rare"}
    assert doors("fold import World") == {}
    for wrong in ("redact import KEPT", "decide import Seen", "sessions import Talk as Speech"):
        with pytest.raises(SystemExit, match="is not defined above it"):
            doors(wrong)


@pytest.mark.parametrize("python", interpreters())
def test_it_blocks_under_every_python_that_is_here(python: str, looping: Here) -> None:
    plain = call(python, looping.root, str(HOOK), "plain")
    imported = call(python, looping.root, "-c", IMPORTS, str(HOOK.parent), "imported")
    for done in (plain, imported):
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["decision"] == "block"


def test_it_needs_no_name(looping: Here) -> None:
    done = call(sys.executable, looping.root, str(HOOK))

    assert json.loads(done.stdout)["decision"] == "block"
    assert len(looping.lines()[-1]["data"]["copy"]) == 16


def test_its_bytecode_is_kept_and_is_not_needed(looping: Here, tmp_path: Path) -> None:
    place = tmp_path / "with a blank"
    place.mkdir()
    copy = place / HOOK.name
    copy.write_bytes(HOOK.read_bytes())
    base = sys._base_executable  # type: ignore[attr-defined]  # a venv's start script is not what runs it
    assert '"block"' in call(base, looping.root, str(copy)).stdout
    kept = sorted(path.name for path in (place / "__pycache__").iterdir())
    assert [name.split("_")[3] for name in kept] == ["entry", "rest"]

    for path in (place / "__pycache__").iterdir():
        path.write_bytes(b"no bytecode")
    assert '"block"' in call(base, looping.root, str(copy)).stdout


def test_a_file_with_windows_line_ends_works_as_well(looping: Here, tmp_path: Path) -> None:
    copy = tmp_path / HOOK.name
    copy.write_bytes(HOOK.read_bytes().replace(b"\n", b"\r\n"))

    assert '"block"' in call(sys.executable, looping.root, str(copy)).stdout


def test_no_dear_module_is_imported(looping: Here) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook as hook; "
        "hook.leave = lambda _: sys.stderr.write(' '.join(sys.modules)); hook.main()"
    )
    base = sys._base_executable  # type: ignore[attr-defined]  # site of a venv imports os
    done = call(base, looping.root, "-c", code, str(HOOK.parent))

    assert json.loads(done.stdout)["decision"] == "block"
    dear = {
        "os",
        "re",
        "json",
        "typing",
        "pathlib",
        "hashlib",
        "argparse",
        "dataclasses",
        "__future__",
    }
    assert dear.isdisjoint(done.stderr.split())


def test_the_wheel_has_it(tmp_path: Path) -> None:
    build_backend = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    made = subprocess.run(
        [sys.executable, "-c", build_backend, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PIP_NO_INPUT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    with zipfile.ZipFile(tmp_path / made.stdout.split()[-1]) as wheel:
        assert wheel.read("gsd_fsm/gsd_fsm_hook.py") == HOOK.read_bytes()
        assert "gsd_fsm/plugin_files/README.md" in wheel.namelist()
