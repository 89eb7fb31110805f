"""The hook file: built from core, byte for byte, and independent of everything but Python 3.8."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gsd_fsm.install.hook_entries import WARM_CODE
from scripts.build_hook import build, parts
from tests.support.command_line import Here, here
from tests.support.hook_project import interpreters

__all__ = ["here"]

ROOT = Path(__file__).parents[2]
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
def copy(tmp_path: Path) -> Path:
    """Return a copy of the hook file, without bytecode."""
    path = tmp_path / "with a blank" / HOOK.name
    path.parent.mkdir()
    path.write_bytes(HOOK.read_bytes())
    return path


@pytest.fixture
def looping(here: Here) -> Here:
    here.start("goal", "Be done", "--mode", "yolo", env=SESSION)
    return here


def test_committed_hook_file_is_built_from_core() -> None:
    assert HOOK.read_bytes() == build().encode("utf-8")


def test_hook_file_is_valid_on_python_3_8_as_a_whole_and_in_parts() -> None:
    text = HOOK.read_text("utf-8")
    ast.parse(text, feature_version=(3, 8))
    for part in ("engine", "rare"):
        lines = text.partition(f"\n# begin {part}\n")[2].partition("\n# end\n")[0].split("\n")
        assert ast.parse("\n".join(line[2:] for line in lines), feature_version=(3, 8)).body


def test_hook_file_leaves_out_only_modules_that_the_hook_never_imports() -> None:
    core = ROOT / "gsd_fsm" / "core"
    files = [path.relative_to(core).with_suffix("") for path in core.rglob("[!_]*.py")]
    bundled = {name for part in parts().values() for name in part}
    assert {".".join(file.parts) for file in files} - bundled == {"journal.repair"}


def test_entry_of_the_hook_stays_small() -> None:
    assert {*parts()["entry"]} == {"json_reader", "system", "hook.main"}
    entry = HOOK.read_text("utf-8").partition("\n# begin engine\n")[0]
    assert len([*filter(None, entry.splitlines())]) < 300  # compiled at every start of a script


@pytest.mark.parametrize("python", interpreters())
def test_hook_blocks_under_every_installed_python(python: str, looping: Here) -> None:
    plain = call(python, looping.root, str(HOOK), "plain")
    imported = call(python, looping.root, "-c", IMPORTS, str(HOOK.parent), "imported")
    for done in (plain, imported):
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["decision"] == "block"


@pytest.mark.parametrize(
    ("start", "then"),
    [
        (("goal", "Be done", "--task", "T1"), ("task", "T1", "running")),
        (("goal", "Be done", "--check", "one=true"), ("check",)),
        (("goal", "Be done", "--mode", "yolo", "--criterion", "one"), ("criterion", "one", "met")),
        (("execute", "--mode", "yolo", "--task", "T1"), ("task", "T1", "running")),
        (
            ("execute", "--mode", "yolo", "--task", "T1"),
            ("fail", "T1", "--error", "it broke", "--class", "logic"),
        ),
        (("verify", "--mode", "yolo"), ("gap", "found", "G1", "--description", "missing")),
    ],
)
def test_ordinary_stop_needs_no_rare_part(
    here: Here, copy: Path, start: tuple[str, ...], then: tuple[str, ...]
) -> None:
    here.start(*start, env=SESSION)
    here.ok(*then, env=SESSION)
    assert '"block"' in call(sys.executable, here.root, str(copy)).stdout
    loaded = {path.name.split("_")[3] for path in (copy.parent / "__pycache__").iterdir()}
    assert loaded == {"engine"}, "run: make profile"


@pytest.mark.parametrize("python", interpreters())
def test_every_part_loads_under_every_installed_python(python: str, tmp_path: Path) -> None:
    done = call(python, tmp_path, "-c", WARM_CODE, str(HOOK.parent))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_functions_of_a_part_have_the_line_numbers_of_the_hook_file(copy: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook as hook; "
        "hook.load('engine'); code = hook.respond.__code__; "
        "print(code.co_filename, code.co_firstlineno)"
    )
    place, line = call(sys.executable, ROOT, "-c", code, str(copy.parent)).stdout.rsplit(None, 1)
    assert place == str(copy)
    assert HOOK.read_text("utf-8").split("\n")[int(line) - 1].startswith("# def respond(")


def test_hook_without_a_project_loads_the_entry_only(tmp_path: Path) -> None:
    code = IMPORTS.replace(
        "gsd_fsm_hook.main()",
        "gsd_fsm_hook.leave = lambda _: print('respond' in vars(gsd_fsm_hook)); gsd_fsm_hook.main()",
    )
    assert call(sys.executable, tmp_path, "-c", code, str(HOOK.parent)).stdout == "False\n"


def test_hook_allows_the_stop_if_a_part_is_damaged(looping: Here, copy: Path) -> None:
    copy.write_bytes(HOOK.read_bytes().replace(b"\n# def respond(", b"\n# def respond[", 1))

    done = call(sys.executable, looping.root, str(copy))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("gsd-fsm hook: the stop is allowed: SyntaxError(")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
def test_hook_allows_the_stop_if_loading_a_part_hangs(looping: Here, copy: Path) -> None:
    place = str(copy.parent)
    hurry = IMPORTS.replace(
        "; gsd_fsm_hook.main", "; gsd_fsm_hook._hook_main_WORK = 0.1; gsd_fsm_hook.main"
    )
    assert '"block"' in call(sys.executable, looping.root, "-c", IMPORTS, place).stdout
    (bytecode,) = copy.parent.rglob("gsd_fsm_hook_engine_*.pyc")
    bytecode.unlink()
    os.mkfifo(bytecode)

    done = call(sys.executable, looping.root, "-c", hurry, place)
    assert (done.returncode, done.stdout) == (0, "")


def test_hook_without_a_name_uses_the_digest_of_its_path(looping: Here) -> None:
    done = call(sys.executable, looping.root, str(HOOK))

    assert json.loads(done.stdout)["decision"] == "block"
    assert len(looping.lines()[-1]["data"]["copy"]) == 16


def test_hook_caches_bytecode_and_ignores_damaged_bytecode(looping: Here, copy: Path) -> None:
    cache = copy.parent / "__pycache__"
    base = sys._base_executable  # type: ignore[attr-defined]  # a venv's start script is not what runs it
    assert '"block"' in call(base, looping.root, str(copy)).stdout
    assert [path.name.split("_")[3] for path in cache.iterdir()] == ["engine"]

    for path in cache.iterdir():
        path.write_bytes(b"no bytecode")
    assert '"block"' in call(base, looping.root, str(copy)).stdout


def test_hook_file_with_windows_line_ends_blocks(looping: Here, copy: Path) -> None:
    copy.write_bytes(HOOK.read_bytes().replace(b"\n", b"\r\n"))

    assert '"block"' in call(sys.executable, looping.root, str(copy)).stdout


def test_block_imports_no_expensive_module(looping: Here) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook as hook; "
        "hook.leave = lambda _: sys.stderr.write(' '.join(sys.modules)); hook.main()"
    )
    base = sys._base_executable  # type: ignore[attr-defined]  # site of a venv imports os
    done = call(base, looping.root, "-c", code, str(HOOK.parent))

    assert json.loads(done.stdout)["decision"] == "block"
    expensive = {"os", "re", "json", "typing", "pathlib", "hashlib", "argparse", "dataclasses",
                 "__future__"}  # fmt: skip
    assert expensive.isdisjoint(done.stderr.split())


def test_wheel_contains_the_hook_file(tmp_path: Path) -> None:
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
        assert "gsd_fsm/install/plugin_files/README.md" in wheel.namelist()
