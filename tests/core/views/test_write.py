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
from tests.support import repositories as git_rig
from tests.support.command_line import A, B, Here, here
from tests.support.events import NOW, append, draft, new_journal, start_draft
from tests.support.hook_project import HOOK, HookProject, interpreters, run_hook
from tests.support.repositories import content_tree, git

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
    **dict.fromkeys(SECTION), "active": False, "iteration": 0, "max_iterations": 20,
    "task_retries": {}, "gaps_remaining": 0, "paused": False, "history": [],
}  # fmt: skip


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


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_commands_update_state_md_and_reset_it_when_the_loop_ends(here: Here, end: str) -> None:
    put_state(here.gsd)
    here.start("execute", "--mode", "yolo", "--task", "T01", "--max-retries", "1")
    for error in ("first\nline", "again"):
        assert section(here.gsd)["active"] is True
        here.ok("fail", "T01", "--error", error, "--class", "logic")
    shown, status = section(here.gsd), here.status()
    assert (shown["active"], shown["type"], shown["paused"]) == (False, "execute", True)
    for name in set(SECTION) - {"active", "type", "paused"}:
        assert shown[name] == status[name], name
    here.ok("resume", "--add-retries", "1")
    here.ok("task", "T01", "skipped")
    assert section(here.gsd)["active"] is True
    here.ok(end)
    assert section(here.gsd) == RESET


def test_state_md_shows_the_live_loop_that_was_started_last(here: Here) -> None:
    put_state(here.gsd)
    first = here.start("goal", "One", env=A)
    here.start("verify", "--task", "T1", env=B)
    here.ok("--loop", first, "iterate", env=A)
    assert section(here.gsd)["type"] == "verify"
    here.ok("cancel", env=B)
    shown = section(here.gsd)
    assert (shown["type"], shown["iteration"]) == ("goal", 1)


def test_missing_state_md_is_not_created_and_an_empty_one_gets_front_matter(here: Here) -> None:
    here.start("goal", "Be done")
    assert not list(here.gsd.glob("STATE*"))
    path = put_state(here.gsd, "")
    append(Journal(str(here.gsd)))  # without an event
    text = path.read_text()
    assert text.startswith("---\nloop:\n  active: true\n")
    assert text.endswith("---\n")


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


def stop_hook(root: Path) -> Any:
    """Return the answer of a stop hook that greps STATE.md."""
    return json.loads(subprocess.check_output(["bash", str(STOP_HOOK)], cwd=root))


def test_stop_hook_that_greps_state_md_reads_the_right_values(here: Here) -> None:
    put_state(here.gsd)
    names = ("--task", "paused", "--task", "x-active", "--task", "max_iterations")
    here.start("execute", "--mode", "yolo", "--max-iterations", "2", *names)
    here.ok("iterate")
    here.ok("fail", "paused", "--class", "logic", "--error", "paused: true\nactive: false")
    prompt = "Loop active. Continuing execute loop iteration 2/2."
    assert stop_hook(here.root) == {"decision": "block", "prompt": prompt}
    here.ok("pause", "--reason", "history: last_error: no")
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

    def append(self, *drafts: dict[str, Any]) -> None:
        append(Journal(str(self.root / ".gsd"), now=self.clock.__next__), *drafts)

    def start(self, loop: str = "lp-1", **data: Any) -> None:
        data = {"goal": f"Goal of {loop}", "views": VIEWS, **data}
        self.append({**start_draft(loop, "goal", **data), "session": f"s{loop}"})

    def iterate(self, loop: str = "lp-1") -> None:
        self.append(draft("iteration", loop, "hook", {}))

    def cancel(self, loop: str = "lp-1") -> None:
        self.append(draft("cancel", loop, "human", {}))

    def put(self, data: bytes = FOREIGN) -> Path:
        self.place.mkdir(exist_ok=True)
        path = self.place / "state.json"
        path.write_bytes(data)
        return path

    def state(self) -> Any:
        return json.loads((self.place / "state.json").read_text("utf-8"))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir()) if self.place.exists() else []


def require_views(root: Path, loop_id: str = "lp-1") -> None:
    """Require that every file shows this loop."""
    loop = Journal(str(root / ".gsd")).read().by_id[loop_id]
    place = root / ".loop"
    assert json.loads((place / "state.json").read_text("utf-8")) == state(loop)
    assert json.loads((place / "workflow-state.json").read_text("utf-8")) == workflow_state(loop)
    assert (place / "PROGRESS.md").read_text("utf-8") == progress(loop)


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "p")


def test_every_append_updates_the_files_of_the_live_loop_started_last(shown: Shown) -> None:
    shown.start()
    assert stat.S_IMODE(shown.place.stat().st_mode) & 0o700 == 0o700
    require_views(shown.root)
    shown.iterate()
    require_views(shown.root)
    shutil.rmtree(shown.place)
    gsd = str(shown.root / ".gsd")
    project(gsd, Journal(gsd).read())  # a path as directory, as on Windows
    require_views(shown.root)
    shown.start("lp-2")
    shown.iterate("lp-1")
    require_views(shown.root, "lp-2")
    for loop in ("lp-2", "lp-1"):
        shown.cancel(loop)
        require_views(shown.root, "lp-1")
    assert shown.names() == FILES
    assert shown.state()["status"] == "cancelled"


