"""STATE.md beside a journal: whoever appends keeps it current, and nobody believes it."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.views.state_md import SECTION
from tests.support.command_line import A, B, Here, here
from tests.support.events import append
from tests.support.hook_project import HOOK, HookProject, interpreters, run_hook

__all__ = ["here"]
ROOT = Path(__file__).parents[3]
STOP_HOOK = ROOT / "scripts" / "rivals" / "state_md.sh"
REST = "---\r\n# State\n\nloop:\n  active: nonsense\n"
FILE = "---\nmilestone: v1  # the first\n\nopen_issues: []\n" + REST
RESET = {
    **dict.fromkeys(SECTION),
    "active": False,
    "iteration": 0,
    "max_iterations": 20,
    "task_retries": {},
    "gaps_remaining": 0,
    "paused": False,
    "history": [],
}


def put(gsd: Path, text: str = FILE) -> Path:
    gsd.mkdir(exist_ok=True)
    path = gsd / "STATE.md"
    path.write_bytes(text.encode())
    return path


def section(gsd: Path) -> dict[str, Any]:
    """The section as a reader of YAML has it; the rest is as it was put there."""
    text = (gsd / "STATE.md").read_bytes().decode()
    front, fence, rest = text.partition("---\r\n")
    assert fence + rest == REST
    before, key, _ = front.partition("loop:\n")
    assert before + REST == FILE
    found = yaml.safe_load(front.removeprefix("---\n"))
    assert [*found] == ["milestone", "open_issues", *(["loop"] if key else [])]
    return dict(found["loop"])


def test_without_the_file_nothing_is_made(here: Here) -> None:
    here.start("goal", "Be done")
    here.ok("iterate")
    assert not list(here.gsd.glob("STATE*"))


def test_every_command_that_appends_keeps_it_current(here: Here) -> None:
    put(here.gsd)
    here.start("execute", "--mode", "yolo", "--task", "T01", "--task", "01", "--max-retries", "1")
    begun = section(here.gsd)
    assert [*begun] == list(SECTION)
    assert (begun["active"], begun["type"], begun["iteration"]) == (True, "execute", 0)
    assert begun["task_retries"] == {"T01": 0, "01": 0}
    here.ok("iterate")
    here.ok("fail", "T01", "--error", "first\nline", "--class", "logic")
    failed = section(here.gsd)
    assert failed["task_retries"] == {"T01": 1, "01": 0}
    assert (failed["last_error"], failed["paused"]) == ("first\nline", False)
    here.ok("fail", "T01", "--error", "again", "--class", "logic")
    paused = section(here.gsd)
    assert (paused["active"], paused["paused"], paused["iteration"]) == (False, True, 1)
    assert paused["pause_reason"] == "Task T01 failed after 1 retry"
    status = here.status()
    for name in set(SECTION) - {"active", "type", "paused"}:
        assert paused[name] == status[name], name
    here.ok("resume", "--add-retries", "1")
    assert section(here.gsd)["active"] is True
    here.ok("cancel")
    assert section(here.gsd) == RESET


def test_it_is_reset_when_the_loop_completes(here: Here) -> None:
    put(here.gsd)
    here.start("execute", "--mode", "yolo", "--task", "T01")
    for status in ("running", "complete"):
        here.ok("task", "T01", status)
    assert section(here.gsd)["active"] is True
    here.ok("complete")
    assert section(here.gsd) == RESET


def test_it_shows_the_live_loop_that_was_started_last(here: Here) -> None:
    put(here.gsd)
    first = here.start("goal", "One", env=A)
    here.start("verify", env=B)
    here.ok("--loop", first, "iterate", env=A)
    assert section(here.gsd)["type"] == "verify"
    here.ok("cancel", env=B)
    shown = section(here.gsd)
    assert (shown["type"], shown["iteration"]) == ("goal", 1)


def test_an_empty_file_is_enough(here: Here) -> None:
    path = put(here.gsd, "")
    here.start("goal", "Be done")
    text = path.read_text()
    assert text.startswith("---\nloop:\n  active: true\n")
    assert text.endswith("---\n")


def test_a_transaction_without_events_brings_it_up_to_date_as_well(here: Here) -> None:
    here.start("goal", "Be done")
    put(here.gsd)
    append(Journal(str(here.gsd)))
    assert section(here.gsd)["active"] is True


def test_it_keeps_its_mode_and_is_not_written_without_need(here: Here) -> None:
    path = put(here.gsd)
    path.chmod(0o646)
    here.start("goal", "Be done")
    assert stat.S_IMODE(path.stat().st_mode) == 0o646
    before = path.stat()
    here.ok("note", "changes nothing that is shown")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    here.ok("iterate")
    assert path.stat().st_ino != before.st_ino
    assert not (here.gsd / "STATE.md.gsd-fsm.new").exists()


def test_nobody_believes_it_and_the_next_event_puts_it_right(here: Here) -> None:
    path = put(here.gsd)
    here.start("goal", "Be done")
    right, status = path.read_text(), here.status()
    path.write_text(right.replace("active: true", "active: false").replace("iteration: 0", "a: 9"))
    wrong = path.read_text()
    assert here.status() == status
    assert path.read_text() == wrong != right
    here.ok("note", "on")
    assert path.read_text() == right


# readers of lines


def by_lines(root: Path) -> dict[str, str]:
    """What grep and awk find, as stop hooks of this kind look for it."""
    script = (
        'for key; do grep -A 20 "^loop:" .gsd/STATE.md | grep "$key:" | head -1 '
        "| awk '{print $2}'; done"
    )
    done = subprocess.run(
        ["bash", "-c", script, "-", *SECTION], cwd=root, capture_output=True, text=True, check=True
    )
    return dict(zip(SECTION, done.stdout.split("\n"), strict=False))


def stop_hook(root: Path) -> dict[str, str]:
    done = subprocess.run(["bash", str(STOP_HOOK)], cwd=root, capture_output=True, check=True)
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def test_a_stop_hook_that_greps_the_file_reads_it_right(here: Here) -> None:
    put(here.gsd)
    here.start(
        "execute", "--mode", "yolo", "--max-iterations", "2", "--task", "paused", "--task",
        "x-active", "--task", "max_iterations",
    )  # fmt: skip
    here.ok("iterate")
    here.ok("fail", "paused", "--class", "logic", "--error", "paused: true\nactive: false")
    found = by_lines(here.root)
    assert {name: found[name] for name in SECTION[:5]} == {
        "active": "true", "type": "execute", "phase": "null", "iteration": "1", "max_iterations": "2",
    }  # fmt: skip
    assert (found["paused"], found["gaps_remaining"], found["pause_reason"]) == (
        "false",
        "0",
        "null",
    )
    assert stop_hook(here.root) == {
        "decision": "block",
        "prompt": "Loop active. Continuing execute loop iteration 2/2.",
    }
    here.ok("pause", "--reason", "history: last_error: no")
    assert by_lines(here.root)["last_error"] == r'"paused\u003a'
    assert stop_hook(here.root) == {"decision": "allow"}
    here.ok("resume")
    here.ok("iterate")
    assert stop_hook(here.root) == {"decision": "allow"}


# the hook


def test_the_hook_keeps_it_current(tmp_path: Path) -> None:
    project = HookProject(tmp_path / "project")
    put(project.gsd)
    for count in (1, 2):
        run_hook(project.signal())
        shown = section(project.gsd)
        assert (shown["active"], shown["iteration"]) == (True, count)
    project.tell("criterion", criterion="one", met=True)
    run_hook(project.signal(last_assistant_message="<loop-complete>all</loop-complete>"))
    assert project.events()[-1]["type"] == "complete"
    assert section(project.gsd) == RESET


def test_hook_loads_the_rare_part_only_if_state_md_exists(tmp_path: Path) -> None:
    project = HookProject(tmp_path / "project")
    hook = Path(shutil.copy(HOOK, tmp_path))

    def parts() -> list[str]:
        run_hook(project.signal(), hook=hook)
        kept = (tmp_path / "__pycache__").iterdir()
        return sorted(path.name.split("_")[3] for path in kept)

    assert parts() == ["engine"]
    put(project.gsd)
    assert parts() == ["engine", "rare"]


@pytest.mark.parametrize("python", interpreters())
def test_the_hook_keeps_it_current_under_every_python_that_is_here(
    python: str, tmp_path: Path
) -> None:
    project = HookProject(tmp_path / "project", goal="Bé done")
    path = put(project.gsd, "\ufeff# Zustand ä\n")
    done = subprocess.run(
        [python, "-I", "-S", str(HOOK), "a"], input=project.signal().encode(), capture_output=True,
        check=False,
    )  # fmt: skip
    assert b'"block"' in done.stdout
    assert path.read_bytes().decode().startswith("\ufeff---\nloop:\n  active: true\n  type: goal\n")


def test_no_dear_module_is_imported_for_it(tmp_path: Path) -> None:
    project = HookProject(tmp_path / "project")
    put(project.gsd)
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook as hook; "
        "hook.leave = lambda _: sys.stderr.write(' '.join(sys.modules)); hook.main()"
    )
    base = sys._base_executable  # type: ignore[attr-defined]  # site of a venv imports os
    done = subprocess.run(
        [base, "-I", "-S", "-c", code, str(HOOK.parent)],
        input=project.signal(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert section(project.gsd)["iteration"] == 1
    assert {"os", "re", "json", "typing", "pathlib", "hashlib"}.isdisjoint(done.stderr.split())
