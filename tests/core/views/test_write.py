"""Appends update STATE.md and the files in `.loop/`; nothing reads them, and no content is lost."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.text.progress import progress
from gsd_fsm.core.views.loop_json import LOOP_FILES, state, workflow_state
from gsd_fsm.core.views.state_md import SECTION
from gsd_fsm.core.views.write import project
from gsd_fsm.git.tree import content_tree
from tests.support import repositories as git_rig
from tests.support.command_line import A, B, Here, here
from tests.support.events import NOW, append, draft, new_journal, start_draft
from tests.support.hook_project import HOOK, HookProject, interpreters, run_hook
from tests.support.repositories import git

__all__ = ["here"]
_isolated_git, repo = git_rig._isolated_git, git_rig.repo  # fixtures
STOP_HOOK = Path(__file__).parents[3] / "scripts" / "rivals" / "state_md.sh"
VIEWS = list(LOOP_FILES)
FILES = sorted(name for name, _ in LOOP_FILES.values())
FOREIGN = b'{"spec": "of another tool"}'

# STATE.md

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


def put_state(gsd: Path, text: str = FILE) -> Path:
    gsd.mkdir(exist_ok=True)
    path = gsd / "STATE.md"
    path.write_bytes(text.encode())
    return path


def section(gsd: Path) -> dict[str, Any]:
    """Return the section as YAML; check that the rest of the file is unchanged."""
    text = (gsd / "STATE.md").read_bytes().decode()
    front, fence, rest = text.partition("---\r\n")
    assert fence + rest == REST
    before, key, _ = front.partition("loop:\n")
    assert before + REST == FILE
    found = yaml.safe_load(front.removeprefix("---\n"))
    assert [*found] == ["milestone", "open_issues", *(["loop"] if key else [])]
    return dict(found["loop"])


def test_missing_state_md_is_not_created(here: Here) -> None:
    here.start("goal", "Be done")
    here.ok("iterate")
    assert not list(here.gsd.glob("STATE*"))


def test_commands_update_state_md_and_reset_it_after_cancel(here: Here) -> None:
    put_state(here.gsd)
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


def test_state_md_is_reset_when_the_loop_completes(here: Here) -> None:
    put_state(here.gsd)
    here.start("execute", "--mode", "yolo", "--task", "T01")
    for status in ("running", "complete"):
        here.ok("task", "T01", status)
    assert section(here.gsd)["active"] is True
    here.ok("complete")
    assert section(here.gsd) == RESET


def test_state_md_shows_the_live_loop_that_was_started_last(here: Here) -> None:
    put_state(here.gsd)
    first = here.start("goal", "One", env=A)
    here.start("verify", env=B)
    here.ok("--loop", first, "iterate", env=A)
    assert section(here.gsd)["type"] == "verify"
    here.ok("cancel", env=B)
    shown = section(here.gsd)
    assert (shown["type"], shown["iteration"]) == ("goal", 1)


def test_empty_state_md_gets_front_matter(here: Here) -> None:
    path = put_state(here.gsd, "")
    here.start("goal", "Be done")
    text = path.read_text()
    assert text.startswith("---\nloop:\n  active: true\n")
    assert text.endswith("---\n")


def test_transaction_without_events_updates_state_md(here: Here) -> None:
    here.start("goal", "Be done")
    put_state(here.gsd)
    append(Journal(str(here.gsd)))
    assert section(here.gsd)["active"] is True


def test_edited_state_md_is_not_read_and_the_next_event_corrects_it(here: Here) -> None:
    path = put_state(here.gsd)
    here.start("goal", "Be done")
    right, status = path.read_text(), here.status()
    path.write_text(right.replace("active: true", "active: false").replace("iteration: 0", "a: 9"))
    wrong = path.read_text()
    assert here.status() == status
    assert path.read_text() == wrong != right
    here.ok("note", "on")
    assert path.read_text() == right


def by_lines(root: Path) -> dict[str, str]:
    """Return what grep and awk find, as stop hooks of this kind use them."""
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


def test_stop_hook_that_greps_state_md_reads_the_right_values(here: Here) -> None:
    put_state(here.gsd)
    here.start(
        "execute", "--mode", "yolo", "--max-iterations", "2", "--task", "paused", "--task",
        "x-active", "--task", "max_iterations",
    )  # fmt: skip
    here.ok("iterate")
    here.ok("fail", "paused", "--class", "logic", "--error", "paused: true\nactive: false")
    expected = {
        "active": "true", "type": "execute", "phase": "null", "iteration": "1", "max_iterations": "2",
        "paused": "false", "gaps_remaining": "0", "pause_reason": "null",
    }  # fmt: skip
    found = by_lines(here.root)
    assert {name: found[name] for name in expected} == expected
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


# .loop


class Shown:
    """A project whose goal loops are shown in `.loop/`."""

    def __init__(self, root: Path) -> None:
        self.root, self.place = root, root / ".loop"
        self.clock = count(NOW, 1000)
        new_journal(root / ".gsd")

    def tell(self, *drafts: dict[str, Any]) -> None:
        append(Journal(str(self.root / ".gsd"), now=self.clock.__next__), *drafts)

    def start(self, loop: str = "lp-1", **data: Any) -> None:
        data = {"goal": f"Goal of {loop}", "views": VIEWS, **data}
        self.tell({**start_draft(loop, "goal", **data), "session": f"s{loop}"})

    def iterate(self, loop: str = "lp-1") -> None:
        self.tell(draft("iteration", loop, "hook", {}))

    def cancel(self, loop: str = "lp-1") -> None:
        self.tell(draft("cancel", loop, "human", {}))

    def put(self, data: bytes = FOREIGN) -> Path:
        self.place.mkdir(exist_ok=True)
        path = self.place / "state.json"
        path.write_bytes(data)
        return path

    def state(self) -> dict[str, Any]:
        return dict(json.loads((self.place / "state.json").read_text("utf-8")))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir()) if self.place.exists() else []

    def require_shows(self, loop_id: str) -> None:
        """Every file shows this loop."""
        require_views(self.root, loop_id)


def require_views(root: Path, loop_id: str) -> None:
    loop = Journal(str(root / ".gsd")).read().by_id[loop_id]
    place = root / ".loop"
    assert json.loads((place / "state.json").read_text("utf-8")) == state(loop)
    assert json.loads((place / "workflow-state.json").read_text("utf-8")) == workflow_state(loop)
    assert (place / "PROGRESS.md").read_text("utf-8") == progress(loop)


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "p")


def test_every_append_updates_the_loop_files(shown: Shown) -> None:
    shown.start()
    assert stat.S_IMODE(shown.place.stat().st_mode) & 0o700 == 0o700
    for step in (shown.iterate, shown.iterate, shown.cancel):
        shown.require_shows("lp-1")
        step()
    shown.require_shows("lp-1")
    assert shown.names() == FILES
    assert shown.state()["status"] == "cancelled"


@pytest.mark.parametrize(
    ("views", "names"),
    [([], []), (["report", "status-block"], []), (["state"], ["state.json"])],
)
def test_only_enabled_views_of_goal_loops_are_created(
    shown: Shown, views: list[str], names: list[str]
) -> None:
    shown.tell({**start_draft("lp-0", "execute", views=VIEWS), "session": "z"})
    assert not shown.place.exists()
    shown.start(views=views)
    shown.iterate()
    shown.cancel()
    assert shown.names() == names
    assert shown.place.exists() == bool(names)


def test_loop_files_show_the_live_loop_that_was_started_last(shown: Shown) -> None:
    shown.start("lp-1")
    shown.start("lp-2")
    shown.iterate("lp-1")
    shown.require_shows("lp-2")
    shown.cancel("lp-2")
    shown.require_shows("lp-1")
    shown.cancel("lp-1")
    shown.require_shows("lp-1")
    assert shown.names() == FILES


@pytest.mark.parametrize("name", [".gsd/STATE.md", ".loop/state.json"])
def test_unchanged_view_is_not_written_and_a_changed_one_keeps_its_mode(
    shown: Shown, name: str
) -> None:
    path = shown.root / name
    put_state(shown.root / ".gsd")
    shown.start()
    path.chmod(0o646)
    shown.iterate()
    before = path.stat()
    assert stat.S_IMODE(before.st_mode) == 0o646
    shown.tell(draft("note", "lp-1", "agent", {"text": "changes nothing that is shown there"}))
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    shown.require_shows("lp-1")
    shown.iterate()
    assert path.stat().st_ino != before.st_ino
    assert not list(path.parent.glob("*.new"))


# foreign content in `.loop`


@pytest.mark.parametrize("begins", [FOREIGN, b'{\n  "spec": "Goal of lp-1",\n'])
def test_file_of_another_tool_is_saved_once(shown: Shown, begins: bytes) -> None:
    data = begins + b"\xff\r\n" * (1 << 20)
    shown.put(data).chmod(0o600)
    shown.start(views=["state"])
    shown.iterate()
    kept = shown.place / "state.json.before-lp-1"
    assert kept.read_bytes() == data
    assert shown.names() == ["state.json", kept.name]
    assert shown.state()["iteration"] == 1


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, lambda path: path.symlink_to("x")])
def test_saved_file_is_never_overwritten(shown: Shown, make: Any) -> None:
    kept = shown.put().with_name("state.json.before-lp-1")
    make(kept)
    before = kept.lstat()
    shown.start()
    shown.require_shows("lp-1")
    after = kept.lstat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_file_with_the_same_content_is_not_saved(shown: Shown) -> None:
    shown.start(views=[])
    loop = Journal(str(shown.root / ".gsd")).read().by_id["lp-1"]
    shown.put((json.dumps(state(loop), indent=2) + "\n").encode())
    shown.start("lp-2", views=["state"], goal=loop.goal)
    assert shown.names() == ["state.json"]


def test_views_of_an_earlier_loop_are_not_saved(shown: Shown) -> None:
    shown.start("lp-1")
    shown.cancel("lp-1")
    shown.start("lp-2")
    fresh = {**start_draft("lp-3", "goal", goal="3", views=VIEWS), "session": "x"}
    shown.tell(draft("cancel", "lp-2", "human", {}), fresh)
    shown.require_shows("lp-3")
    shown.start("lp-4")
    assert shown.names() == FILES


@pytest.mark.parametrize("found", [FOREIGN, b'{\n  "spec": "Goal of lp-1",\n  "mine": 1\n}\n'])
def test_view_enabled_later_saves_the_file_of_another_tool(shown: Shown, found: bytes) -> None:
    shown.put(found)
    shown.start(views=["progress"])
    shown.iterate()
    assert (shown.place / "state.json").read_bytes() == found
    resume = draft("resume", "lp-1", "human", {"views": ["progress", "state"]}, session="slp-1")
    shown.tell(resume)
    shown.iterate()
    assert (shown.place / "state.json.before-lp-1").read_bytes() == found
    assert shown.names() == ["PROGRESS.md", "state.json", "state.json.before-lp-1"]


def test_other_file_next_to_a_view_stays(shown: Shown) -> None:
    shown.put().with_name("state.json.new").write_bytes(b"precious")
    shown.start(views=["state"])
    shown.iterate()
    assert (shown.place / "state.json.new").read_bytes() == b"precious"


def test_ended_loop_no_longer_writes_its_views(shown: Shown) -> None:
    shown.start()
    shown.cancel()
    shown.put()
    shown.start("lp-2", views=[])
    assert (shown.place / "state.json").read_bytes() == FOREIGN
    shutil.rmtree(shown.place)
    shown.iterate("lp-2")
    assert not shown.place.exists()


def test_end_of_a_loop_that_was_not_shown_is_shown_by_the_next_append(shown: Shown) -> None:
    """As if the process had been killed after its append."""
    shown.start(views=["state"])
    before = (shown.place / "state.json").read_bytes()
    shown.cancel()
    shown.put(before)
    shown.start("lp-2", views=[])
    assert shown.state()["status"] == "cancelled"
    assert (shown.place / "state.json.before-lp-1").read_bytes() == before
    shown.put(before)  # or another tool continues with the same goal
    shown.iterate("lp-2")
    assert (shown.place / "state.json").read_bytes() == before


def test_project_accepts_a_path_as_directory(shown: Shown) -> None:
    """As on Windows."""
    shown.start()
    shutil.rmtree(shown.place)
    gsd = str(shown.root / ".gsd")
    project(gsd, Journal(gsd).read())
    shown.require_shows("lp-1")


def test_commands_write_the_views_of_the_configuration(here: Here) -> None:
    here.gsd.mkdir()
    (here.gsd / "config.toml").write_text('views = ["state"]\n')
    here.start("goal", "Be done", "--criterion", "one", env=A)
    here.ok("criterion", "one", "met", env=A)
    kept = here.root / ".loop" / "state.json"
    assert json.loads(kept.read_text())["criteriaStatus"] == {"one": True}
    here.ok("exit-signal", env=A)
    here.ok("complete", env=A)
    assert json.loads(kept.read_text())["status"] == "completed"
    (here.gsd / "config.toml").write_text("views = []\n")
    here.start("goal", "Something else", env=B)
    assert json.loads(kept.read_text())["spec"] == "Be done"


def test_content_tree_ignores_views(repo: Path) -> None:
    before = content_tree(repo)
    for folder in (repo / ".loop", repo / "sub" / ".loop"):
        folder.mkdir()
        for name in (*FILES, "state.json.gsd-fsm.new", "PROGRESS.md.before-lp-1"):
            (folder / name).write_text("one")
    assert content_tree(repo) == before
    git(repo, "add", "-A")
    (repo / ".loop" / "state.json").write_text("two")
    assert content_tree(repo) == before
    for name in ("state.json.bak", "notes.md", "sub.json"):
        (repo / ".loop" / name).write_text("one")
        assert content_tree(repo) != before
        (repo / ".loop" / name).unlink()
    (repo / "state.json").write_text("one")
    assert content_tree(repo) != before


# the hook


@pytest.mark.parametrize("view", ["state_md", "loop"])
def test_hook_updates_views_and_loads_the_rare_part_only_for_them(
    tmp_path: Path, view: str
) -> None:
    hook = Path(shutil.copy(HOOK, tmp_path))
    project = HookProject(tmp_path / "project", views=VIEWS if view == "loop" else [])
    plain = HookProject(tmp_path / "plain")
    if view == "state_md":
        put_state(project.gsd)
    for hooked, parts in ((plain, {"engine"}), (project, {"engine", "rare"})):
        run_hook(hooked.signal(), hook=hook)
        kept = (tmp_path / "__pycache__").iterdir()
        assert {path.name.split("_")[3] for path in kept} == parts
    run_hook(project.signal())
    project.tell("criterion", criterion="one", met=True)
    if view == "state_md":
        assert (section(project.gsd)["active"], section(project.gsd)["iteration"]) == (True, 2)
    else:
        require_views(project.root, "lp-1")
    run_hook(project.signal(last_assistant_message="<loop-complete>all</loop-complete>"))
    assert project.events()[-1]["type"] == "complete"
    if view == "state_md":
        assert section(project.gsd) == RESET
    else:
        require_views(project.root, "lp-1")
        assert sorted(path.name for path in (project.root / ".loop").iterdir()) == FILES


BASE: str = sys._base_executable  # type: ignore[attr-defined]  # the venv's own imports os


@pytest.mark.parametrize("python", [BASE, *interpreters()])
def test_hook_updates_views_without_slow_imports_under_every_python(
    python: str, tmp_path: Path
) -> None:
    project = HookProject(tmp_path / "project", goal="Bé\ndone 💥", views=VIEWS)
    path = put_state(project.gsd, "\ufeff# Zustand ä\n")
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook as hook; "
        "hook.leave = lambda _: sys.stderr.write(' '.join(sys.modules)); hook.main()"
    )
    command = [python, "-I", "-S", "-c", code, str(HOOK.parent)]
    for _ in range(2):  # the first one may have to compile it
        signal = project.signal().encode()
        done = subprocess.run(command, input=signal, capture_output=True, check=True)
        assert b'"block"' in done.stdout
    assert Journal(str(project.gsd)).read().by_id["lp-1"].iteration == 2
    require_views(project.root, "lp-1")
    assert path.read_bytes().decode().startswith("\ufeff---\nloop:\n  active: true\n  type: goal\n")
    slow = {"re", "json", "typing", "pathlib", "hashlib"} | ({"os"} if python == BASE else set())
    assert slow.isdisjoint(done.stderr.decode().split())