@pytest.mark.parametrize(
    ("views", "names"), [([], []), (["report", "status-block"], []), (["state"], ["state.json"])]
)
def test_only_enabled_views_are_created(shown: Shown, views: list[str], names: list[str]) -> None:
    shown.append({**start_draft("lp-0", "execute", views=VIEWS), "session": "z"})
    assert not shown.place.exists()
    shown.start(views=views)
    shown.iterate()
    shown.cancel()
    assert shown.names() == names
    assert shown.place.exists() == bool(names)


@pytest.mark.parametrize("name", [".gsd/STATE.md", ".loop/state.json"])
def test_only_a_changed_view_is_written_and_keeps_its_mode(shown: Shown, name: str) -> None:
    path = shown.root / name
    put_state(shown.root / ".gsd")
    shown.start()
    path.chmod(0o646)
    shown.iterate()
    before = path.stat()
    assert stat.S_IMODE(before.st_mode) == 0o646
    shown.append(draft("note", "lp-1", "agent", {"text": "changes nothing that is shown there"}))
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    require_views(shown.root)
    shown.iterate()
    assert path.stat().st_ino != before.st_ino
    assert not list(path.parent.glob("*.new"))


# foreign content in `.loop`


@pytest.mark.parametrize("begin", [FOREIGN, b'{\n  "spec": "Goal of lp-1",\n'])
@pytest.mark.parametrize("enabled_later", [False, True])
def test_foreign_file_is_saved_once(shown: Shown, begin: bytes, enabled_later: bool) -> None:
    data = begin + b"\xff\r\n" * (1 << 20)
    shown.put(data).chmod(0o600)
    (shown.place / "state.json.new").write_bytes(b"precious")
    shown.start(views=["progress"] if enabled_later else ["progress", "state"])
    shown.iterate()
    if enabled_later:
        assert (shown.place / "state.json").read_bytes() == data
        views = {"views": ["progress", "state"]}
        shown.append(draft("resume", "lp-1", "human", views, session="slp-1"))
        shown.iterate()
    kept = shown.place / "state.json.before-lp-1"
    assert kept.read_bytes() == data
    assert shown.names() == ["PROGRESS.md", "state.json", kept.name, "state.json.new"]
    assert (shown.place / "state.json.new").read_bytes() == b"precious"
    assert shown.state()["iteration"] == 1 + enabled_later


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, lambda path: path.symlink_to("x")])
def test_saved_file_is_never_overwritten(shown: Shown, make: Any) -> None:
    kept = shown.put().with_name("state.json.before-lp-1")
    make(kept)
    before = kept.lstat()
    shown.start()
    require_views(shown.root)
    after = kept.lstat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_views_of_an_earlier_loop_and_equal_content_are_not_saved(shown: Shown) -> None:
    shown.start("lp-1")
    shown.cancel("lp-1")
    shown.start("lp-2")
    fresh = {**start_draft("lp-3", "goal", goal="3", views=VIEWS), "session": "x"}
    shown.append(draft("cancel", "lp-2", "human", {}), fresh)
    require_views(shown.root, "lp-3")
    shown.start("lp-4", views=[])
    loop = Journal(str(shown.root / ".gsd")).read().by_id["lp-4"]
    shown.put((json.dumps(state(loop), indent=2) + "\n").encode())
    shown.start("lp-5", goal=loop.goal)
    assert shown.names() == FILES


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
    for name in (".loop/state.json.bak", ".loop/notes.md", "state.json"):
        (repo / name).write_text("one")
        assert content_tree(repo) != before
        (repo / name).unlink()


def test_hook_updates_views_and_loads_the_rare_part_only_for_them(tmp_path: Path) -> None:
    hook = Path(shutil.copy(HOOK, tmp_path))
    plain, state_md = HookProject(tmp_path / "plain"), HookProject(tmp_path / "state")
    shown = HookProject(tmp_path / "loop", views=VIEWS)
    put_state(state_md.gsd)
    for hooked in (plain, state_md, shown):
        run_hook(hooked.signal(), hook=hook)
        made = {path.name.split("_")[3] for path in (tmp_path / "__pycache__").iterdir()}
        assert made == ({"engine"} if hooked is plain else {"engine", "rare"})
        shutil.rmtree(tmp_path / "__pycache__")
    assert (section(state_md.gsd)["active"], section(state_md.gsd)["iteration"]) == (True, 1)
    for hooked in (state_md, shown):
        hooked.append("criterion", criterion="one", met=True)
        run_hook(hooked.signal(last_assistant_message="<loop-complete>all</loop-complete>"))
        assert hooked.events()[-1]["type"] == "complete"
    assert section(state_md.gsd) == RESET
    require_views(shown.root)


BASE: str = sys._base_executable  # type: ignore[attr-defined]  # the venv's own imports os


@pytest.mark.parametrize("python", [BASE, *interpreters()])
def test_hook_updates_views_without_slow_imports_in_any_python(python: str, tmp_path: Path) -> None:
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
    require_views(project.root)
    assert path.read_bytes().decode().startswith("\ufeff---\nloop:\n  active: true\n  type: goal\n")
    slow = {"re", "json", "typing", "pathlib", "hashlib"} | ({"os"} if python == BASE else set())
    assert slow.isdisjoint(done.stderr.decode().split())
