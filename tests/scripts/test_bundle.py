"""The hook file: built from core, byte for byte, and independent of everything but Python 3.8."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gsd_fsm.install.hook_entries import WARM_CODE
from scripts.build_hook import build, parts
from tests.support.command_line import Here, here
from tests.support.hook_project import HOOK, HookRun, blocks, interpreters, run_command, signal_of

__all__ = ["here"]

ROOT = Path(__file__).parents[2]
IMPORTED = "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook as hook; "
SESSION = {"CLAUDE_CODE_SESSION_ID": "s-1"}
BASE = sys._base_executable  # a venv imports more at its start


def call(python: str, cwd: Path, *start: str) -> HookRun:
    signal = signal_of(cwd, last_assistant_message="Done.")
    return run_command([python, "-I", "-S", *start], signal, cwd=cwd)


def call_imported(python: str, cwd: Path, code: str, hook: Path = HOOK) -> HookRun:
    """Import the hook file as `hook` and run this code."""
    return call(python, cwd, "-c", IMPORTED + code, str(hook.parent), "imported")


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


def test_committed_hook_file_is_built_from_core_and_packaged(tmp_path: Path) -> None:
    assert HOOK.read_bytes() == build().encode("utf-8")
    build_wheel = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    command = [sys.executable, "-c", build_wheel, str(tmp_path)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(tmp_path / made.stdout.split()[-1]) as wheel:
        assert wheel.read("gsd_fsm/gsd_fsm_hook.py") == HOOK.read_bytes()
        assert "gsd_fsm/install/plugin_files/README.md" in wheel.namelist()


def test_hook_file_is_valid_on_python_3_8_and_has_all_of_core_but_repair() -> None:
    text = HOOK.read_text("utf-8")
    ast.parse(text, feature_version=(3, 8))
    for part in ("engine", "rare"):
        lines = text.partition(f"\n# begin {part}\n")[2].partition("\n# end\n")[0].split("\n")
        assert ast.parse("\n".join(line[2:] for line in lines), feature_version=(3, 8)).body
    core = ROOT / "gsd_fsm" / "core"
    files = [path.relative_to(core).with_suffix("") for path in core.rglob("[!_]*.py")]
    bundled = {name for part in parts().values() for name in part}
    assert {".".join(file.parts) for file in files} - bundled == {"journal.repair"}
    assert {*parts()["entry"]} == {"json_reader", "system", "hook.main"}
    entry = text.partition("\n# begin engine\n")[0]
    assert len([*filter(None, entry.splitlines())]) < 300  # compiled at every start of a script


@pytest.mark.parametrize("python", interpreters())
def test_hook_loads_every_part_and_blocks_under_every_python(python: str, looping: Here) -> None:
    for start in ((str(HOOK),), ("-c", IMPORTED + "hook.main()", str(HOOK.parent))):
        done = call(python, looping.root, *start, "copy")
        assert (done.code, blocks(done.answer), done.err) == (0, True, "")
    assert call(python, looping.root.parent, "-c", WARM_CODE, str(HOOK.parent)) == (0, b"", "")


RUNNING, EXECUTE = "task T1 running", "execute --mode yolo --task T1"


@pytest.mark.parametrize(
    ("start", "then"),
    [
        ("goal Done --task T1", RUNNING),
        ("goal Done --check one=true", "check"),
        ("goal Done --mode yolo --criterion one", "criterion one met"),
        (EXECUTE, RUNNING),
        (EXECUTE, "fail T1 --error broken --class logic"),
        ("verify --mode yolo --task T1", "gap found G1 --description missing"),
    ],
)
def test_ordinary_stop_needs_no_rare_part(
    here: Here, copy: Path, start: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.start(*start.split(), env=SESSION)
    here.ok(*then.split(), env=SESSION)
    for path in (os.environ["PATH"], os.defpath):  # with gsd-fsm in it, and without
        monkeypatch.setenv("PATH", path)
        assert blocks(call(sys.executable, here.root, str(copy)).answer)
    loaded = {path.name.split("_")[3] for path in (copy.parent / "__pycache__").iterdir()}
    assert loaded == {"engine"}, "run: make profile"


def test_functions_of_a_part_have_the_line_numbers_of_the_hook_file(copy: Path) -> None:
    code = "hook.load('engine'); code = hook.respond.__code__; print(code.co_filename, code.co_firstlineno)"
    place, line = call_imported(sys.executable, ROOT, code, copy).out.decode().rsplit(None, 1)
    assert place == str(copy)
    assert HOOK.read_text("utf-8").split("\n")[int(line) - 1].startswith("# def respond(")


def test_hook_without_a_project_loads_the_entry_only(tmp_path: Path) -> None:
    code = "hook.leave = lambda _: print('respond' in vars(hook)); hook.main()"
    assert call_imported(sys.executable, tmp_path, code).out == b"False\n"


def test_hook_allows_the_stop_if_a_part_is_damaged(looping: Here, copy: Path) -> None:
    copy.write_bytes(HOOK.read_bytes().replace(b"\n# def respond(", b"\n# def respond[", 1))
    done = call(sys.executable, looping.root, str(copy))
    assert (done.code, done.out, done.err.count("\n")) == (0, b"", 1)
    assert done.err.startswith("gsd-fsm hook: the stop is allowed: SyntaxError(")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
def test_hook_allows_the_stop_if_loading_a_part_hangs(looping: Here, copy: Path) -> None:
    assert blocks(call_imported(sys.executable, looping.root, "hook.main()", copy).answer)
    (bytecode,) = copy.parent.rglob("gsd_fsm_hook_engine_*.pyc")
    bytecode.unlink()
    os.mkfifo(bytecode)
    hurry = "hook._hook_main_WORK = 0.1; hook.main()"
    assert call_imported(sys.executable, looping.root, hurry, copy)[:2] == (0, b"")


def test_hook_with_windows_line_ends_and_without_a_name_blocks(looping: Here, copy: Path) -> None:
    copy.write_bytes(HOOK.read_bytes().replace(b"\n", b"\r\n"))
    assert blocks(call(sys.executable, looping.root, str(copy)).answer)
    assert len(looping.lines()[-1]["data"]["copy"]) == 16  # the digest of its path


def test_hook_caches_bytecode_and_ignores_damaged_bytecode(looping: Here, copy: Path) -> None:
    assert blocks(call(BASE, looping.root, str(copy)).answer)
    (cached,) = (copy.parent / "__pycache__").iterdir()
    assert cached.name.split("_")[3] == "engine"
    cached.write_bytes(b"no bytecode")
    assert blocks(call(BASE, looping.root, str(copy)).answer)


def test_block_imports_no_expensive_module(looping: Here) -> None:
    code = "hook.leave = lambda _: sys.stderr.write(' '.join(sys.modules)); hook.main()"
    done = call_imported(BASE, looping.root, code)
    assert blocks(done.answer)
    expensive = {"os", "re", "json", "typing", "pathlib", "hashlib", "argparse", "dataclasses",
                 "__future__"}  # fmt: skip
    assert expensive.isdisjoint(done.err.split())
