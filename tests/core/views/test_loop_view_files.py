"""The files in `.loop/`: current after every append, of the one loop they show; nothing is lost."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.text.progress import progress
from gsd_fsm.core.views.loop_json import LOOP_FILES, state, workflow_state
from gsd_fsm.core.views.write import project
from gsd_fsm.git.tree import content_tree
from tests.support import repositories as git_rig
from tests.support.command_line import A, B, Here, here
from tests.support.events import NOW, append, draft, new_journal, start_draft
from tests.support.hook_project import HOOK, HookProject, interpreters, run_hook
from tests.support.repositories import git

__all__ = ["here"]
_isolated_git, repo = git_rig._isolated_git, git_rig.repo  # fixtures
VIEWS = list(LOOP_FILES)
FILES = sorted(name for name, _ in LOOP_FILES.values())
FOREIGN = b'{"spec": "of another tool"}'


class Shown:
    """A project in which loops begin, go on and end, and the files that show them."""

    def __init__(self, root: Path) -> None:
        self.root, self.place = root, root / ".loop"
        self.clock = count(NOW, 1000)
        new_journal(root / ".gsd")

    def tell(self, *drafts: dict[str, Any]) -> None:
        journal = Journal(str(self.root / ".gsd"), now=self.clock.__next__)
        append(journal, *drafts)

    def start(self, loop: str = "lp-1", *, owner: str = "s", **data: Any) -> None:
        data = {"goal": f"Goal of {loop}", "views": VIEWS, **data}
        self.tell({**start_draft(loop, "goal", **data), "session": owner + loop})

    def iterate(self, loop: str = "lp-1") -> None:
        self.tell(draft("iteration", loop, "hook", {}))

    def cancel(self, loop: str = "lp-1") -> None:
        self.tell(draft("cancel", loop, "human", {}))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir()) if self.place.exists() else []

    def assert_shows(self, loop_id: str) -> None:
        """Every file is that of this loop, to the byte."""
        loop = Journal(str(self.root / ".gsd")).read().by_id[loop_id]
        assert json.loads((self.place / "state.json").read_text("utf-8")) == state(loop)
        workflow = json.loads((self.place / "workflow-state.json").read_text("utf-8"))
        assert workflow == workflow_state(loop)
        assert (self.place / "PROGRESS.md").read_text("utf-8") == progress(loop)


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "p")


def test_every_append_keeps_them_current_from_the_first_to_the_last(shown: Shown) -> None:
    shown.start()
    assert stat.S_IMODE(shown.place.stat().st_mode) & 0o700 == 0o700
    for step in (shown.iterate, shown.iterate, shown.cancel):
        shown.assert_shows("lp-1")
        step()
    shown.assert_shows("lp-1")
    assert shown.names() == FILES
    assert json.loads((shown.place / "state.json").read_text())["status"] == "cancelled"


@pytest.mark.parametrize("views", [[], ["report", "status-block"]])
def test_without_a_view_nothing_is_made(shown: Shown, views: list[str]) -> None:
    shown.start(views=views)
    shown.iterate()
    shown.cancel()
    assert not shown.place.exists()


def test_only_the_views_that_are_wanted_are_made_and_only_for_goals(shown: Shown) -> None:
    shown.tell({**start_draft("lp-0", "execute", views=VIEWS), "session": "z"})
    assert not shown.place.exists()
    shown.start(views=["state"])
    assert shown.names() == ["state.json"]


def test_they_show_the_live_loop_that_was_started_last(shown: Shown) -> None:
    shown.start("lp-1")
    shown.start("lp-2")
    shown.iterate("lp-1")
    shown.assert_shows("lp-2")
    shown.cancel("lp-2")
    shown.assert_shows("lp-1")
    shown.cancel("lp-1")
    shown.assert_shows("lp-1")
    assert shown.names() == FILES


def test_a_file_is_not_written_without_need(shown: Shown) -> None:
    shown.start()
    (shown.place / "state.json").chmod(0o640)
    shown.iterate()
    before = (shown.place / "state.json").stat()
    assert stat.S_IMODE(before.st_mode) == 0o640
    shown.tell(draft("note", "lp-1", "agent", {"text": "changes nothing that is shown there"}))
    after = (shown.place / "state.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    shown.assert_shows("lp-1")


# what was there before


def put(shown: Shown, data: bytes = FOREIGN) -> Path:
    shown.place.mkdir(exist_ok=True)
    (shown.place / "state.json").write_bytes(data)
    return shown.place / "state.json"


@pytest.mark.parametrize("begins", [FOREIGN, b'{\n  "spec": "Goal of lp-1",\n'])
def test_a_file_of_another_tool_is_kept_once_as_it_was(shown: Shown, begins: bytes) -> None:
    data = begins + b"\xff\r\n" * (1 << 20)
    put(shown, data).chmod(0o600)
    shown.start(views=["state"])
    shown.iterate()
    kept = shown.place / "state.json.before-lp-1"
    assert kept.read_bytes() == data
    assert shown.names() == ["state.json", kept.name]
    assert json.loads((shown.place / "state.json").read_text())["iteration"] == 1


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, lambda path: path.symlink_to("x")])
def test_what_is_kept_is_never_overwritten(shown: Shown, make: Any) -> None:
    put(shown)
    make(shown.place / "state.json.before-lp-1")
    before = (shown.place / "state.json.before-lp-1").lstat()
    shown.start()
    shown.assert_shows("lp-1")
    after = (shown.place / "state.json.before-lp-1").lstat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_that_says_the_same_already_needs_no_copy(shown: Shown) -> None:
    shown.start(views=[])
    loop = Journal(str(shown.root / ".gsd")).read().by_id["lp-1"]
    put(shown, (json.dumps(state(loop), indent=2) + "\n").encode())
    shown.start("lp-2", views=["state"], goal=loop.goal)
    assert shown.names() == ["state.json"]


def test_our_own_files_are_not_kept_when_another_loop_begins(shown: Shown) -> None:
    shown.start("lp-1")
    shown.cancel("lp-1")
    shown.start("lp-2")
    fresh = {**start_draft("lp-3", "goal", goal="3", views=VIEWS), "session": "x"}
    shown.tell(draft("cancel", "lp-2", "human", {}), fresh)
    shown.assert_shows("lp-3")
    shown.start("lp-4")
    assert shown.names() == FILES


@pytest.mark.parametrize("found", [FOREIGN, b'{\n  "spec": "Goal of lp-1",\n  "mine": 1\n}\n'])
def test_a_view_that_is_switched_on_later_keeps_what_was_there(shown: Shown, found: bytes) -> None:
    put(shown, found)
    shown.start(views=["progress"])
    shown.iterate()
    assert (shown.place / "state.json").read_bytes() == found
    resume = draft("resume", "lp-1", "human", {"views": ["progress", "state"]}, session="slp-1")
    shown.tell(resume)
    shown.iterate()
    assert (shown.place / "state.json.before-lp-1").read_bytes() == found
    assert shown.names() == ["PROGRESS.md", "state.json", "state.json.before-lp-1"]


def test_a_file_beside_a_view_is_nobody_s_business(shown: Shown) -> None:
    put(shown).with_name("state.json.new").write_bytes(b"precious")
    shown.start(views=["state"])
    shown.iterate()
    assert (shown.place / "state.json.new").read_bytes() == b"precious"


def test_after_its_end_a_loop_leaves_the_files_to_others(shown: Shown) -> None:
    shown.start()
    shown.cancel()
    put(shown)
    shown.start("lp-2", views=[])
    assert (shown.place / "state.json").read_bytes() == FOREIGN
    shutil.rmtree(shown.place)
    shown.iterate("lp-2")
    assert not shown.place.exists()


def test_an_end_that_was_not_shown_is_shown_by_the_next_append(shown: Shown) -> None:
    """As if the process had been killed after its append."""
    shown.start(views=["state"])
    before = (shown.place / "state.json").read_bytes()
    shown.cancel()
    put(shown, before)
    shown.start("lp-2", views=[])
    assert json.loads((shown.place / "state.json").read_text())["status"] == "cancelled"
    assert (shown.place / "state.json.before-lp-1").read_bytes() == before
    put(shown, before)  # or another tool goes on with the same goal
    shown.iterate("lp-2")
    assert (shown.place / "state.json").read_bytes() == before


def test_a_directory_may_be_a_path_as_it_is_on_windows(shown: Shown) -> None:
    shown.start()
    shutil.rmtree(shown.place)
    gsd = str(shown.root / ".gsd")
    project(gsd, Journal(gsd).read())
    shown.assert_shows("lp-1")


# commands, the hook, evidence


def test_the_commands_follow_the_settings(here: Here) -> None:
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


def test_hook_updates_loop_views_and_loads_the_rare_part_only_for_them(tmp_path: Path) -> None:
    hook = Path(shutil.copy(HOOK, tmp_path))
    kept = tmp_path / "__pycache__"
    for views, parts in (([], {"engine"}), (VIEWS, {"engine", "rare"})):
        project = HookProject(tmp_path / f"project{len(views)}", views=views)
        run_hook(project.signal(), hook=hook)
        assert {path.name.split("_")[3] for path in kept.iterdir()} == parts
    file = project.root / ".loop" / "state.json"
    assert json.loads(file.read_text())["iteration"] == 1
    project.tell("criterion", criterion="one", met=True)
    run_hook(project.signal(last_assistant_message="<loop-complete>all</loop-complete>"))
    assert json.loads(file.read_text())["status"] == "completed"
    assert sorted(path.name for path in file.parent.iterdir()) == FILES


@pytest.mark.parametrize("python", interpreters())
def test_the_hook_keeps_them_current_under_every_python_that_is_here(
    python: str, tmp_path: Path
) -> None:
    project = HookProject(tmp_path / "project", goal="Bé\ndone 💥", views=VIEWS)
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook as hook; "
        "hook.leave = lambda _: sys.stderr.write(' '.join(sys.modules)); hook.main()"
    )
    command = [python, "-I", "-S", "-c", code, str(HOOK.parent)]
    for _ in range(2):  # the first one may have to compile it
        signal = project.signal().encode()
        done = subprocess.run(command, input=signal, capture_output=True, check=True)
    loop = Journal(str(project.gsd)).read().by_id["lp-1"]
    assert loop.iteration == 2
    kept = project.root / ".loop"
    assert json.loads((kept / "state.json").read_bytes()) == state(loop)
    assert json.loads((kept / "workflow-state.json").read_bytes()) == workflow_state(loop)
    assert (kept / "PROGRESS.md").read_text("utf-8") == progress(loop)
    assert {"re", "json", "typing", "pathlib", "hashlib"}.isdisjoint(done.stderr.decode().split())


def test_evidence_does_not_go_stale_because_a_view_has_changed(repo: Path) -> None:
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
